"""Damaged CSV, Parquet, Arrow, JSON Lines and gzip: a clean end, and a complete set."""

from __future__ import annotations

import json

from .. import catalogs
from ..case import SITE, Case
from ..mutate import damage
from ..sitemaps import read_set

WEIGHT = 5


def run(case: Case) -> None:
    rng = case.rng
    form = rng.choice(catalogs.FORMATS)
    path = catalogs.write(catalogs.make(rng, 600), case.folder / "c", form, rng)
    path.write_bytes(damage(path.read_bytes(), rng))
    out = case.folder / "out"
    command: list[object] = ["build", "--site", SITE, "--out", out, "--max-rejects", "100%"]
    command += ["--max-urls", 50, "--quiet", "--json", case.folder / "report.json"]
    command += ["--sort"] if rng.random() < 0.2 else []
    command += ["--duplicates", "drop"] if rng.random() < 0.2 else []
    if rng.random() < 0.2:
        format_ = "csv" if form == "csv.gz" else form
        ended = case.urlset(*command, "-", "--format", format_, input=path)
    else:
        ended = case.urlset(*command, path)
    if ended.status:
        case.check(not list(out.glob("*.xml*")), "it failed and published all the same")
        return
    report = json.loads((case.folder / "report.json").read_text())
    urls = len(read_set(out, rng))
    case.check(urls == report["urls"], f"{urls} URLs, the report says {report['urls']}")
    fates = sum(report[key] for key in ("urls", "rejected", "filtered", "duplicates"))
    case.check(fates == report["rows"] + report["expanded"], "rows are lost")

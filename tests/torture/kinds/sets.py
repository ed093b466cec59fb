"""Several sets with similar names: every row in one shard, every shard in one index."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from ..case import SITE, Case
from ..sitemaps import entries, listed

PARTS = ("a", "B", "b", "2", "index", "00001", "sitemap", "0123456789abcdef")


def run(case: Case) -> None:
    rng = case.rng

    def word() -> str:
        return "-".join(rng.choices(PARTS, k=rng.randint(1, 3)))

    lines = [
        f'site = "{SITE}"\nout = "out"\nmax-urls = {rng.randint(1, 3)}\nmax-rejects = "100%"',
        f"max-sitemaps = {rng.randint(1, 4)}\ngzip = {rng.choice(('true', 'false'))}",
        f'layout = "{rng.choice(("packed", "stable"))}"',
        f'split-index = "{rng.choice(("each", "one"))}"',
    ]
    names: set[str] = set()
    wanted: list[str] = []
    rejects: list[tuple[str, int]] = []
    for number in range(rng.randint(1, 14)):
        name = word()
        if name.lower() in names:
            continue
        names.add(name.lower())
        file = f"in-{number}.csv"
        lines += ["[[set]]", f'name = "{name}"', f'input = "{file}"']
        lines += ['split-by = "value"'] if rng.random() < 0.5 else []
        bad = rng.choice((0, 0, 0.5, 1))
        with (case.folder / file).open("w", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["url", "value"])
            for row in range(1, rng.randint(1, 12)):
                if rng.random() < bad:
                    writer.writerow([rng.choice(("x:\n1", 'x:"', "ftp://a/")), word()])
                    rejects.append((file, row))
                else:
                    writer.writerow([f"{SITE}/{number}/{row}", word()])
                    wanted.append(f"{SITE}/{number}/{row}")
    (case.folder / "urlset.toml").write_text("\n".join(lines))
    ended = case.urlset("build", "--json", "-", "--verify-staged", statuses=(0, 1))
    report = json.loads(ended.out)
    out = case.folder / "out"
    case.check(report["rejected"] == len(rejects), f"{report['rejected']} of {len(rejects)}")
    _check_rejects(case, report["rejects"]["path"], rejects)
    if not wanted:
        case.check(ended.status == 1, ended)
        return
    case.check(ended.status == 0, ended)
    indexes = [index["path"] for index in report["indexes"]]
    shards = [name for index in indexes for name in listed(out / index)]
    paths = [*indexes, *shards]
    case.check(len({path.lower() for path in paths}) == len(paths), f"two of one name: {paths}")
    there = {path.name for path in out.iterdir()} - {".urlset"}
    case.check(there == set(paths), f"in no index, or missing: {there ^ set(paths)}")
    found = sorted(loc for name in shards for loc, _ in entries(out / name, case.rng))
    case.check(found == sorted(wanted), "rows are lost, or there twice")


def _check_rejects(case: Case, path: str | None, wanted: list[tuple[str, int]]) -> None:
    rows: list[tuple[str, int]] = []
    if path is not None:
        with (case.folder / path).open(newline="") as file:
            rows = [(Path(row["input"]).name, int(row["row"])) for row in csv.DictReader(file)]
    case.check(rows == wanted, f"rejects {rows}, wanted {wanted}")

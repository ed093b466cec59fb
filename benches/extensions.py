"""Bytes of XML per second with images and alternates in every row, against the plain rows.

python benches/extensions.py --rows 5M --repeat 5 --json benches/results/extensions.json

Both write about as many bytes: a row with 3 images and 8 alternates is some eleven times as long.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import check
import common
from catalog import LANGUAGES, MAX_ALTERNATES, MAX_IMAGES, at_least_one, row_count
from common import SCRATCH, BenchError, Cost

#: plain rows for one extended row
SHARE = 11


@dataclass
class Case:
    """A build and its cost."""

    rows: int
    source: Path
    options: list[str]
    xml: int = 0
    costs: list[Cost] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        """The summary, with bytes of XML per second."""
        cost = common.summary(self.costs)
        return {**cost, "rows": self.rows, "xml": self.xml, "rate": self.xml / cost["wall"]}


def cases(rows: int, images: int, alternates: int) -> dict[str, Case]:
    """The four: plain and extended rows, to gzip and to plain files."""
    few = max(1, rows // SHARE)
    more = ["--images", str(images), "--alternates", str(alternates)]
    mapped = [f"--image=image_{number + 1}" for number in range(images)]
    mapped += [f"--alternate={code}=url_{code}" for code in LANGUAGES[:alternates]]
    mapped += ["--lang", "en"] if alternates else []
    plain = common.catalog(rows, "csv")
    extended = common.catalog(few, "csv", 1, *more)
    return {
        "plain": Case(rows, plain, []),
        "extended": Case(few, extended, mapped),
        "plain-no-gzip": Case(rows, plain, ["--no-gzip"]),
        "extended-no-gzip": Case(few, extended, [*mapped, "--no-gzip"]),
    }


def look(out: Path, case: Case, images: int, links: int) -> None:
    """Whether all rows were written, by counting in the files; sets the bytes of XML."""
    urls = seen = linked = 0
    for path in check.shards(out):
        data = check.content(path)
        case.xml += len(data)
        urls += data.count(b"<loc>")
        seen += data.count(b"<image:loc>")
        linked += data.count(b"<xhtml:link ")
    if (urls, seen, linked) != (case.rows, images * case.rows, links * case.rows):
        raise BenchError(f"{urls} URLs with {seen} images and {linked} links were written")


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=5_000_000, help="plain; default 5M")
    parser.add_argument("--images", type=int, choices=range(1, MAX_IMAGES + 1), default=3)
    parser.add_argument("--alternates", type=int, choices=range(1, MAX_ALTERNATES + 1), default=8)
    parser.add_argument("--repeat", type=at_least_one, default=5)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    urlset = common.urlset()
    measured = cases(options.rows, options.images, options.alternates)
    out = SCRATCH / "extensions"
    for number in range(options.repeat):
        for name, case in measured.items():
            common.warm(case.source)
            command = common.build(case.source, common.fresh(out), *case.options, command=urlset)
            case.costs.append(common.measure(command))
            if number == 0:
                extended = name.startswith("extended")
                # the row itself is in its own list
                links = options.alternates + 1 if extended else 0
                look(out, case, options.images if extended else 0, links)
    shutil.rmtree(out)
    told = {name: case.told() for name, case in measured.items()}
    share = {
        name: 100 * told[f"extended{name}"]["rate"] / told[f"plain{name}"]["rate"]
        for name in ("", "-no-gzip")
    }
    mega = {name: one["rate"] / 1e6 for name, one in told.items()}
    says = (
        f"{options.images} images and {options.alternates} alternates per row, "
        f"{measured['extended'].rows:,} rows: {mega['extended']:,.0f} MB of XML per second to"
        " gzip, "
        f"{share['']:.0f} % of the {mega['plain']:,.0f} MB of {options.rows:,} plain rows; without "
        f"gzip {mega['extended-no-gzip']:,.0f} MB, {share['-no-gzip']:.0f} % of "
        f"{mega['plain-no-gzip']:,.0f} MB."
    )
    whole = {
        "rows": options.rows,
        "share_percent": share[""],
        "share_no_gzip_percent": share["-no-gzip"],
        **told,
        "says": says,
    }
    common.write_json(options.json, "extensions", arguments, whole)
    print(says)


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"extensions: {problem}")

"""Reading back: `urlset verify` and `urlset read` beside gzip and other readers of the same files.

    python benches/reading.py --install --rows 2M --repeat 5 --json benches/results/reading.json

Everybody reads the gzipped shards of one build, each once in a round; the table has medians. The
slow ones get the first part of the shards, and their rate is compared. ultimate-sitemap-parser
knows http alone and is served over the loopback by this process, whose time is not counted;
advertools reads the files through file:// URLs. A first round is not timed; what was read in it is
counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import check
import common
import contestants
import report
from catalog import at_least_one, row_count
from common import SCRATCH, BenchError, Cost

SLOW = 4  # peers read 1/SLOW of the shards


@dataclasses.dataclass
class Reader:
    """A reader, its command line, and the number of URLs that it has read, by its output."""

    key: str
    label: str
    urls: int
    command: list[str]
    version: Callable[[], str]
    #: None if there is nothing to count: the exit status decides
    count: Callable[[], int] | None = None
    costs: list[Cost] = dataclasses.field(default_factory=list)
    failed: str | None = None

    def told(self) -> dict[str, Any]:
        """The entry of the JSON."""
        told: dict[str, Any] = {"key": self.key, "label": self.label, "urls": self.urls}
        told["failed"] = self.failed
        if self.failed is None:
            measured = common.summary(self.costs)
            told |= {"version": self.version(), **measured}
            told["urls_per_second"] = self.urls / measured["wall"]
        return told


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=2_000_000, help="default 2M")
    parser.add_argument("--repeat", type=at_least_one, default=3, help="timed rounds (default 3)")
    parser.add_argument("--install", action="store_true", help="install the peers first")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    if options.install:
        contestants.install()
    whole, part = SCRATCH / "whole", SCRATCH / "part"
    source = common.catalog(options.rows, "csv")
    common.measure(common.build(source, common.fresh(whole)))
    shards = check.shards(whole)
    few = shards[: -(-len(shards) // SLOW)]
    with serving(common.fresh(part)) as site:
        for shard in few:
            (part / shard.name).hardlink_to(shard)
        write_index(part / "sitemap.xml", few, site)
        write_index(part / "files.xml", few, f"{part.as_uri()}/")
        (part / "robots.txt").write_text(f"Sitemap: {site}sitemap.xml\n")
        readers = everybody(whole, part, site, SCRATCH / "read")
        rounds(readers, [*shards, *few], options.repeat)
    shutil.rmtree(whole)
    shutil.rmtree(part)
    told = {
        "rows": options.rows,
        "repeat": options.repeat,
        "results": [reader.told() for reader in readers],
    }
    result = common.write_json(options.json, "reading", arguments, told)
    print(report.reading_table(result))
    print()
    print(report.targets_table([result]))


def everybody(whole: Path, part: Path, site: str, out: Path) -> list[Reader]:
    """All readers; `out` is a prefix of what they write."""
    urls = sum(map(check.count_urls, check.shards(whole)))
    fewer = sum(map(check.count_urls, check.shards(part)))
    urlset, cores = common.urlset(), common.cores()
    share = -(-len(check.shards(whole)) // (4 * cores))
    gzip = f"find {shlex.quote(str(whole))} -name '*.gz' -print0"
    gzip += f" | xargs -0 -P {cores} -n {share} gzip -t"
    table, frame, number = (out.with_suffix(end) for end in (".parquet", ".frame", ".txt"))
    own = functools.partial(common.tool_version, urlset, "--version")
    readers = [
        Reader("verify", "**urlset verify**", urls, [urlset, "verify", "-q", str(whole)], own),
        Reader("gzip", f"limit: gzip -t, {cores} processes", urls, ["sh", "-c", gzip],
               functools.partial(common.tool_version, "gzip", "--version")),
        Reader("usp", "ultimate-sitemap-parser, over http", fewer,
               peer("ultimate_sitemap_parser.py", site, number),
               contestants.pip_versions("ultimate-sitemap-parser"),
               lambda: int(number.read_text())),
        Reader("read", "**urlset read to Parquet**", urls,
               [urlset, "read", "-q", str(whole), "-o", str(table)], own,
               functools.partial(parquet_rows, table)),
        Reader("advertools", "advertools to Parquet", fewer,
               peer("advertools_read.py", (part / "files.xml").as_uri(), frame),
               contestants.pip_versions("advertools", "pandas"),
               functools.partial(parquet_rows, frame)),
    ]  # fmt: skip
    for reader in readers:
        if reader.command[0] == str(contestants.VENV_PYTHON):
            try:
                reader.version()
            except BenchError:
                reader.failed = "not installed (run with --install)"
    return readers


def peer(script: str, *arguments: str | Path) -> list[str]:
    """A peer's command line."""
    path = common.BENCHES / "peers" / script
    return [str(contestants.VENV_PYTHON), str(path), *map(str, arguments)]


def parquet_rows(path: Path) -> int:
    """The number of rows of a Parquet file."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def rounds(readers: list[Reader], inputs: list[Path], repeat: int) -> None:
    """Runs all in turn: one round that is checked, then `repeat` rounds that are timed."""
    for number in range(repeat + 1):
        for reader in readers:
            if reader.failed:
                continue
            for path in inputs:
                common.warm(path)
            try:
                cost = common.measure(reader.command)
                if number:
                    reader.costs.append(cost)
                elif reader.count and reader.count() != reader.urls:
                    raise BenchError(f"{reader.count()} URLs read, {reader.urls} expected")
                said = f"{cost.wall:.2f} s, {reader.urls / cost.wall / 1e6:.3f} M URLs/s"
            except BenchError as error:
                reader.failed = said = str(error)
            turn = f"{number}/{repeat}" if number else "untimed"
            print(f"[{turn}] {reader.key}: {said}", file=sys.stderr, flush=True)


def write_index(path: Path, shards: list[Path], base: str) -> None:
    """An index of files below an address."""
    entries = "".join(f"<sitemap><loc>{escape(base + one.name)}</loc></sitemap>" for one in shards)
    start = '<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns='
    path.write_text(
        f'{start}"http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'
    )


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serves a folder over the loopback; yields the address of its root."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return None

    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"reading: {problem}")

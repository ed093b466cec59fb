"""Builds to an object store beside the same builds to a folder; versitygw is the store.

    python benches/destinations.py --rows 10M --repeat 3 --json benches/results/destinations.json

In each round: a build from a local file into a folder, the same build into the store, a build from
a Parquet file in the store into a folder; then the shards of the folder are sent by the uploads of
urlset and by obstore with as many threads. The server runs on the same machine and shares its
cores. A first round is not timed. The requests of a build that changes nothing are counted by a
proxy. scripts/store-servers installs the server.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import common
from catalog import at_least_one, row_count
from common import SCRATCH, Cost

BUCKET = "site"
MIB = 1 << 20


def put_by_urlset(folder: Path, url: str) -> None:
    """Sends the shards of a folder through the uploads of a build."""
    from urlset.destination.headers import Headers
    from urlset.destination.uploads import Uploads
    from urlset.errors import PublishError
    from urlset.transport.store import open_store

    uploads = Uploads(open_store(url, error=PublishError), Headers().of_shard)
    for path in sorted(folder.glob("*.gz")):
        uploads.put(path.name, path.read_bytes(), "")
    uploads.finish()
    uploads.close()


def put_by_obstore(folder: Path, url: str) -> None:
    """Sends the same files by obstore alone, with as many threads."""
    from obstore.store import S3Store
    from urlset.destination.uploads import THREADS

    store = S3Store.from_url(
        url, endpoint=os.environ["AWS_ENDPOINT_URL"], client_options={"allow_http": True}
    )

    def put(path: Path) -> None:
        store.put(path.name, path.read_bytes(), use_multipart=False)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(put, sorted(folder.glob("*.gz"))))


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=2_000_000, help="default 2M")
    parser.add_argument("--repeat", type=at_least_one, default=3, help="timed rounds (default 3)")
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--put", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.put:
        who, folder, url = options.put
        (put_by_urlset if who == "urlset" else put_by_obstore)(Path(folder), url)
        return
    sys.path.insert(0, str(common.BENCHES.parent / "tests" / "python"))
    import store_servers

    source = common.catalog(options.rows, options.format)
    parquet = common.catalog(options.rows, "parquet")
    common.fresh(SCRATCH)
    with (
        tempfile.TemporaryDirectory(dir=common.WORK) as served,
        store_servers.versitygw(Path(served)) as server,
    ):
        os.environ.update(server.env)
        (Path(served) / "data" / BUCKET / "in.parquet").hardlink_to(parquet)
        costs = rounds(options.repeat, source, parquet, Path(served) / "data" / BUCKET)
        with store_servers.Proxy(server.port).running() as proxy:
            os.environ.update(server.through(proxy.port))
            url = f"s3://{BUCKET}/unchanged"
            common.measure(common.build(source, url))
            before = len(proxy.requests)
            common.measure(common.build(source, url))
            requests = len(proxy.requests) - before
    told = {name: common.summary(each) for name, each in costs.items()}
    show(told, requests, options.rows)
    common.write_json(
        options.json, "destinations", arguments, {"runs": told, "requests_unchanged": requests}
    )


def rounds(repeat: int, source: Path, parquet: Path, data: Path) -> dict[str, list[Cost]]:
    """The costs of each kind of run; the first round is not kept."""
    costs: dict[str, list[Cost]] = {}
    script = [sys.executable, str(Path(__file__).resolve()), "--put"]
    for number in range(repeat + 1):
        folder = SCRATCH / "out"
        store = f"s3://{BUCKET}/{number}"
        commands: dict[str, list[str]] = {
            "folder": common.build(source, common.fresh(folder)),
            "store": common.build(source, store),
            "put_urlset": [*script, "urlset", str(folder), f"{store}-a"],
            "put_obstore": [*script, "obstore", str(folder), f"{store}-b"],
            "read_local": common.build(parquet, SCRATCH / "local"),
            "read_store": common.build(f"s3://{BUCKET}/in.parquet", SCRATCH / "remote"),
        }
        for name, command in commands.items():
            for out in ("local", "remote"):
                common.fresh(SCRATCH / out)
            cost = common.measure(command)
            if number:
                costs.setdefault(name, []).append(cost)
            if name == "store":
                listed = len(list((data / str(number)).glob("*.gz")))
                assert listed == len(list(folder.glob("*.gz"))), "the two sets differ"
        for path in (str(number), f"{number}-a", f"{number}-b"):
            common.fresh(data / path)
    return costs


def show(told: dict[str, Any], requests: int, rows: int) -> None:
    """Prints the table of the targets."""

    def ratio(one: str, other: str) -> str:
        return f"{told[one]['wall'] / told[other]['wall']:.2f}"

    more = (told["store"]["peak_rss"] - told["folder"]["peak_rss"]) / MIB
    lines = [
        (f"{rows:,} rows to the store / to a folder", ratio("store", "folder"), "1.25", "1.05"),
        ("uploads alone / obstore alone", ratio("put_urlset", "put_obstore"), "1.20", "1.05"),
        ("peak memory over the build to a folder, MiB", f"{more:+.0f}", "+64", "+32"),
        ("nothing changed: requests", str(requests), "5", "3"),
        ("Parquet from the store / from a file", ratio("read_store", "read_local"), "1.50", "1.10"),
    ]
    print(f"{'':46}{'measured':>10}{'target':>8}{'moonshot':>10}")
    for name, measured, target, moonshot in lines:
        print(f"{name:46}{measured:>10}{target:>8}{moonshot:>10}")
    for name, each in told.items():
        print(f"  {name:12} {each['wall']:7.2f} s  {each['peak_rss'] / MIB:6.0f} MiB")


if __name__ == "__main__":
    main()

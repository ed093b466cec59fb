"""Same rows and options result in the same files, byte for byte, from any input.

The encoder gets the bytes of a shard at fixed offsets. The shards here are of several megabytes, so
that the blocks, row groups and spilled runs that they are made of end in many different places.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import urlset as package
from conftest import SITE, read_set

pytestmark = pytest.mark.long

ROWS = 60_000

#: libdeflate and both levels of ISA-L
LEVELS = ["fast", "default", "best"]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Rows in the order of their URLs; each has the value that the set may be split by."""
    pick = random.Random(12)
    words = [f"{pick.randrange(16**6):06x}" for _ in range(3_000)]
    urls = sorted(
        f"{SITE}/{'-'.join(pick.choices(words, k=pick.randrange(4, 24)))}-{number}"
        for number in range(ROWS)
    )
    dates = [f"2026-0{pick.randrange(1, 10)}-1{pick.randrange(10)}" for _ in urls]
    kinds = [pick.choice(["shoes", "hats", "Ü"]) for _ in urls]
    return pa.table({"url": urls, "lastmod": dates, "kind": kinds})


def write(table: pa.Table, path: Path, *, rows: int = 1 << 20) -> Path:
    """The table as a file; batches or row groups have ``rows`` rows."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    elif path.suffix == ".jsonl":
        with path.open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
    else:
        pacsv.write_csv(table, path)
    return path


def stored(out: Path) -> dict[str, str]:
    """Every published file by its path, with the digest of its bytes as they are on the disk."""
    files = (path for path in out.rglob("*") if path.is_file() and ".urlset" not in path.parts)
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def build(source: object, out: Path, **options: object) -> dict[str, str]:
    package.build(source() if callable(source) else source, site=SITE, out=out, **options)
    return stored(out)


@pytest.fixture(scope="module")
def inputs(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The same rows in every form."""
    folder = tmp_path_factory.mktemp("inputs")
    whole = write(table, folder / "c.csv")
    packed = folder / "c.csv.gz"
    packed.write_bytes(gzip.compress(whole.read_bytes(), 1))
    parts = [
        write(table.slice(at, length), folder / f"part-{at:05}.{ending}")
        for at, length, ending in [
            (0, 7, "csv"),
            (7, 24_993, "csv"),
            (25_000, 1, "csv"),
            (25_001, 34_999, "csv"),
        ]
    ]
    mixed = [
        write(table.slice(0, 20_011), folder / "m0.parquet", rows=3_000),
        write(table.slice(20_011, 20_000), folder / "m1.csv"),
        write(table.slice(40_011), folder / "m2.arrow", rows=777),
    ]
    return {
        "csv": whole,
        "csv.gz": packed,
        "four files": parts,
        "mixed": mixed,
        "parquet": write(table, folder / "a.parquet"),
        "parquet, row groups of 1,000": write(table, folder / "b.parquet", rows=1_000),
        "parquet, row groups of 17,001": write(table, folder / "c.parquet", rows=17_001),
        "arrow": write(table, folder / "a.arrow", rows=50_000),
        "arrow, batches of 99": write(table, folder / "b.arrow", rows=99),
        "jsonl": write(table, folder / "c.jsonl"),
        "table": table,
        # created for each build, since it can be read only once
        "reader": lambda: table.to_reader(1_234),
    }


@pytest.mark.parametrize("level", LEVELS)
def test_every_input_gives_the_same_files(
    inputs: dict[str, object], tmp_path: Path, level: str
) -> None:
    wanted = build(inputs["csv"], tmp_path / "wanted", level=level, threads=1, max_urls=25_000)
    assert len(wanted) == 4
    for number, (name, source) in enumerate(inputs.items()):
        out = tmp_path / str(number)
        threads = [1, 2, 7][number % 3]
        made = build(source, out, level=level, threads=threads, max_urls=25_000)
        assert made == wanted, f"{name}, level {level}, {threads} threads"


@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_sorted_rows_and_values_that_the_set_is_split_by(
    inputs: dict[str, object], tmp_path: Path, layout: str
) -> None:
    """With ``--sort`` where the order is the same, and with a set for each value."""
    plain = {"layout": layout, "max_urls": 25_000}
    wanted = build(inputs["csv"], tmp_path / "wanted", **plain)
    split = {**plain, "split_by": "kind"}
    wanted_split = build(inputs["csv"], tmp_path / "split", **split)
    assert len(wanted_split) >= 4
    for number, name in enumerate(inputs):
        source = inputs[name]
        threads = [1, 2, 7][number % 3]
        made = build(source, tmp_path / f"{number}-sorted", sort=True, threads=threads, **plain)
        assert made == wanted, name
        made = build(source, tmp_path / f"{number}-split", threads=threads, **split)
        assert made == wanted_split, name
        made = build(source, tmp_path / f"{number}-both", sort=True, threads=threads, **split)
        assert made == wanted_split, name


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "arrow stream"])
def test_standard_input(
    inputs: dict[str, object], table: pa.Table, tmp_path: Path, ending: str
) -> None:
    wanted = build(inputs["csv"], tmp_path / "wanted")
    if ending == "arrow stream":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=4_321)
        data = sink.getvalue().to_pybytes()
    else:
        data = Path(str(inputs[ending])).read_bytes()
    out = tmp_path / "out"
    command = [sys.executable, "-m", "urlset", "build", "-", "--site", SITE, "--out", str(out)]
    command += ["--format", ending.split(".")[0].removesuffix(" stream")]
    done = subprocess.run(command, input=data, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert stored(out) == wanted


def test_the_files_hold_the_rows_in_their_order(
    inputs: dict[str, object], table: pa.Table, tmp_path: Path
) -> None:
    """Python's gzip and expat read back the rows of the input."""
    out = tmp_path / "out"
    build(inputs["parquet, row groups of 1,000"], out)
    rows = [(entry["loc"], entry["lastmod"]) for entry in read_set(out)]
    assert rows == list(zip(table["url"].to_pylist(), table["lastmod"].to_pylist(), strict=True))

"""Builds from many damaged Arrow files in one process; the tests look at what it prints.

    python arrow_cases.py SEED COUNT FOLDER

Of each case it prints the number before, and after it the end: an exit status, or what is wrong.
"""

from __future__ import annotations

import csv
import io
import random
import re
import signal
import sys
import warnings
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import urlset

SITE = "https://www.shop.example"
ROWS = 300
#: seconds of a case
MOST = 20

URLS = [f"/a/{n}/" + "x" * (n % 30) for n in range(ROWS)]
IMAGES = [[f"/i{k}.jpg" for k in range(n % 3)] for n in range(ROWS)]
ALTS = [[("de", f"/de/{n}"), ("fr", f"/fr/{n}")] if n % 3 else None for n in range(ROWS)]


def column(kind: str) -> pa.Array:
    match kind:
        case "dictionary":
            return pa.array([URLS[n // 2] for n in range(ROWS)]).dictionary_encode()
        case _:
            return pa.array(URLS, pa.type_for_alias(kind))


def table(kind: str, nested: str) -> pa.Table:
    columns = {"url": column(kind), "more": pa.array(URLS)}
    match nested:
        case "list":
            columns["images"] = pa.array(IMAGES, pa.list_(pa.string()))
        case "large_list":
            columns["images"] = pa.array(IMAGES, pa.large_list(pa.string_view()))
        case "list_view":
            columns["images"] = pa.array(IMAGES, pa.list_view(pa.string()))
        case "fixed":
            columns["images"] = pa.array([["/i.jpg"] * 2] * ROWS, pa.list_(pa.string(), 2))
        case "list_of_struct":
            one = pa.struct([("loc", pa.string())])
            rows = [[{"loc": url} for url in urls] for urls in IMAGES]
            columns["images"] = pa.array(rows, pa.list_(one))
        case "list_of_dictionary":
            flat = pa.array([url for urls in IMAGES for url in urls]).dictionary_encode()
            ends = [0]
            for urls in IMAGES:
                ends.append(ends[-1] + len(urls))
            columns["images"] = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat)
        case "map":
            columns["alts"] = pa.array(ALTS, pa.map_(pa.string(), pa.string()))
        case "scalars":
            columns["lastmod"] = pa.array(range(ROWS), pa.timestamp("us", "UTC"))
            columns["priority"] = pa.array([0.5] * ROWS)
    return pa.table(columns)


KINDS = ("string", "large_string", "string_view", "dictionary")
NESTED = (
    "none", "none", "none", "list", "large_list", "list_view", "fixed", "list_of_struct",
    "list_of_dictionary", "map", "scalars",
)  # fmt: skip


def options_for(data: pa.Table) -> dict[str, object]:
    more: dict[str, object] = {"loc": "url", "max_rejects": "100%", "gzip": False}
    if "images" in data.column_names:
        more["image"] = ["images"]
    if "alts" in data.column_names:
        more |= {"alternate": "alts", "lang": "en"}
    return more


def written(dice: random.Random, path: Path, data: pa.Table) -> bool:
    """Writes a file; returns whether its content is not compressed."""
    hows = ["file", "stream"]
    if len(data.column_names) == 2:
        hows += ["polars", "polars stream"]
    how = dice.choice(hows)
    squeezed = dice.choice([None, None, "lz4", "zstd"])
    if how.startswith("polars"):
        frame = pl.DataFrame(data)
        frame = pl.concat([frame[: ROWS // 2], frame[ROWS // 2 :]], rechunk=False)
        kind = squeezed or "uncompressed"
        (frame.write_ipc_stream if "stream" in how else frame.write_ipc)(path, compression=kind)
        return squeezed is None
    options = pa.ipc.IpcWriteOptions(
        compression=squeezed, emit_dictionary_deltas=dice.random() < 0.5
    )
    make = pa.ipc.new_file if how == "file" else pa.ipc.new_stream
    with make(path, data.schema, options=options) as writer:
        writer.write_table(data, max_chunksize=dice.choice([ROWS, 100]))
    return squeezed is None


def mutate(dice: random.Random, path: Path) -> None:
    whole = bytearray(path.read_bytes())
    match dice.choice(["bytes", "bytes", "words", "words", "ends", "cut", "swap", "insert"]):
        case "bytes":
            for _ in range(dice.choice([1, 1, 3, 20])):
                at = dice.randrange(len(whole))
                whole[at] = dice.choice(
                    [0, 1, 0x7F, 0x80, 0xFF, whole[at] ^ (1 << dice.randrange(8))]
                )
        case "words":  # lengths, offsets, keys, views
            for _ in range(dice.choice([1, 2, 10])):
                at = dice.randrange(len(whole) // 4) * 4
                value = dice.choice(
                    [0, 1, 100, 1 << 16, 1 << 24, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
                )
                whole[at : at + 4] = value.to_bytes(4, "little")
        case "ends":  # the schema and the directory
            for _ in range(dice.choice([1, 3])):
                at = dice.choice([dice.randrange(min(700, len(whole))), -dice.randrange(1, 700)])
                whole[max(at, -len(whole))] = dice.randrange(256)
        case "cut":
            del whole[dice.randrange(len(whole)) :]
        case "swap":
            at, to = (dice.randrange(len(whole) // 8) * 8 for _ in range(2))
            whole[at : at + 64], whole[to : to + 64] = whole[to : to + 64], whole[at : at + 64]
        case "insert":
            at = dice.randrange(len(whole))
            whole[at:at] = dice.randbytes(dice.choice([1, 8, 64]))
    path.write_bytes(whole)


def foreign(path: Path, out: Path) -> str | None:
    """Text in the output that is not in the file."""
    inside = path.read_bytes()
    for shard in out.glob("*.xml"):
        for loc in re.findall(rb"<(?:image:)?loc>(.*?)</", shard.read_bytes()):
            text = loc.removeprefix(SITE.encode()).lstrip(b"/")  # as a relative one gets it
            if re.search(rb"[%&]", text) is None and text not in inside and b".xml" not in text:
                return f"{text!r} is not in the file"
    rejects = out / ".urlset" / "rejects.csv"
    if rejects.exists():
        for row in csv.DictReader(io.StringIO(rejects.read_text("utf-8"))):
            for piece in re.split(r"\\x[0-9a-f]{2}|\\.|…|\.\.\.", row["value"]):
                if piece.encode() not in inside and '"' not in piece:
                    return f"{piece!r} of the rejects is not in the file"
    return None


def pyarrow_file(path: Path) -> object:
    """The rows that pyarrow reads from the file."""
    if path.read_bytes()[:6] == b"ARROW1":
        return pa.ipc.open_file(path)
    return pa.ipc.open_stream(path)


def source_of(way: str, path: Path) -> object:
    match way:
        case "path":
            return path
        case "pyarrow reader":
            opened = pyarrow_file(path)
            if isinstance(opened, pa.RecordBatchReader):
                return opened
            batches = (opened.get_batch(n) for n in range(opened.num_record_batches))
            return pa.RecordBatchReader.from_batches(opened.schema, batches)
        case "pyarrow table":
            return pyarrow_file(path).read_all()
        case "dataset":
            return pads.dataset(path, format="ipc")
    raise ValueError(way)


def late(*_: object) -> None:
    raise SystemExit("a case takes too long")


def case(seed: int, folder: Path) -> str:
    dice = random.Random(seed)
    path, out = folder / f"{seed}.arrow", folder / str(seed)
    data = table(dice.choice(KINDS), dice.choice(NESTED))
    plain = written(dice, path, data)
    mutate(dice, path)
    way = dice.choice(["path"] * 5 + ["pyarrow reader", "pyarrow table", "dataset"])
    signal.alarm(MOST)
    try:
        source = source_of(way, path)
    except (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError):
        signal.alarm(0)
        return "pyarrow"
    try:
        urlset.build(source, site=SITE, out=out, **options_for(data))
    except urlset.Error as error:
        if list(out.glob("*.xml")):
            return f"wrong: {error.code}, but something was published"
        if "\n" in str(error):
            return f"wrong: {str(error)!r} has several lines"
        end = f"{type(error).__name__} {error.code}"
    else:
        end = "built"
    finally:
        signal.alarm(0)
    strange = foreign(path, out) if plain and path.exists() and way == "path" else None
    return f"wrong: {strange}" if strange else end


def main() -> None:
    first, count, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    for seed in range(first, first + count):
        print(seed, end=" ", flush=True)
        print(case(seed, folder), flush=True)


if __name__ == "__main__":
    main()

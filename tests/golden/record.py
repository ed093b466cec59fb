"""Runs the cases and records what must not change: bytes, numbers, keys and codes.

``python tests/golden/record.py`` replaces the recorded file; do so only where a change of the
results is intended, and look at the difference.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import urlset as us

sys.path.insert(0, str(Path(__file__).parent))
from cases import SITE, Case, Rows, cases

RECORDED = Path(__file__).with_name("recorded.json")
#: keys whose values depend on the machine, the clock or the encoder
VOLATILE = {
    "seconds",
    "peak_rss",
    "timings",
    "version",
    "urlset",
    "compressed_bytes",
    "mtime_ns",
    "changed_at",
    "config",
    "message",
    "history",  # times, and sizes after compression
}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def steady(value: Any, folder: str) -> Any:
    """``value`` without volatile parts; ``DIR`` replaces the folder of the case."""
    if isinstance(value, dict):
        return {key: steady(v, folder) for key, v in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [steady(v, folder) for v in value]
    return value.replace(folder, "DIR") if isinstance(value, str) else value


def source(case: Case, rows: Rows, folder: Path) -> Any:
    """The rows in the form of the case."""
    table = pa.Table.from_pylist(rows)
    path = folder / f"catalog.{case.form}"
    if case.form == "table":
        return table
    if case.form == "parquet":
        pq.write_table(table, path)
    elif case.form == "arrow":
        pyarrow.feather.write_feather(table, path)
    elif case.form == "jsonl":
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            for row in rows:
                values = {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()}
                writer.writerow(values)
    return path


def published(out: Path) -> dict[str, str]:
    """The uncompressed bytes of every file of the set, as a digest."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and not name.startswith(".urlset"):
            data = path.read_bytes()
            found[name] = digest(gzip.decompress(data) if name.endswith(".gz") else data)
    return found


def rejects(report: us.Report) -> list[list[str]]:
    """The rows of the reject file without the input; of messages only their presence."""
    path = report.rejects["path"]
    if path is None:
        return []
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(row["message"] for row in rows)
    return [[row["row"], row["column"], row["code"], digest(row["value"].encode())] for row in rows]


def read(out: Path) -> list[Any]:
    """The rows of ``read``, or the code of its error."""
    try:
        table = us.read(out).read_all()
    except us.Error as error:
        return [error.code]
    rows = json.dumps(table.to_pylist(), default=str, sort_keys=True).encode()
    return [table.num_rows, table.schema.names, digest(rows)]


def run(case: Case) -> dict[str, Any]:
    """The result of the case."""
    with tempfile.TemporaryDirectory(prefix="urlset-golden-") as name:
        folder = Path(name)
        out = folder / "out"
        options = {"site": SITE, "out": out} | case.options
        result: dict[str, Any] = {}
        if case.former is not None:
            us.build(source(case, case.former, folder), **options)
            former = folder / "former"
            shutil.copytree(out, former)
        try:
            changes = {"changes": folder / "changes.csv"} if case.former is not None else {}
            report = us.build(source(case, case.rows, folder), **options, **changes)
        except us.Error as error:
            return {"error": [type(error).__name__, error.code], "files": published(out)}
        result["report"] = steady(report.to_dict(), name)
        result["rejects"] = rejects(report)
        result["files"] = published(out)
        manifest = next((p for p in sorted((out / ".urlset").rglob("manifest.json"))), None)
        if manifest is not None:
            result["manifest"] = digest(
                json.dumps(steady(json.loads(manifest.read_bytes()), name), sort_keys=True).encode()
            )
        if changes:
            result["changes"] = digest(changes["changes"].read_bytes())
        if report.published:
            checked = us.verify(out)
            result["verify"] = {"ok": checked.ok, "counts": checked.counts, "urls": checked.urls}
            result["read"] = read(out)
            if case.former is not None:
                difference = us.diff(former, out)
                rows = json.dumps(difference.read_all().to_pylist(), default=str).encode()
                result["diff"] = [str(difference.counts), digest(rows)]
        return result


def record() -> dict[str, Any]:
    """The results of all cases, by name."""
    results = {}
    for case in cases():
        assert case.name not in results, case.name
        results[case.name] = run(case)
    return results


if __name__ == "__main__":
    lines = [
        f"{json.dumps(name)}: {json.dumps(result, sort_keys=True, ensure_ascii=False)}"
        for name, result in record().items()
    ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

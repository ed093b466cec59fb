"""Builds with ``--lastmod-from`` whose result is read as a crawler reads it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import urlset
from conftest import SITE, read_set

ONE, TWO, THREE = (f"2026-11-2{day}T03:00:00Z" for day in (1, 2, 3))


def table(rows: Iterable[tuple[str, Any]], kind: Any = None) -> pa.Table:
    locs, values = zip(*rows, strict=True)
    return pa.table({"loc": [f"{SITE}{loc}" for loc in locs], "value": pa.array(values, kind)})


def written(folder: Path, rows: Iterable[Sequence[Any]], *names: str) -> Path:
    path = folder / "catalog.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def build(source: Any, out: Path, now: str, **options: Any) -> dict[str, Any]:
    options = {"lastmod_from": "value", "max_shrink": "100%", **options}
    found = urlset.build(source, site=SITE, out=out, now=now, **options).lastmod
    assert found is not None
    return found


def times(out: Path) -> dict[str, str | None]:
    return {e["loc"].removeprefix(SITE): e.get("lastmod") for e in read_set(out)}


def stamps(out: Path) -> Path:
    (path,) = (out / ".urlset").glob("lastmod*")
    return path

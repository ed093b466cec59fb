"""A plain model of ``--lastmod-from``, and random catalogs in many representations."""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from conftest import SITE

#: the columns whose content counts; ``stock`` never does
CONTENT = ("active", "price", "ratio", "seen", "title")
#: texts that differ, though some of them look alike
TITLES = (
    "A", "a", "007", "7", "1e5", "100000", "Ä, \"quoted\"", "two\nlines", "1.2.3", "-", " 7", "7-",
    "2026-01-01x", "0x7", "1_000", "+7", "", None,
)  # fmt: skip
RATIOS = (0.1, 19.99, 1 / 3, 1e-7, 2.5e20, 123456.789, 0.30000000000000004, -0.5, None)


@dataclass(frozen=True)
class Row:
    """A row of a catalog by its values, whatever their representation."""

    loc: str
    values: tuple[Any, ...]  # in the order of CONTENT
    updated: str = ""  # the mapped lastmod

    def content(self, columns: tuple[str, ...]) -> tuple[Any, ...]:
        # an empty text is nothing
        pairs = zip(CONTENT, self.values, strict=True)
        return tuple(
            (name, None if value == "" else value) for name, value in pairs if name in columns
        )


@dataclass
class Model:
    """What the next build must know; times are texts of sitemaps, None is no lastmod."""

    columns: tuple[str, ...] | None = None
    live: dict[str, list[tuple[Any, str | None]]] = field(default_factory=dict)
    gone: dict[str, tuple[list[tuple[Any, str | None]], datetime]] = field(default_factory=dict)

    def night(
        self, rows: list[Row], columns: tuple[str, ...], now: datetime, forget: timedelta
    ) -> tuple[Model, list[tuple[str, str | None]]]:
        """The model after a build of these rows, and the entries that must be live."""
        text = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        compares = self.columns == columns
        after = Model(columns)
        entries = []
        for row in rows:
            content = row.content(columns)
            known = self.known(row.loc, now, forget)
            times = [time for _, time in known]
            same = [time for value, time in known if value == content]
            if not known:
                time = row.updated or (None if self.columns is None else text)
            elif same and compares:
                time = newest(same)
            elif not compares or any(value == "unknown" for value, _ in known):
                time = newest(times)
            else:
                time = newest([*times, text])
            after.live.setdefault(row.loc, []).append((content, time))
            entries.append((row.loc, time))
        for loc, stamps in self.live.items():
            if loc not in after.live and forget > timedelta(0):
                after.gone[loc] = (stamps, now)
        for loc, (stamps, since) in self.gone.items():
            if loc not in after.live and now - since < forget:
                after.gone[loc] = (stamps, since)
        if not compares:
            for loc, (stamps, since) in after.gone.items():
                after.gone[loc] = ([("unknown", time) for _, time in stamps], since)
        return after, entries

    def known(self, loc: str, now: datetime, forget: timedelta) -> list[tuple[Any, str | None]]:
        if loc in self.gone and now - self.gone[loc][1] < forget:
            return self.gone[loc][0]
        return self.live.get(loc, [])


def newest(times: list[str | None]) -> str | None:
    """A date is older than each time on it; nothing is older than everything."""
    return max((time for time in times if time is not None), default=None)


class Catalog:
    """A catalog that changes from night to night."""

    def __init__(self, seed: int, *, mapped: bool, duplicates: bool) -> None:
        self.random = random.Random(seed)
        self.mapped, self.duplicates = mapped, duplicates
        self.made = 0
        self.former: list[Row] = []
        self.rows = [self.row() for _ in range(self.random.randrange(5, 80))]

    def row(self) -> Row:
        self.made += 1
        pick = self.random
        price = Decimal(pick.randrange(0, 5000)) / pick.choice((1, 10, 100, 100))
        day = datetime(2026, pick.randrange(1, 10), pick.randrange(1, 28))
        moment = day + timedelta(seconds=pick.choice((0, pick.randrange(86_400))))
        values = (
            pick.choice((True, False, None)),
            pick.choice((price, price, None)),
            pick.choice(RATIOS),
            pick.choice((moment, None)),
            pick.choice(TITLES),
        )
        updated = pick.choice(("", "2025-03-04", "2025-03-04T05:06:07Z")) if self.mapped else ""
        return Row(f"{SITE}/p/{self.made}?a=1&b=2", values, updated)

    def change(self) -> None:
        """A night: some rows change, come, go, come back, move."""
        pick, rows = self.random, self.rows
        for at in pick.sample(range(len(rows)), len(rows) // pick.choice((4, 20))):
            other, column = self.row().values, pick.randrange(len(CONTENT))
            values = list(rows[at].values)
            values[column] = other[column]
            rows[at] = replace(rows[at], values=tuple(values))
        for _ in range(pick.choice((0, 1, len(rows) // 5))):
            if len(rows) > 3:
                self.former.append(rows.pop(pick.randrange(len(rows))))
        for _ in range(pick.choice((0, 0, 1, 4))):
            rows.insert(pick.randrange(len(rows) + 1), self.row())
        if self.former and pick.random() < 0.5:
            back = self.former.pop(pick.randrange(len(self.former)))
            if all(back.loc != row.loc for row in rows):
                rows.insert(pick.randrange(len(rows) + 1), back)
        if self.duplicates and pick.random() < 0.6:
            twin = replace(pick.choice(rows), values=self.row().values)
            rows.insert(pick.randrange(len(rows) + 1), twin)
            rows.insert(pick.randrange(len(rows) + 1), pick.choice(rows))
        if pick.random() < 0.15:
            pick.shuffle(rows)

    def write(self, folder: Path, night: int) -> Path:
        """The catalog as CSV or Parquet, in a representation chosen at random."""
        pick = self.random
        names = ["loc", "stock", *CONTENT, *(["updated"] if self.mapped else [])]
        pick.shuffle(names)
        if pick.random() < 0.5:
            path = folder / f"{night}.csv"
            write_csv(path, self.rows, names, pick)
        else:
            path = folder / f"{night}.parquet"
            write_parquet(path, self.rows, names, pick)
        return path


def values_of(row: Row, pick: random.Random) -> dict[str, Any]:
    own = dict(zip(CONTENT, row.values, strict=True))
    return {"loc": row.loc, "updated": row.updated, "stock": pick.randrange(9), **own}


def write_csv(path: Path, rows: list[Row], names: list[str], pick: random.Random) -> None:
    time = pick.choice(("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.000+00:00"))

    def text(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return pick.choice((str(value), str(value).lower()))
        if isinstance(value, datetime):
            is_midnight = value == value.replace(hour=0, minute=0, second=0)
            return value.strftime("%Y-%m-%d" if is_midnight and pick.random() < 0.5 else time)
        if isinstance(value, Decimal):
            whole = value == value.to_integral_value()
            plain = str(int(value)) if whole else str(value.normalize())
            return pick.choice((plain, f"{value:.2f}", f"{value:.4f}"))
        return str(value)

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            found = values_of(row, pick)
            writer.writerow([text(found[name]) for name in names])


def write_parquet(path: Path, rows: list[Row], names: list[str], pick: random.Random) -> None:
    found = [values_of(row, pick) for row in rows]
    columns = {name: [row[name] for row in found] for name in names}
    prices = columns["price"]
    whole = all(p is None or p == p.to_integral_value() for p in prices)
    kinds = [pa.float64(), pa.float32(), pa.decimal128(12, 2), pa.decimal128(20, 5), pa.string()]
    kind = pick.choice([*kinds, *([pa.int16(), pa.uint64()] if whole else [])])
    if pa.types.is_floating(kind):
        prices = [None if p is None else float(p) for p in prices]
        price = pa.array(prices, pa.float64()).cast(kind)
        if kind == pa.float32() and pick.random() < 0.5:
            price = price.cast(pa.float64())  # the same values, in the other width
    elif pa.types.is_integer(kind):
        price = pa.array([None if p is None else int(p) for p in prices], kind)
    elif kind == pa.string():
        price = pa.array([None if p is None else f"{p:.3f}" for p in prices])
    else:
        price = pa.array(prices, kind)
    title = pa.array(columns["title"], pa.string())
    title = title.cast(pick.choice((pa.string(), pa.large_string(), pa.string_view())))
    if pick.random() < 0.3:
        title = pa.array(columns["title"], pa.string()).dictionary_encode()
    unit, zone = pick.choice(["s", "ms", "us", "ns"]), pick.choice((None, "UTC", "Asia/Tokyo"))
    seen = [None if s is None else s.replace(tzinfo=UTC) for s in columns["seen"]]
    arrays = {
        "price": price,
        "title": title,
        "seen": pa.array(seen, pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC")),
        "ratio": pa.array(columns["ratio"], pa.float64()),
        "active": pa.array(columns["active"], pa.bool_()),
        "stock": pa.array(columns["stock"], pick.choice((pa.int8(), pa.int64()))),
    }
    if zone is None:
        arrays["seen"] = arrays["seen"].cast(pa.timestamp(unit))
    else:
        arrays["seen"] = arrays["seen"].cast(pa.timestamp(unit, zone))
    table = pa.table({name: arrays.get(name, columns[name]) for name in names})
    pq.write_table(table, path, row_group_size=pick.choice((3, 50, 1_000)))

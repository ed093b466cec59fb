"""lastmod from content: random values against plain rules of which of them are equal."""

from __future__ import annotations

import csv
import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import urlset
from conftest import SITE, read_set

ONE, TWO = "2026-11-21T03:00:00Z", "2026-11-22T03:00:00Z"
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", re.ASCII)
TIME = re.compile(
    r"\s*(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?"
    r"(?: ?(?:[Zz]|UTC|GMT|([+-])(\d\d):?(\d\d)?))?)?\s*",
    re.ASCII,
)


def meaning(text: str) -> Any:
    """What docs/lastmod.md says that a text is; texts are equal if this is."""
    if text in {"", "NaN", "nan"}:
        return None
    if text in {"true", "True", "TRUE"}:
        return True, bool
    if text in {"false", "False", "FALSE"}:
        return False, bool
    if NUMBER.fullmatch(text):
        return number(Decimal(text))
    if (found := TIME.fullmatch(text)) is not None:
        *parts, sign, hours, minutes = found.groups()
        year, month, day, hour, minute, second = (int(part or 0) for part in parts)
        east = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        try:
            moment = datetime(year, month, day, hour, minute, second)
            if int(minutes or 0) < 60 and east <= timedelta(hours=14):
                return moment + east if sign == "-" else moment - east
        except (ValueError, OverflowError):
            pass
    return text


def number(value: Decimal) -> Decimal:
    """The value; that of a float of 32 bits if a float of 64 bits has it for that reason."""
    digits = value.normalize().as_tuple()
    assert isinstance(digits.exponent, int)
    if 7 <= len(digits.digits) <= 18 and digits.exponent < 0:
        short = np.float32(float(value))
        if float(short) == float(value):
            return Decimal(np.format_float_positional(short, unique=True))
    return value


def some_text(pick: random.Random) -> str:
    """A text that is, or almost is, one of the kinds."""
    kind = pick.randrange(6)
    if kind == 0:
        return "".join(pick.choices("0017.9-", k=pick.randrange(1, 12)))
    if kind == 1:
        return "".join(pick.choices("0123456789", k=pick.randrange(1, 24)))
    if kind == 2:
        value = Decimal(pick.randrange(10 ** pick.randrange(1, 18))) / 10 ** pick.randrange(12)
        return f"{'-' * (pick.random() < 0.2)}{value:f}"
    if kind == 3:
        return repr(float(np.float32(pick.random() * 10 ** pick.randrange(7))))
    if kind == 4:
        time = datetime.fromtimestamp(pick.randrange(-(10**10), 10**10), UTC)
        midnight = pick.choice(
            (time, time.replace(hour=0, minute=0, second=0), time.replace(month=2, day=28))
        )
        form = pick.choice(
            ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+02:00")
        )
        return midnight.strftime(form)
    words = "".join(pick.choices("ab cé€0", k=pick.choice((1, 4, 8, 9, 15, 16, 17, 80, 300))))
    return pick.choice((words, words.strip(), "true", "False", "nan", "TRUE", ""))


def near(text: str, pick: random.Random) -> str:
    """The same value in another form, or almost."""
    kind = pick.randrange(8)
    if kind == 0:
        return text + "0"
    if kind == 1:
        return f"{text}.0" if "." not in text else f"{text}00"
    if kind == 2 and text:
        at = pick.randrange(len(text))
        return text[:at] + pick.choice("0123456789.-ab") + text[at + 1 :]
    if kind == 3 and text:
        at = pick.randrange(len(text))
        return text[:at] + text[at + 1 :]
    if kind == 4:
        return text.replace("T", " ").removesuffix("Z")
    if kind == 5:
        return f"{text}T00:00:00Z"
    if kind == 6:
        return text.replace("T00:00:00Z", "").replace(" 00:00:00", "")
    return text


def catalog(path: Path, values: list[str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = ((f"{SITE}/{at}", value, "x") for at, value in enumerate(values))
        csv.writer(file).writerows([("loc", "value", "other"), *rows])
    return path


@pytest.mark.parametrize("seed", range(3))
def test_random_texts(tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)
    before = [some_text(pick) for _ in range(6_000)]
    after = [near(text, pick) for text in before]
    pairs = list(zip(before, after, strict=True))
    out, options = tmp_path / "out", {"site": SITE, "lastmod_from": "value,other", "now": ONE}
    first, second = ([pair[at] for pair in pairs] for at in (0, 1))
    urlset.build(catalog(tmp_path / "a.csv", first), out=out, **options)
    if seed == 1:
        source: Any = pa.table({
            "loc": [f"{SITE}/{at}" for at in range(len(pairs))],
            "value": pa.array(second, pa.string_view()), "other": ["x"] * len(pairs),
        })  # fmt: skip
    else:
        source = catalog(tmp_path / "b.csv", second)
    urlset.build(source, out=out, **options | {"now": TWO})
    found = {entry["loc"]: "lastmod" in entry for entry in read_set(out)}
    for at, (a, b) in enumerate(pairs):
        assert found[f"{SITE}/{at}"] == (meaning(a) != meaning(b)), (a, b)
    assert 1_000 < sum(found.values()) < 5_000

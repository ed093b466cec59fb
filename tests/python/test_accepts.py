"""What ``build`` publishes without a warning, ``verify --strict`` accepts."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset

pytestmark = pytest.mark.long

SITE = "https://www.shop.example"
HOSTS = ["www.shop.example", "m.shop.example", "other.example:8080", "b.shop.example"]
TODAY = datetime.now(UTC).replace(microsecond=0)

Random = random.Random
#: values of a cell, most of them legal
CELLS: dict[str, Callable[[Random], Any]] = {
    "changed": lambda r: r.choice(
        ["2024", "2024-05", "2024-05-06", "2024-05-06T07:08Z", "2024-05-06T07:08:09.5+02:00",
         "06.05.2024", "", None, "2019-02-29", "1714980000",
         (TODAY - timedelta(hours=1)).isoformat(),
         f"{TODAY:%Y-%m-%d}", "0001-01-01", "20240506"]
    ),
    "freq": lambda r: r.choice(["daily", " Weekly", "never", "", None, "sometimes"]),
    "prio": lambda r: r.choice(["0.5", "1", "0", "1.0", "0,5", "", None, "2", "0.123456", "1e-1"]),
    "image": lambda r: r.choice(
        [f"{SITE}/i {r.random()}.jpg", "https://cdn.example/ü.png", "", None, "x.png",
        "//a.example/x",
         '["https://cdn.example/1.png", "https://cdn.example/2.png"]']
    ),
    "de": lambda r: r.choice([f"{SITE}/de/{r.random()}", "/de", "", None, "https://de.example/x"]),
    "fr": lambda r: r.choice([f"{SITE}/fr/{r.random()}", "", None]),
    "brand": lambda r: r.choice(["a", "b", "ü x", "B", "", None]),
    "title": lambda r: r.choice(
        ["A title", "x" * 90, "x" * 101, "x" * 3_000, "<b>&amp;</b>", "", None]
    ),
    "text": lambda r: r.choice(["About it", "x" * 2_048, "x" * 2_049, "y\x01z", "", None]),
    "media": lambda r: r.choice([f"{SITE}/v.mp4", "https://cdn.example/v.mp4", "", None]),
    "number": lambda r: r.choice(["0", "1", "5", "28800", "28801", "x", "", None, "3.5"]),
    "word": lambda r: r.choice(["yes", "no", "DE AT", "de", "web", "web tv", "", None, "maybe"]),
    "when": lambda r: (TODAY - timedelta(days=r.choice([0, 1, 5, 900]))).isoformat(),
    "language": lambda r: r.choice(["de", "en", "zh-cn", "german", "eng"]),
}  # fmt: skip


#: the same, without those that cause a warning
CLEAN: dict[str, Callable[[Random], Any]] = {
    "changed": lambda r: r.choice(["2024", "2024-05", "2024-05-06T07:08Z", "2024-05-06", "", None]),
    "freq": lambda r: r.choice(["daily", "never", "", None]),
    "prio": lambda r: r.choice(["0.5", "1", "0", "", None, "0.123456"]),
    "image": lambda r: r.choice(
        [f"{SITE}/i {r.random()}.jpg", "https://cdn.example/ü.png", "", None]
    ),
    "de": lambda r: f"{SITE}/de/{r.random()}",
    "fr": lambda r: f"{SITE}/fr/{r.random()}",
    "title": lambda r: r.choice(["A title", "x" * 90, "x" * 101, "<b>&amp;</b>", "it's"]),
    "text": lambda r: r.choice(["About it", "x" * 2_048, "y\u2028z"]),
    "media": lambda r: r.choice([f"{SITE}/v.mp4", "https://cdn.example/v.mp4"]),
    "number": lambda r: r.choice(["1", "5", "", None]),
    "word": lambda r: None,
}  # fmt: skip


TAILS = [
    "?a=1&b=2", "?q=ü", "/a b", "'s", "#top", "/%C3%BC", "//x", "/../y", "?u=[1]", "<>",
    "/" + "x" * 1_100, "/" + "x" * 2_040, ";v=1", "/:a@b", "?",
]  # fmt: skip


def url(random: Random, number: int, tails: list[str], abroad: float) -> str:
    tail = random.choice(tails)
    start = random.choice(["/", "/", "/p/", f"{SITE}/", f"{SITE}/p/", SITE.upper() + "/"])
    if random.random() < abroad:
        start = random.choice([f"https://{random.choice(HOSTS)}/", "http://www.shop.example/"])
    if random.random() < 0.01:
        return random.choice([SITE, f"{SITE}?a=1", f"{SITE}#x", f"{SITE}/", "/"])
    return f"{start}{number}{tail if random.random() < 0.3 else ''}"


def catalog(random: Random) -> list[dict[str, Any]]:
    size = random.choice([1, 3, 12, 40, 200])
    odd, clean = random.random() < 0.7, random.random() < 0.7
    tails, abroad = random.sample(TAILS, 3), random.choice([0, 0.1])
    cells = CELLS | CLEAN if clean else CELLS
    rows = []
    for number in range(size):
        row = {"loc": url(random, number, tails, abroad) if odd else f"{SITE}/p/{number}"}
        row |= {name: cell(random) for name, cell in cells.items()}
        rows.append(row)
    return rows + random.choices(rows, k=random.choice([0, 0, 1, size]))


def options(random: Random) -> dict[str, Any]:
    def some(share: float, **values: Any) -> dict[str, Any]:
        return values if random.random() < share else {}

    chosen: dict[str, Any] = {"max_rejects": "100%", "max_shrink": "100%"}
    chosen |= some(0.4, lastmod="changed") | some(0.1, priority="prio", changefreq="freq")
    chosen |= some(0.25, image=("image",))
    chosen |= some(0.25, alternate=("de=de", "fr=fr"), lang=random.choice(["en", "de-CH"]))
    if "alternate" in chosen:
        chosen |= some(0.4, alternate_rows=True)
        chosen |= some(0.3, x_default="en") if chosen["lang"] == "en" else {}
    chosen |= some(
        0.15,
        video=("thumbnail_loc=media", "title=title", "description=text", "content_loc=media",
               "duration=number", "rating=number", "family_friendly=word", "restriction=word",
               "platform=word", "live=word"),
    )  # fmt: skip
    chosen |= some(
        0.15,
        news=("name==The Times", "language=language", "publication_date=when", "title=title"),
        news_old=random.choice(["keep", "omit", "drop"]),
    )
    chosen |= some(0.4, hosts=random.choice(["any", ",".join(HOSTS[1:]), "m.shop.example"]))
    chosen |= some(0.3, max_urls=random.choice([1, 2, 7, 50]))
    chosen |= some(0.2, max_sitemaps=random.choice([2, 5]))
    chosen |= some(0.3, layout="stable")
    chosen |= some(0.2, sort=True)
    chosen |= some(0.3, duplicates=random.choice(["keep", "drop"]))
    chosen |= some(0.2, gzip=False)
    chosen |= some(0.25, split_by=random.choice(["@host", "brand", "brand"]))
    if chosen.get("split_by") == "brand":
        chosen |= some(0.5, split_index="each")
    chosen |= some(0.15, sitemap_url=random.choice(
        [f"{SITE}/sitemaps/", "https://cdn.example/s/", f"{SITE}/p"]
    )) if "split_by" not in chosen else {}  # fmt: skip
    chosen |= some(0.2, **{"for": random.choice(["google", "bing", "yandex", "2006", "baidu"])})
    chosen |= some(0.15, add_sitemap=random.choice(
        [(f"{SITE}/blog.xml",), ("https://blog.example/sitemap.xml", f"{SITE}/b.xml")]
    ))  # fmt: skip
    chosen |= some(0.1, on_bad_field="reject")
    chosen |= some(0.1, index_lastmod="changed")
    chosen |= some(0.1, timezone="Europe/Berlin")
    chosen |= some(0.3, verify_staged=True)
    if not {"image", "alternate", "video", "news", "lastmod", "priority", "changefreq"} & set(
        chosen
    ):
        chosen |= some(0.3, output="text")
    return chosen


def one(seed: int, out: Path) -> str:
    """Builds and verifies; ``refused``, ``warned`` or ``accepted``.

    A build that nothing was wrong with may still say no: a set that one of its options forbids.
    """
    dice = Random(seed)
    rows = catalog(dice)
    chosen = options(dice)
    table = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in rows[0]})
    if "for" in chosen:
        chosen["for_"] = chosen.pop("for")
    try:
        report = urlset.build(table, site=SITE, out=out, **chosen)
    except (urlset.DataError, urlset.ConfigError):
        return "refused"
    found = urlset.verify(out, strict=True)
    assert found.total("error") == 0, (seed, chosen, found.problems[:3])
    if report.warnings:
        return "warned"
    assert found.ok, (seed, chosen, found.problems[:3])
    return "accepted"


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_what_build_publishes_without_warning_is_accepted(start: int, tmp_path: Path) -> None:
    ends = [one(seed, tmp_path / str(seed)) for seed in range(start, start + 50)]
    assert ends.count("accepted") >= 5 and ends.count("warned") >= 5, ends


@pytest.mark.slow
def test_the_same_for_thousands_of_sets(tmp_path: Path) -> None:
    ends = [one(seed, tmp_path / str(seed)) for seed in range(1_000, 4_000)]
    assert ends.count("accepted") >= 300, ends

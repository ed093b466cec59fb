"""A product export as marketplaces deliver it: 1,000 rows, 14 columns, one of five hosts in each.

Every text is quoted, numbers are not. Cells contain doubled quotes, commas, line breaks of both
kinds, JSON, text in several scripts, `null`, nothing, or some kilobytes.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

HOSTS = ["www.market.example", *(f"www.market-{c}.example" for c in ("de", "jp", "ph", "th"))]
WORDS = [
    "Lampe", "19\"", "grün", "ไทย", "電気スタンド", "Стол", "كرسي", "50%", "a, b", "L'été", "🛒",
    "<b>new</b>", "R&D", "[sale]", "x=1;y=2", "tab\there", "C:\\path", "N/A", "-", "''", '""',
]  # fmt: skip
COLUMNS = [
    "url", "title", "rating", "reviews", "price", "currency", "image", "seller", "breadcrumb",
    "description", "sku", "colors", "color", "lazy",
]  # fmt: skip


def write(path: Path) -> None:
    """Writes the catalog; the same bytes each time."""
    rng = random.Random(17)

    def words(most: int) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    def images(number: int) -> str:
        names = [f"{n}_{size}q80.jpg_.webp" for n in range(8) for size in ("720x720", "120x120")]
        chosen = rng.choices(names, k=rng.choice([0, 1, 2, 3, 5, 5, 5, 5]))
        return json.dumps([f"https://img.market.example/g/{number}/{name}" for name in chosen])

    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(COLUMNS) + "\n")
        for number in range(1_000):
            slug = f"lamp-{rng.choice('abc')}--table_{number}.i{rng.randrange(10**9)}~s"
            query = rng.choice(["", "", "?colour=blue&size=8", "?q=l%C3%A4mp+%26"])
            description = rng.choice(["\n", "\r\n", " ", "\n\n,"]).join(
                words(60) for _ in range(rng.choice([0, 1, 2, 6]))
            )
            cells = [
                quoted(f"https://{rng.choice(HOSTS)}/products/{slug}.html{query}"),
                quoted(words(8)), f"{rng.random() * 5:.2f}", str(rng.randrange(1000)),
                quoted(str(rng.randrange(10**6))), quoted("EUR"),
                quoted(images(number)) if number % 50 else "", quoted(words(3)),
                quoted(json.dumps([words(2), words(2)], ensure_ascii=number % 2 == 0)),
                quoted(description), quoted(f"{number}_ID"), rng.choice(["null", '"null"', "[]"]),
                "", rng.choice(["true", "false"]),
            ]  # fmt: skip
            file.write(",".join(cells) + "\n")

"""Malicious sitemaps."""

from __future__ import annotations

import gzip
import random

from .mutate import damage

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
URLSET = f'{HEAD}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
INDEX = f'{HEAD}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'


def sitemap(rng: random.Random, host: str = "www.shop.example", count: int | None = None) -> bytes:
    """A valid sitemap."""
    numbers = range(rng.choice((1, 5, 500)) if count is None else count)
    rows = (f"<url><loc>https://{host}/{n}</loc></url>\n" for n in numbers)
    return f"{URLSET}{''.join(rows)}</urlset>\n".encode()


def hostile(rng: random.Random) -> bytes:
    """A document of a random form; it may be compressed."""
    many = rng.choice((10, 1_000, 100_000))
    forms = (
        lambda: damage(sitemap(rng), rng),
        lambda: damage(sitemap(rng), rng),
        lambda: sitemap(rng)[: rng.randrange(2_000)],
        lambda: _entities(rng, many).encode(),
        lambda: (URLSET + "<url>" * many).encode(),
        lambda: (URLSET + "<a>" * many + "</a>" * many + "</urlset>").encode(),
        lambda: (URLSET + "&" * many).encode(),
        lambda: (URLSET + "<url><loc>" + "x" * many + "</loc></url></urlset>").encode(),
        lambda: (URLSET + "".join(f" a{n}='1'" for n in range(min(many, 20_000)))).encode(),
        lambda: (
            URLSET.encode().replace(b"UTF-8", rng.choice((b"UTF-7", b"ISO-8859-1", b"x" * 99)))
            + rng.randbytes(200)
        ),
        lambda: sitemap(rng).decode().encode(rng.choice(("utf-16", "utf-16-le", "utf-32"))),
        lambda: b"\0" * many,
        lambda: rng.randbytes(min(many, 5_000)),
        lambda: b"",
        lambda: ("https://www.shop.example/" + "\r" * many + "mailto:x\n").encode(),
        lambda: f"{INDEX}{_listed(rng)}</sitemapindex>".encode(),
        lambda: (URLSET + "<!--" + "-" * many + "--></urlset>").encode(),
        lambda: (URLSET + "<![CDATA[" + "]]" * many).encode(),
        lambda: (HEAD + "<!DOCTYPE a [" + "<!ENTITY % a 'b'>" * 50 + "]><a/>").encode(),
    )
    return _packed(rng.choice(forms)(), rng)


def _entities(rng: random.Random, many: int) -> str:
    levels = "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, rng.choice((2, 9, 30)))
    )
    return (
        f'{HEAD}<!DOCTYPE urlset [<!ENTITY a0 "x">{levels}]>'
        + URLSET[len(HEAD) :]
        + ("<url><loc>&a8;</loc></url>" * min(many, 1_000) + "</urlset>")
    )


def _listed(rng: random.Random) -> str:
    places = (
        "https://www.shop.example/../../etc/passwd", "https://www.shop.example/sitemap.xml",
        "https://www.shop.example/x.xml", "file:///etc/passwd", "http://[", "http://a\u0080b/",
        "https://www.shop.example/%00", "https://127.0.0.1/x.xml", "", "x" * 5_000, "https://\ufeff/",
    )  # fmt: skip
    names = rng.choices(places, k=rng.choice((1, 5, 300)))
    return "".join(f"<sitemap><loc>{name}</loc></sitemap>" for name in names)


def _packed(data: bytes, rng: random.Random) -> bytes:
    match rng.randrange(6):
        case 0:
            return gzip.compress(data)
        case 1:
            return damage(gzip.compress(data), rng)
        case 2:  # many members
            return gzip.compress(b"") * rng.choice((10, 5_000)) + gzip.compress(data)
        case 3:  # inflates to some megabytes
            fill = rng.choice((b"&", b" ", b"<", b"<url>", b"x"))
            return gzip.compress(data + fill * ((4 << 20) // len(fill)))
        case _:
            return data

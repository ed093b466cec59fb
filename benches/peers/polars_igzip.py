"""Polars formats, ISA-L compresses: the fastest combination of common libraries.

    python benches/peers/polars_igzip.py CATALOG.csv OUT [--plain]

Polars reads and formats on all cores; the shards are then compressed by as many threads as there
are cores (isal releases the GIL).
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
from isal import igzip_lib

SITE = "https://www.shop.example"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def main(source: str, out: str, plain: bool) -> None:
    """Writes shards of 50,000 URLs and their index."""
    folder = Path(out)
    loc = pl.col("url")
    for character, entity in ENTITIES.items():
        loc = loc.str.replace_all(character, entity, literal=True)
    entry = pl.format(
        "<url><loc>{}</loc><lastmod>{}</lastmod><priority>{}</priority></url>",
        loc,
        pl.col("updated_at"),
        pl.col("priority"),
    )
    # all as text: nothing is parsed only to be printed again
    entries = (
        pl.scan_csv(source, infer_schema=False).select(entry.alias("entry")).collect()["entry"]
    )

    def write(number: int) -> str:
        lines = entries.slice(number * 50_000, 50_000).str.join("\n").item()
        data = f"{DECLARATION}<urlset {NAMESPACE}>\n{lines}\n</urlset>\n".encode()
        name = f"sitemap-{number + 1:05}.xml" + ("" if plain else ".gz")
        if not plain:
            data = igzip_lib.compress(data, 1, igzip_lib.COMP_GZIP)
        (folder / name).write_bytes(data)
        return name

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        names = list(pool.map(write, range(-(-len(entries) // 50_000))))
    index = "".join(f"<sitemap><loc>{SITE}/{name}</loc></sitemap>\n" for name in names)
    (folder / "sitemap.xml").write_text(
        f"{DECLARATION}<sitemapindex {NAMESPACE}>\n{index}</sitemapindex>\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--plain" in sys.argv[3:])

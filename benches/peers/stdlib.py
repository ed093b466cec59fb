"""The simplest script: Python's csv, escape and gzip, nothing to install.

python benches/peers/stdlib.py CATALOG.csv OUT [--plain]
"""

import csv
import gzip
import itertools
import sys
from pathlib import Path
from xml.sax.saxutils import escape

SITE = "https://www.shop.example"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def main(source: str, out: str, plain: bool) -> None:
    """Writes shards of 50,000 URLs and their index."""
    folder = Path(out)
    names = []
    with Path(source).open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader)
        loc, lastmod, priority = map(header.index, ("url", "updated_at", "priority"))
        while rows := list(itertools.islice(reader, 50_000)):
            lines = [
                f"<url><loc>{escape(row[loc])}</loc><lastmod>{row[lastmod]}</lastmod>"
                f"<priority>{row[priority]}</priority></url>\n"
                for row in rows
            ]
            text = "".join([DECLARATION, f"<urlset {NAMESPACE}>\n", *lines, "</urlset>\n"])
            data = text.encode()
            names.append(f"sitemap-{len(names) + 1:05}.xml" + ("" if plain else ".gz"))
            if not plain:
                data = gzip.compress(data, 1)
            (folder / names[-1]).write_bytes(data)
    index = "".join(f"<sitemap><loc>{SITE}/{name}</loc></sitemap>\n" for name in names)
    (folder / "sitemap.xml").write_text(
        f"{DECLARATION}<sitemapindex {NAMESPACE}>\n{index}</sitemapindex>\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--plain" in sys.argv[3:])

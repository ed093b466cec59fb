"""xml-sitemap-writer, the Python library for large sitemaps (gzip level 9, its only one).

python benches/peers/xmlsitemapwriter.py CATALOG.csv OUT
"""

import csv
import sys
from pathlib import Path

from xml_sitemap_writer import XMLSitemap

SITE = "https://www.shop.example"


def main(source: str, out: str) -> None:
    """Writes shards of 50,000 URLs (15,000 by default) and their index."""
    XMLSitemap.URLS_PER_FILE = 50_000
    with (
        Path(source).open(newline="", encoding="utf-8") as file,
        XMLSitemap(path=out, root_url=SITE) as sitemap,
    ):
        reader = csv.reader(file)
        header = next(reader)
        loc, lastmod, priority = map(header.index, ("url", "updated_at", "priority"))
        for row in reader:
            # it accepts the path and adds the site before it
            path = row[loc][len(SITE) :]
            sitemap.add_url(path, lastmod=row[lastmod], priority=row[priority])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

"""ultimate-sitemap-parser reads a site's sitemaps; it supports only http(s).

    python benches/peers/ultimate_sitemap_parser.py http://127.0.0.1:PORT/ OUT

OUT gets the number of pages.
"""

import logging
import sys
from pathlib import Path

from usp.tree import sitemap_tree_for_homepage

logging.disable(logging.CRITICAL)
tree = sitemap_tree_for_homepage(sys.argv[1], use_known_paths=False)
Path(sys.argv[2]).write_text(str(sum(1 for _ in tree.all_pages())))

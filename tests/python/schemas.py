"""The schemas of sitemaps in tests/data/schemas; they share no code with urlset."""

from pathlib import Path

from lxml import etree

SITEMAP = etree.RelaxNG(etree.parse(Path(__file__).parents[1] / "data/schemas/sitemap.rng"))

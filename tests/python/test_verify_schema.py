"""Every violation of the schemas in tests/data/schemas that lxml finds, verify finds as well."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lxml import etree
from schemas import SITEMAP
from urlset.inspect.targets import Found, Item
from urlset.inspect.verify import verify_found

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
PREFIXES = {
    "image": "http://www.google.com/schemas/sitemap-image/1.1",
    "video": "http://www.google.com/schemas/sitemap-video/1.1",
    "news": "http://www.google.com/schemas/sitemap-news/0.9",
    "xhtml": "http://www.w3.org/1999/xhtml",
}
FULL = f"""<urlset xmlns="{NS}" {" ".join(f'xmlns:{p}="{u}"' for p, u in PREFIXES.items())}>
<url><loc>https://www.shop.example/a</loc><lastmod>2026-11-01</lastmod>
<changefreq>daily</changefreq><priority>0.5</priority></url>
<url><loc>https://www.shop.example/b</loc><lastmod>2026-11-01T10:00:00+01:00</lastmod>
<image:image><image:loc>https://www.shop.example/i.jpg</image:loc><image:caption>c</image:caption>
<image:title>t</image:title><image:license>https://www.shop.example/l</image:license></image:image>
<video:video><video:thumbnail_loc>https://www.shop.example/t.jpg</video:thumbnail_loc>
<video:title>t</video:title><video:description>d</video:description>
<video:content_loc>https://www.shop.example/v.mp4</video:content_loc>
<video:player_loc allow_embed="yes" autoplay="a=1">https://www.shop.example/p</video:player_loc>
<video:duration>60</video:duration><video:expiration_date>2027-01-01</video:expiration_date>
<video:rating>4.5</video:rating><video:view_count>10</video:view_count>
<video:publication_date>2026-01-01T00:00:00Z</video:publication_date>
<video:tag>a</video:tag><video:tag>b</video:tag><video:category>c</video:category>
<video:family_friendly>yes</video:family_friendly>
<video:restriction relationship="allow">DE AT</video:restriction>
<video:gallery_loc title="g">https://www.shop.example/g</video:gallery_loc>
<video:price currency="EUR" type="rent" resolution="hd">1.99</video:price>
<video:requires_subscription>no</video:requires_subscription>
<video:uploader info="https://www.shop.example/u">u</video:uploader>
<video:tvshow><video:show_title>s</video:show_title><video:video_type>full</video:video_type>
<video:episode_title>e</video:episode_title><video:season_number>1</video:season_number>
<video:episode_number>2</video:episode_number><video:premier_date>2020-01-01</video:premier_date>
</video:tvshow>
<video:platform relationship="deny">web tv</video:platform><video:live>no</video:live>
<video:id type="url">x</video:id></video:video>
<news:news><news:publication><news:name>n</news:name><news:language>en</news:language>
</news:publication><news:access>Subscription</news:access><news:genres>Blog, OpEd</news:genres>
<news:publication_date>2026-11-20</news:publication_date><news:title>t</news:title>
<news:keywords>k</news:keywords><news:stock_tickers>NASDAQ:A, X:B</news:stock_tickers></news:news>
<xhtml:link rel="alternate" hreflang="de" href="https://www.shop.example/b"/></url>
</urlset>"""
INDEX = f"""<sitemapindex xmlns="{NS}">
<sitemap><loc>https://www.shop.example/1.xml</loc><lastmod>2026-11-01</lastmod></sitemap>
<sitemap><loc>https://www.shop.example/2.xml</loc></sitemap></sitemapindex>"""
VALUES = [
    "", " ", "x", "0", "-1", "1.5", "1e0", "NaN", "yes", "Yes", "maybe", "2026", "2026-11",
    "2026-11-31", "2026-11-01Z", "2026-11-01T24:00:00Z", "2026-11-01T10:00:00", "-2026-01-01",
    "99999", "a b", "%", "https://x", "h" * 3000, "en_US", "zh-tw", "DE,AT", "de", "A:B,C",
    "web  tv", " daily", "daily\n", "deny", "0.50", "+1", "1.", ".5", "28801", "a:b:c",
]  # fmt: skip


def mutate(root: etree._Element, rng: random.Random) -> None:
    """One or two random changes of structure, values, names or attributes."""
    for _ in range(rng.choice([1, 1, 2])):
        nodes = list(root.iter())
        node = rng.choice(nodes)
        parent = node.getparent()
        match rng.randrange(11):
            case 0 if parent is not None:
                parent.remove(node)
            case 1 if parent is not None:
                parent.insert(rng.randrange(len(parent) + 1), node)
            case 2 if parent is not None:
                copy = etree.fromstring(etree.tostring(node, with_tail=False))
                parent.insert(rng.randrange(len(parent) + 1), copy)
            case 3:
                node.text = rng.choice(VALUES)
            case 4 if parent is not None:
                node.tail = rng.choice(VALUES)
            case 5 if node.attrib:
                del node.attrib[rng.choice(list(node.attrib))]
            case 6:
                name = rng.choice([*node.attrib, "relationship", "x", "type", "duration", "rel"])
                node.set(name, rng.choice(VALUES))
            case 7:
                other = rng.choice(nodes)
                node.tag = other.tag
            case 8:
                local = etree.QName(node).localname
                node.tag = f"{{{rng.choice([*PREFIXES.values(), NS, 'urn:x'])}}}{local}"
            case 9:
                etree.SubElement(node, rng.choice(nodes).tag).text = rng.choice(VALUES)
            case _:
                target = rng.choice(nodes)
                if target is not node and node not in target.iterancestors() and parent is not None:
                    target.append(node)


@pytest.mark.parametrize("document", [FULL, INDEX], ids=["sitemap", "index"])
def test_the_unchanged_document_is_valid(document: str, tmp_path: Path) -> None:
    SITEMAP.assertValid(etree.fromstring(document.encode()))
    path = tmp_path / "s.xml"
    path.write_text(document)
    report = verify_found(Found([Item(path, "s.xml")]))
    assert set(report.counts) <= {"element.retired", "news.old"}, report.problems


@pytest.mark.parametrize("document", [FULL, INDEX], ids=["sitemap", "index"])
@pytest.mark.parametrize("seed", range(8))
def test_every_violation_is_found(document: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    items, invalid = [], []
    for number in range(250):
        root = etree.fromstring(document.encode())
        mutate(root, rng)
        path = tmp_path / f"{number}.xml"
        data = etree.tostring(root)
        path.write_bytes(data)
        if not SITEMAP.validate(etree.fromstring(data)):
            items.append(Item(path, path.name))
            invalid.append(SITEMAP.error_log[-1].message)
    assert len(items) > 100
    missed = []
    for item, message in zip(items, invalid, strict=True):
        report = verify_found(Found([item]))
        if not report.total("error") and not report.total("warning"):
            missed.append((message, item.path.read_text()))
    assert not missed, missed[0]

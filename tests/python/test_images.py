"""Images, from cells and columns of every kind to the entries that a crawler reads."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import marketplace
import pyarrow as pa
import pytest
import urlset as us
from conftest import SITE, urlset
from extended import build, namespaces, notes, read_urls

CDN = "https://cdn.example"


def test_the_catalog_of_a_marketplace(tmp_path: Path, out: Path, schema) -> None:
    catalog = tmp_path / "products.csv"
    marketplace.write(catalog)
    args = ("--site", "https://www.market.example", "--hosts", "any", "--image", "image")
    ended = urlset("build", catalog, *args, "--out", out, "--json", "-")
    report = json.loads(ended.out)
    assert (ended.status, report["urls"]) == (0, 1000)
    with catalog.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    entries = read_urls(out / "sitemap-00001.xml.gz")
    for row, entry in zip(rows, entries, strict=True):
        wanted = dict.fromkeys(json.loads(row["image"])) if row["image"] else {}
        assert entry.get("images", []) == list(wanted)
        assert entry["loc"] == row["url"]
    assert sum(len(entry.get("images", ())) for entry in entries) > 2000
    for path in out.glob("*.xml*"):
        schema(path)


@pytest.mark.parametrize(
    ("cell", "images", "bad"),
    [
        ("https://cdn.example/a.jpg", [f"{CDN}/a.jpg"], 0),
        ("/a.jpg", [f"{SITE}/a.jpg"], 0),
        ("//cdn.example/a b&c.jpg", [], 1),
        ("https://cdn.example/a b&c.jpg", [f"{CDN}/a%20b&c.jpg"], 0),
        ("", [], 0),
        ("   ", [], 0),
        ("ftp://cdn.example/a.jpg", [], 1),
        ("data:image/png;base64,AAAA", [], 1),
        ("javascript:alert(1)", [], 1),
        ('["https://cdn.example/a.jpg","/b.jpg"]', [f"{CDN}/a.jpg", f"{SITE}/b.jpg"], 0),
        (' [ "https://cdn.example/\\u00e4.jpg" ] ', [f"{CDN}/%C3%A4.jpg"], 0),
        ('["/a.jpg", null, "", 5, ["/b.jpg"], {"url": "/c.jpg"}, "/a.jpg"]', [f"{SITE}/a.jpg"], 5),
        ("[null, null]", [], 2),
        ("[]", [], 0),
        ('["/a.jpg"', [], 1),
        ("[not json]", [], 1),
        ('{"url": "/a.jpg"}', [], 1),
        ("[" * 5000, [], 1),
        ("/🛒<\"'>.jpg", [f"{SITE}/%F0%9F%9B%92%3C%22'%3E.jpg"], 0),
        ("/a\x07.jpg", [], 1),
    ],
)
def test_cells(out: Path, schema, cell: str, images: list[str], bad: int) -> None:
    table = pa.table({"url": [f"{SITE}/p"], "picture": [cell]})
    report = build(out, table, schema, image=["picture"])
    assert read_urls(out / "sitemap-00001.xml.gz")[0].get("images", []) == images
    assert notes(report).get("image.invalid", 0) == bad
    assert namespaces(out / "sitemap-00001.xml.gz") == ({"image"} if images else set())


def test_the_same_from_csv(tmp_path: Path, schema) -> None:
    cells = [
        '["/a.jpg","/b\\n.jpg"]',
        "/c.jpg|/d.jpg||/c.jpg",
        '["/e ""f"".jpg"]',
        "/x|ftp://a.b/c",
    ]
    with (tmp_path / "c.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("url", "i"), *((f"/{n}", c) for n, c in enumerate(cells))])
    table = pa.table({"url": [f"/{n}" for n in range(4)], "i": cells})
    written = []
    for number, source in enumerate((str(tmp_path / "c.csv"), table)):
        out = tmp_path / str(number)
        report = build(out, source, schema, image=["i"], image_separator="|", gzip=False)
        written.append((out / "sitemap-00001.xml").read_bytes())
        assert notes(report) == {"image.invalid": 3}
        assert [url.get("images") for url in read_urls(out / "sitemap-00001.xml")] == [
            [f"{SITE}/a.jpg"], [f"{SITE}/c.jpg", f"{SITE}/d.jpg"], None, [f"{SITE}/x"],
        ]  # fmt: skip
    assert written[0] == written[1]


@pytest.mark.parametrize(
    "type",
    [
        pa.list_(pa.string()),
        pa.large_list(pa.large_string()),
        pa.list_view(pa.string_view()),
        pa.large_list_view(pa.string()),
        pa.list_(pa.string(), 2),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_list_columns(out: Path, schema, type: pa.DataType) -> None:
    values = pa.array(["/a", "/b", "/c", None, "/d", "/e", "/f", "/f"])
    if pa.types.is_dictionary(type.value_type):
        lists: pa.Array = pa.ListArray.from_arrays(
            pa.array([0, 2, 2, 4, 6, 8], pa.int32()), values.dictionary_encode()
        )
    else:
        lists = pa.array([["/a", "/b"], None, ["/c", None], ["/d", "/e"], ["/f", "/f"]], type)
    # sliced: offsets do not begin at 0
    table = pa.table({"url": [f"/{n}" for n in range(5)], "i": lists}).slice(1)
    report = build(out, table, schema, image=["i"], on_bad_field="omit")
    urls = read_urls(out / "sitemap-00001.xml.gz")
    assert [[i.removeprefix(SITE) for i in url.get("images", ())] for url in urls] == [
        [], ["/c"], ["/d", "/e"], ["/f"],
    ]  # fmt: skip
    assert notes(report) == {"image.invalid": 1}


def test_several_columns_and_the_most_a_url_may_have(out: Path, schema) -> None:
    many = [f"/i{n}.jpg" for n in range(1_005)]
    table = pa.table({
        "url": ["/a", "/b", "/c"],
        "one": ["/first.jpg", None, "/i7.jpg"],
        "list": [many, many[:1_000] * 2, many[:999]],
    })  # fmt: skip
    report = build(out, table, schema, image=["one", "list"])
    found = [url["images"] for url in read_urls(out / "sitemap-00001.xml.gz")]
    addresses = [SITE + path for path in many]
    assert found[0] == [f"{SITE}/first.jpg", *addresses[:999]]
    assert found[1] == addresses[:1_000]
    assert found[2] == [addresses[7], *addresses[:7], *addresses[8:999]]
    assert notes(report) == {"image.over_1000": 6 + 1_000}


def test_rejecting(out: Path) -> None:
    table = pa.table({"url": ["/a", "/b"], "i": [["/a.jpg", "ftp://x.example/b"], ["/c.jpg"]]})
    options = {"image": ["i"], "on_bad_field": "reject", "max_rejects": "50%"}
    report = us.build(table, site=SITE, out=out, **options)
    assert (report.urls, report.rejects["by_code"]) == (1, {"image.invalid": 1})
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["row"], row["column"], row["value"]) == ("1", "i", "ftp://x.example/b")


def test_a_column_that_is_none(out: Path) -> None:
    table = pa.table({"url": ["/a"]})
    with pytest.raises(us.ConfigError, match='there is no column "i"'):
        us.build(table, site=SITE, out=out, image=["i"])
    nested = pa.table({"url": ["/a"], "priority": [[0.5]]})
    with pytest.raises(us.ConfigError, match="lists or structs"):
        us.build(nested, site=SITE, out=out)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_bytes_are_exact_where_a_namespace_first_appears(out: Path, schema, over: int) -> None:
    """The last element adds the namespace; the shard with header and footer ends at the limit."""
    plain = f"<url><loc>{SITE}/aaaaaaaaaaaaaaaaaaaa</loc></url>\n"
    image = f"<image:image><image:loc>{SITE}/%s</image:loc></image:image>"
    header = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">\n</urlset>\n'
    )
    room = 8_192 - len(header) - 95 * len(plain) - len(plain) - len(image % "") + over
    table = pa.table({
        "url": ["/aaaaaaaaaaaaaaaaaaaa"] * 96, "i": [None] * 95 + [f"/{'x' * room}"],
    })  # fmt: skip
    report = build(out, table, schema, image=["i"], max_bytes=8_192, gzip=False)
    sizes = [path.stat().st_size for path in sorted(out.glob("sitemap-*.xml"))]
    assert [shard.bytes for shard in report.shards] == sizes
    if over <= 0:
        assert sizes == [8_192 + over]
    else:
        assert len(sizes) == 2 and not namespaces(out / "sitemap-00001.xml")

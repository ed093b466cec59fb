"""The behaviour of other generators: the same in urlset, or different and documented."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
import urlset as us
from conftest import NS, ROOT, read_bytes, read_index
from peer_cases import CASES, SITE, Case


def local(tag: str) -> str:
    """The name of an element without its namespace."""
    return tag.rpartition("}")[2]


def entries(out: Path) -> list[ElementTree.Element]:
    """All ``url`` elements of a published set, in order, by expat."""
    found = []
    for sitemap in read_index(out / "sitemap.xml"):
        path = out / sitemap["loc"].rpartition("/")[2]
        found += list(ElementTree.fromstring(read_bytes(path)))
    return found


def value(entry: ElementTree.Element, path: str) -> str | None:
    """The text at a path of local names; of an attribute after ``@``."""
    path, _, attribute = path.partition("@")
    *parents, name = path.split("/")
    for element in entry.iter():
        if local(element.tag) != name or (element.tag == f"{NS}loc" and parents):
            continue
        return element.get(attribute) if attribute else element.text
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.peer}: {case.what}")
def test_as_the_peer_or_as_documented(case: Case, out: Path) -> None:
    schema = None if case.rows["loc" if "loc" in case.rows else "path"] else [("loc", pa.string())]
    table = pa.table(case.rows, schema=pa.schema(schema) if schema else None)
    options = {"site": SITE, "out": out} | case.options
    if case.error is not None:
        with pytest.raises(us.Error) as caught:
            us.build(table, **options)
        assert caught.value.code == case.error
        assert not (out / "sitemap.xml").exists()
        return
    report = us.build(table, **options)
    written = entries(out)
    assert [entry.findtext(f"{NS}loc") for entry in written] == case.locs
    for path, expected in case.contains.items():
        assert value(written[0], path) == expected
    for name in case.lacks:
        assert all(local(part.tag) != name for entry in written for part in entry.iter())
    assert report.rejects["by_code"] == case.rejects
    assert set(case.warnings) <= {warning.code for warning in report.warnings}
    if case.sizes is not None:
        assert [shard.urls for shard in report.shards] == case.sizes


def test_each_difference_is_documented() -> None:
    text = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    for case in CASES:
        if case.differs is not None:
            assert f"| {case.what} | {case.differs} |" in text
    assert len({case.what for case in CASES}) == len(CASES)


@pytest.mark.parametrize("peer", sorted({case.peer for case in CASES}))
def test_twenty_cases_of_each(peer: str) -> None:
    assert sum(case.peer == peer for case in CASES) >= 20

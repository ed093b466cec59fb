"""Report pages read by a strict parser, and values that attack them."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

VOID = {"meta", "br", "hr"}
#: elements that load, run or send something
ACTIVE = {"script", "iframe", "frame", "img", "image", "object", "embed", "link", "base", "form",
          "input", "button", "audio", "video", "source", "a:external", "use", "foreignobject",
          "animate", "set"}  # fmt: skip
#: values that try to leave the text of a page
HOSTILE = [
    '"><script>alert(1)</script>', "'><img src=x onerror=alert(1)>", "</style><script>alert(1)",
    "</title></svg><script>alert(1)</script>", "{{ 7 * 7 }}{% raw %}", "javascript:alert(1)",
    "&lt;b&gt;&amp;", "]]><!--", "x" * 5_000, "\u202egnp.exe\u2066\u200f", "a\x1b[31mred\x07\x00b",
    "\u2028line\u2029end\x85", "\ufeff\ufffe\U000e0041",
]  # fmt: skip


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its text, with that of the elements in it."""
        return "".join(one if isinstance(one, str) else one.text for one in self.children)

    def all(self, name: str | None = None) -> list[Element]:
        """The elements in it, by name."""
        found = []
        for one in self.children:
            if isinstance(one, Element):
                found += ([one] if name in (None, one.name) else []) + one.all(name)
        return found

    def one(self, name: str) -> Element:
        found = self.all(name)
        assert len(found) == 1, (name, len(found))
        return found[0]

    def by_id(self, id: str) -> Element:
        found = [one for one in self.all() if one.attributes.get("id") == id]
        assert len(found) == 1, (id, len(found))
        return found[0]

    def table(self, caption: str) -> list[list[str]]:
        """The rows of the table with this caption, without its head."""
        found = [one for one in self.all("table") if one.one("caption").text == caption]
        assert len(found) == 1, (caption, [one.one("caption").text for one in self.all("table")])
        return [
            [cell.text.strip() for cell in row.children
             if isinstance(cell, Element) and cell.attributes.get("class") != "bar"]
            for row in found[0].one("tbody").all("tr")
        ]  # fmt: skip


class Strict(HTMLParser):
    """Refuses what the standard calls a parse error in the forms that pages of urlset have."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert any(one.name == "svg" for one in self._open), tag
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].name == tag, (self._open[-1].name, tag)
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"a processing instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")


def parse(path: Path) -> Element:
    """The page, after all checks that hold for every page."""
    text = path.read_text(encoding="utf-8")
    assert text.lstrip().startswith("<!DOCTYPE html>") and len(text) < 1_000_000
    controls = [c for c in text if not c.isprintable() and c != "\n"]
    assert not controls, controls
    parser = Strict()
    parser.feed(text)
    parser.close()
    assert parser._open == [parser.root]
    page = parser.root
    _check_loads(page)
    _check_access(page)
    return page


def _check_loads(page: Element) -> None:
    """Nothing is loaded, run or sent; only the style of the template counts."""
    style = page.one("style").text
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    metas = page.one("head").all("meta")
    assert metas[1].attributes["http-equiv"] == "Content-Security-Policy"
    policy = metas[1].attributes["content"]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"url\(|@import|expression|http", style)
    ids = [one.attributes["id"] for one in page.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    for one in page.all():
        assert one.name not in ACTIVE, one
        for name, value in one.attributes.items():
            assert not name.startswith("on"), one
            assert name not in ("src", "srcset", "style", "xlink:href", "action", "data", "ping")
            if name == "href":
                assert value[0] == "#" and value[1:] in ids, value
            if name in ("aria-labelledby", "aria-describedby"):
                assert all(id in ids for id in value.split()), value


def _check_access(page: Element) -> None:
    """Landmarks, headings in order, captions, names of charts."""
    assert page.one("html").attributes["lang"] == "en"
    for name in ("header", "main", "footer", "h1", "title"):
        inside = page.one("head") if name == "title" else page.one("body")
        assert inside.one(name).text.strip() if name != "main" else inside.one(name)
    levels = [int(one.name[1]) for one in page.all() if re.fullmatch("h[1-6]", one.name)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for table in page.all("table"):
        assert table.one("caption").text.strip()
        assert all("scope" in head.attributes for head in table.all("th"))
    for chart in page.all("svg"):
        if chart.attributes.get("aria-hidden") == "true":
            continue
        assert chart.attributes["role"] == "img"
        assert chart.one("title").text.strip() and chart.one("desc").text.strip()


def number(text: str) -> int:
    """A number as people read it."""
    return int(text.replace(",", ""))

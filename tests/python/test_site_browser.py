"""The documentation in Chromium: on a desktop and a phone, light and dark, by axe-core.

With ``URLSET_TEST_SHOTS=DIR`` the screenshots are kept there.
"""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_report_browser import TIMEOUT, axe, chromium  # noqa: F401
from test_site import built, site  # noqa: F401

pytestmark = pytest.mark.long

SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
PAGES = {
    "home": "", "tutorial": "tutorial/", "guide": "guides/migrate/",
    "commands": "reference/command-line/", "manifest": "reference/manifest/",
    "code": "reference/codes/#loc.scope",
}  # fmt: skip
#: elements that are wider than the window and are in no box that scrolls
WIDE = """() => [...document.querySelectorAll('article *')].filter(element => {
  const box = element.getBoundingClientRect()
  if (!box.width || box.right <= innerWidth + 1) return false
  for (let outer = element; outer; outer = outer.parentElement)
    if (getComputedStyle(outer).overflowX != 'visible') return false
  return true
}).map(element => element.outerHTML.slice(0, 100))"""
#: of the text of the pages; the theme answers for the rest
AXE = """async () => (await axe.run('article', {
  runOnly: ['color-contrast', 'image-alt', 'link-name', 'heading-order', 'duplicate-id']
})).violations.map(found => found.id + ': ' + found.nodes[0].html)"""


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:  # noqa: F811
    class Files(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    files = functools.partial(Files, directory=built)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_pages_are_shown(
    size: str,
    scheme: str,
    address: str,
    chromium: Any,  # noqa: F811
    axe: str,  # noqa: F811
) -> None:
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(TIMEOUT)
    problems: list[str] = []
    requests: set[str] = set()
    try:
        page = context.new_page()
        page.on(
            "console", lambda message: message.type == "error" and problems.append(message.text)
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.add(request.url))
        for name, path in PAGES.items():
            page.goto(address + path)
            page.wait_for_function(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
            if folder := os.environ.get("URLSET_TEST_SHOTS"):
                page.screenshot(path=Path(folder) / f"site-{name}-{size}-{scheme}.png")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            assert page.evaluate(WIDE) == [], name
            if size == "desktop":  # the phone has the same elements and colours
                page.evaluate(axe)
                assert page.evaluate(AXE) == [], name
        # the row of the code that the address names is in the window, and marked
        row = page.locator("tr", has=page.locator(":target"))
        box = row.bounding_box()
        assert 0 <= box["y"] < height
        plain = page.locator("tr", has=page.locator('[id="loc.space"]'))
        colour = "element => getComputedStyle(element).backgroundColor"
        assert row.evaluate(colour) != plain.evaluate(colour)
    finally:
        context.close()
    assert problems == []
    assert all(url.startswith((address, "data:", "blob:")) for url in requests), requests

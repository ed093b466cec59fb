"""Report pages in Chromium: at three sizes, light and dark, by axe-core, by keyboard and in print.

``scripts/test-tools`` installs Chromium and axe-core. With ``URLSET_TEST_SHOTS=DIR`` the
screenshots are kept there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urlset as package
from conftest import ROOT, SITE, urlset
from report_pages import HOSTILE
from test_report_audit import hostile_report
from test_report_page import dated, write
from urlset.html.audit import audit_page

pytestmark = pytest.mark.long

SIZES = {"phone": (360, 780), "tablet": (820, 1180), "desktop": (1440, 900)}
#: milliseconds, on a loaded machine
TIMEOUT = 120_000
PAGES = ("build", "refused", "verify", "diff", "audit")


def _skip(why: str) -> Any:
    if os.environ.get("URLSET_REQUIRE_TOOLS"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module")
def axe() -> str:
    folder = Path(os.environ.get("URLSET_TEST_BROWSER", ROOT / ".browser"))
    path = folder / "node_modules/axe-core/axe.min.js"
    if not path.is_file():
        _skip(f"{path} is missing: scripts/test-tools installs it")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        _skip("there is no chromium: scripts/test-tools installs it")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _skip("there is no playwright: scripts/test-tools installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=TIMEOUT
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind, with hostile values and everything that a page can show."""
    folder = tmp_path_factory.mktemp("pages")
    out, paths = folder / "out", {name: folder / f"{name}.html" for name in PAGES}
    source, _ = dated(folder / "c.csv", copies=40)
    with source.open("a") as file:
        file.writelines(f"ftp://{value.splitlines()[0]!r},,k1\n" for value in HOSTILE)
    options: dict[str, Any] = {"site": SITE, "split_by": "kind", "max_urls": 12,
                               "max_rejects": "50%", "max_shrink": "100%"}  # fmt: skip
    for number in range(3):
        where = [f"lastmod!={number}"] if number else []
        package.build(source, out=out, where=where, report=paths["build"], **options)
        options["max_urls"] += 1
    shutil.copytree(out, folder / "old")
    refused = urlset("build", source, "--site", SITE, "--out", out, "--report", paths["refused"])
    assert refused.status == 1
    rows = [{"url": f"{SITE}/{n}", "lastmod": "2026-01-01"} for n in range(300)]
    package.build(write(folder / "d.csv", rows), out=folder / "new", site=SITE)
    package.diff(folder / "old", folder / "new", report=paths["diff"]).close()
    bad = folder / "bad"
    shutil.copytree(out, bad)
    for path in sorted((ROOT / "tests/data/broken").glob("*.xml"))[::3]:
        shutil.copy(path, bad)
    package.verify(bad, report=paths["verify"])
    paths["audit"].write_text(audit_page(hostile_report()), encoding="utf-8")
    return paths


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_shown(
    name: str, size: str, scheme: str, pages: dict[str, Path], chromium: Any, axe: str
) -> None:
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(TIMEOUT)
    try:
        page = context.new_page()
        problems: list[str] = []
        requests: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(pages[name].as_uri())
        assert requests == [pages[name].as_uri()] and problems == []
        # the policy allows the style: the page is not the black on white of a page without one
        backdrop = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert backdrop == ("rgb(244, 245, 247)" if scheme == "light" else "rgb(14, 17, 22)")
        folder = os.environ.get("URLSET_TEST_SHOTS")
        if folder:
            shot = Path(folder, f"{name}-{size}-{scheme}.png")
            page.screenshot(path=shot, full_page=True)
        # axe sees only what is not folded
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
        assert found["violations"] == []
        assert len(found["passes"]) > 10
        # nothing of the catalog became an element
        assert page.evaluate("document.querySelectorAll('script, img, b, iframe').length") == 0
    finally:
        context.close()


def test_a_page_can_be_used_with_the_keyboard(pages: dict[str, Path], chromium: Any) -> None:
    page = chromium.new_page()
    page.set_default_timeout(TIMEOUT)
    page.goto(pages["build"].as_uri())
    page.keyboard.press("Tab")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    # every folded table opens by its summary
    for _ in range(100):
        page.keyboard.press("Tab")
        if "Data: URLs of each" in page.evaluate(focused):
            break
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True
    # a wide table scrolls, so it takes the focus
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_printed(name: str, pages: dict[str, Path], chromium: Any) -> None:
    """Dark mode does not print a dark page, and nothing is wider than the paper."""
    context = chromium.new_context(color_scheme="dark", viewport={"width": 690, "height": 900})
    context.set_default_timeout(TIMEOUT)
    page = context.new_page()
    page.goto(pages[name].as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.evaluate("document.documentElement.scrollWidth") == 690
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    folder = os.environ.get("URLSET_TEST_SHOTS")
    printed = page.pdf(format="A4", path=Path(folder, f"{name}.pdf") if folder else None)
    assert printed.startswith(b"%PDF-")
    context.close()

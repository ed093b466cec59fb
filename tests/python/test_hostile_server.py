"""A server that does anything: each file is one finding, within time, and the others are read."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import urlset
from hostile_server import ENDLESS, FLOODS, WRONG, HostileServer, index_of, urlset_of

pytestmark = pytest.mark.long

#: small limits for a test; they apply to the same quantities
LIMITS = """
from urlset.inspect import download
from urlset.transport import budget
download.DEADLINE, download.TIMEOUT = 6.0, 1.5
budget.RATE_WINDOW = 2.0
download.MAX_BYTES = 32 << 20
from urlset.cli import main
main()
"""

ALL = {**ENDLESS, **FLOODS, **WRONG}

#: hosts that no request can have
BAD_LOCS = [
    "http://&#x1F4A9;.\u200d.invalid/a", f"http://{'a' * 64}.invalid/a",
    f"http://{'a.' * 200}invalid/",
    "http://xn--/a", "http://a..b/", "http://[::1", "http://[fe80::1%25eth0]/a", "http://[v1.x]/",
    "http://127.0.0.1:99999/a", "http://127.0.0.1:-1/a", "http://127.0.0.1:x/a", "http://:80/",
    "http:///a", "http://", "http:a", "//a/b", "a", "http://\u0130\u0307.invalid/",
    "http://user:p%ff@[/", "ftp://127.0.0.1/a", "file:///etc/passwd", "data:,a", "unix:/run/a",
    f"http://127.0.0.1:1/{'a' * 9_000}", f"http://127.0.0.1:1/{'a' * 70_000}", "http://\uff0e/",
]  # fmt: skip


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


def run(*arguments: str, seconds: float = 100.0) -> tuple[int, str, str]:
    """The command with small limits: exit status, standard output and error."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITS, *arguments],
        capture_output=True, text=True, timeout=seconds, errors="replace",
    )  # fmt: skip
    for text in (done.stdout, done.stderr):
        assert "internal error" not in text and "Traceback" not in text, text
    return done.returncode, done.stdout, done.stderr


def serve_all(server: HostileServer, table: dict[str, object]) -> str:
    """An index with a good file between any two bad ones."""
    locs = []
    for name, behaviour in table.items():
        server.pages[f"/bad/{name}.xml"] = behaviour  # type: ignore[assignment]
        server.pages[f"/good/{name}.xml"] = urlset_of(f"{server.base}/{name}", 2)
        locs += [f"{server.base}/bad/{name}.xml", f"{server.base}/good/{name}.xml"]
    server.pages["/sitemap.xml"] = index_of(*locs)
    return f"{server.base}/sitemap.xml"


@pytest.mark.parametrize("table", ["ENDLESS", "FLOODS", "WRONG"])
def test_each_bad_file_is_a_finding_and_the_good_ones_are_read(
    server: HostileServer, tmp_path: Path, table: str
) -> None:
    behaviours = {"ENDLESS": ENDLESS, "FLOODS": FLOODS, "WRONG": WRONG}[table]
    address = serve_all(server, behaviours)
    report = tmp_path / "report.json"
    status, _, errors = run("verify", address, "--allow-private", "--json", str(report))
    assert status == 1, errors
    found = json.loads(report.read_text())
    assert found["urls"] >= 2 * len(behaviours)
    good = {f["name"]: f["urls"] for f in found["files"] if "/good/" in f["name"]}
    assert set(good.values()) == {2} and len(good) == len(behaviours)
    for name in behaviours:
        url = f"{server.base}/bad/{name}.xml"
        fetch = [p for p in found["problems"] if p["url"] == url and p["code"].startswith("fetch.")]
        inside = [p for p in found["problems"] if p["file"] == url and p["severity"] == "error"]
        assert (len(fetch) == 1) or (not fetch and inside), (name, fetch, inside)
    rows = tmp_path / "rows.csv"
    status, _, errors = run("read", address, "--allow-private", "--lenient", "-o", str(rows))
    assert status == 0, errors
    text = rows.read_text()
    for name in behaviours:
        assert text.count(f"{server.base}/{name}/page-") == 2, name


def test_hosts_that_cannot_be_asked(server: HostileServer, tmp_path: Path) -> None:
    server.pages["/good.xml"] = urlset_of(server.base, 3)
    locs = [loc.replace("&", "&amp;").replace("&amp;#", "&#") for loc in BAD_LOCS]
    server.pages["/sitemap.xml"] = index_of(*locs, f"{server.base}/good.xml")
    report = tmp_path / "report.json"
    address = f"{server.base}/sitemap.xml"
    status, _, errors = run("verify", address, "--allow-private", "--json", str(report))
    assert status == 1, errors
    found = json.loads(report.read_text())
    assert found["urls"] == 3
    fetch = [p["url"] for p in found["problems"] if p["code"].startswith("fetch.")]
    assert len(fetch) == len(set(fetch)) == len(BAD_LOCS)


@pytest.mark.parametrize("name", sorted(ALL))
def test_as_the_target_itself(server: HostileServer, name: str, tmp_path: Path,
                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    from urlset.inspect import download
    from urlset.transport import budget

    monkeypatch.setattr(download, "DEADLINE", 4.0)
    monkeypatch.setattr(download, "TIMEOUT", 0.5)
    monkeypatch.setattr(download, "MAX_BYTES", 16 << 20)
    monkeypatch.setattr(budget, "RATE_WINDOW", 1.0)
    server.pages["/sitemap.xml"] = ALL[name]
    server.pages["/good.xml"] = urlset_of(server.base, 2)
    start = time.monotonic()
    for target in (urlset.verify, urlset.read):
        try:
            done = target(f"{server.base}/sitemap.xml", allow_private=True)
            if isinstance(done, urlset.verify.__globals__["VerifyReport"]):
                assert not done.ok, name
            else:
                with done as rows:
                    rows.read_all()
        except urlset.InputError as error:
            assert "\n" not in str(error) and "internal" not in str(error)
    assert time.monotonic() - start < 20


def test_diff_of_bad_servers(server: HostileServer, tmp_path: Path) -> None:
    names = ["drip-body", "interim-fast", "redirect-bracket", "retry-after-superscript", "bomb"]
    address = serve_all(server, {name: ALL[name] for name in names})
    server.pages["/old.xml"] = urlset_of(server.base)
    old = f"{server.base}/old.xml"
    status, _, errors = run("diff", old, address, "--allow-private")
    assert status == 3 and "[fetch." in errors
    out = tmp_path / "changes.csv"
    status, _, errors = run("diff", old, address, "--allow-private", "--lenient", "-o", str(out))
    assert status in (0, 1), errors
    assert sum("added" in row for row in out.read_text().splitlines()) == 2 * len(names)

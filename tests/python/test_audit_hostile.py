"""``urlset audit`` of servers that misbehave: bounded time and memory, an outcome for each page."""

from __future__ import annotations

import ipaddress
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset as package
from audit_site import free_port
from conftest import urlset
from hostile_server import ENDLESS, FLOODS, WRONG, Connection, HostileServer, redirect, status

pytest.importorskip("aiohttp")
pytest.importorskip("lxml")
pytest.importorskip("protego")

pytestmark = pytest.mark.long
PAGE = b"<!doctype html><title>x</title><p>A page."
FAST = {"rate": 0, "allow_private": True, "timeout": 20.0, "sample": "all"}

#: runs a command from a small process: ru_maxrss survives exec, and would be that of pytest
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as found:
        found.default = page()
        yield found


def page(html: bytes = PAGE, *headers: str) -> Any:
    return lambda c: c.answer(html, "Content-Type: text/html", *headers)


def table(folder: Path, *locs: str) -> Path:
    path = folder / "urls.csv"
    path.write_text("loc\n" + "".join(f'"{loc}"\n' for loc in locs))
    return path


def audit(server: HostileServer, folder: Path, *paths: str, **options: Any) -> dict[str, Any]:
    """The rows of the findings, by path, and the report under the key of the empty path."""
    output = folder / "findings.jsonl"
    locs = [f"{server.base}{path}" for path in paths]
    chosen = {**FAST, "output": output, **options}
    report = package.audit(table(folder, *locs), **chosen)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    return {row["loc"].removeprefix(server.base): row for row in rows} | {"": report}


def test_every_behaviour_has_an_outcome(server: HostileServer, tmp_path: Path) -> None:
    behaviours = {**ENDLESS, **FLOODS, **WRONG}
    # these keep the whole host waiting
    names = [name for name in behaviours if not name.startswith("retry-after")]
    server.pages = {f"/{name}": behaviours[name] for name in names} | {"/robots.txt": b""}
    source, output = (
        table(tmp_path, *(f"{server.base}/{name}" for name in names)),
        tmp_path / "f.jsonl",
    )
    report_path = tmp_path / "audit.json"
    command = [
        sys.executable, "-m", "urlset", "audit", source, "--sample", "all", "--rate", "0",
        "--timeout", "2", "--allow-private", "--check-lastmod", "--soft-404", "x", "-o", output,
        "--json", report_path,
    ]  # fmt: skip
    started = time.monotonic()
    measured = [sys.executable, "-c", MEASURE, *map(str, command)]
    done = subprocess.run(measured, capture_output=True, text=True, check=True)
    status, peak = map(int, done.stdout.split())
    assert status == 0, done.stderr
    assert time.monotonic() - started < 120
    assert peak < 400 << 10  # kilobytes on Linux
    report = json.loads(report_path.read_text())
    assert report["judged"] == len(names)
    assert report["complete"]
    codes: dict[str, set[str]] = {name: set() for name in names}
    for line in output.read_text().splitlines():
        row = json.loads(line)
        codes[row["loc"].rpartition("/")[2]].add(row["finding"])
    for name, found in codes.items():
        if name.startswith(("silent", "drip-header", "interim", "drip-redirect")):
            assert found & {"timeout", "unreadable"}, name
        elif name.startswith("redirect"):
            assert found & {"redirect", "unreadable"}, name
        elif name.startswith(("length", "gzip-c", "gzip-g", "encoding-l", "chunk-s")):
            assert "unreadable" in found, name
    assert codes["redirect-loop"] == {"redirect"}
    assert codes["html"] == set()
    assert codes["status-401"] == {"client_error"}
    # the beginning of an endless page is judged, and of a bomb
    assert not codes["body-endless"] & {"timeout", "unreadable"}
    assert not codes["bomb"] & {"timeout", "unreadable"}


def test_too_many_requests(server: HostileServer, tmp_path: Path) -> None:
    answers = iter([1, 1])

    def busy_twice(c: Connection) -> None:
        if next(answers, None) is None:
            page()(c)
        else:
            c.answer(b"", "Retry-After: 1", status="429 Too Many Requests")

    server.pages["/a"] = busy_twice
    started = time.monotonic()
    found = audit(server, tmp_path, "/a", concurrency=1)
    assert found[""].judged == 1
    assert found[""].counts == {}
    assert time.monotonic() - started >= 2
    assert server.asked.count("/a") == 3


def test_a_host_that_asks_for_too_much_patience(server: HostileServer, tmp_path: Path) -> None:
    server.default = status("429 No", "Retry-After: " + "9" * 400)
    server.pages["/robots.txt"] = b""
    found = audit(server, tmp_path, *(f"/{n}" for n in range(200)), concurrency=2)
    report = found.pop("")
    assert {row["finding"] for row in found.values()} == {"rate_limited"}
    assert report.judged == 0
    assert len(server.asked) <= 4
    assert not report.estimates[1:]


def test_one_pause_for_requests_that_were_under_way(server: HostileServer, tmp_path: Path) -> None:
    """Eight requests are refused together: that is one reason to wait, not eight."""
    together = threading.Barrier(8)
    times: list[float] = []

    def busy_at_first(c: Connection) -> None:
        times.append(time.monotonic())
        if len(times) <= 8:
            together.wait(60)
            c.answer(b"", status="429 Too Many Requests")
        else:
            page()(c)

    server.pages["/robots.txt"] = b""
    server.default = busy_at_first
    started = time.monotonic()
    found = audit(server, tmp_path, *(f"/{n}" for n in range(16)), concurrency=8)
    assert found[""].counts == {}
    # 2.5 to 5 s without Retry-After, and none of the 24 requests before its end; 300 s otherwise
    assert len(times) == 24
    assert min(times[8:]) - max(times[:8]) >= 2.4
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("robots", [status("500 No"), status("429 No", "Retry-After: 99999")])
def test_a_host_that_is_given_up_keeps_nothing_waiting(
    server: HostileServer, tmp_path: Path, robots: Any
) -> None:
    server.pages["/robots.txt"] = robots
    started = time.monotonic()
    found = audit(server, tmp_path, *(f"/{n}" for n in range(300)), rate=1)
    assert found[""].judged == 0
    assert time.monotonic() - started < 60  # five minutes at the rate


def test_answers_that_are_no_redirect(server: HostileServer, tmp_path: Path) -> None:
    drop = tmp_path / "drop.csv"
    server.pages |= {
        "/304": lambda c: c.send(b"HTTP/1.1 304 Not Modified\r\nLocation: /x\r\n\r\n"),
        "/300": status("300 Multiple"),
        "/399": status("399 Odd", "Location: /x"), "/to-304": redirect(b"/304"),
        "/choice": status("300 Multiple", "Location: /page"),
    }  # fmt: skip
    found = audit(server, tmp_path, *server.pages, drop_list=drop)
    for path in ("/304", "/300", "/399"):
        assert found[path]["finding"] == "unreadable", path
    assert found["/choice"]["finding"] == found["/to-304"]["finding"] == "redirect"
    assert found["/to-304"]["detail"] == "302, 304: end"
    assert sorted(drop.read_text().split()[1:]) == [
        f"{server.base}/choice,redirect", f"{server.base}/to-304,redirect",
    ]  # fmt: skip


def test_a_share_that_is_the_limit_passes(server: HostileServer, tmp_path: Path) -> None:
    server.pages |= {f"/{n}": status("404 No") for n in range(7)}
    journal = tmp_path / "audit.jsonl"
    for limit, ok in (("0.7%", True), ("0.69%", False)):
        found = audit(server, tmp_path, *(f"/{n}" for n in range(1_000)), max_bad=limit,
                      resume=journal)  # fmt: skip
        assert found[""].ok == ok, limit


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.csv", "\ufeffloc\nhttp://a.invalid/1\n".encode(), None),
        ("a.csv", "loc\nhttp://a.invalid/1\n".encode("utf-16"), "audit.table"),
        ("a.csv", b"loc\nhttp://a.invalid/\xe4\n", "audit.table"),
        ("a.csv", b"loc,x\na,b\nc\n", "audit.table"),
        ("a.csv", b"", "audit.table"),
        ("a.csv", b"loc\n", "audit.empty"),
        ("a.jsonl", b'{"loc": 1\n', "audit.table"),
        ("a.parquet", b"PAR1 PAR1", "audit.table"),
        ("a.arrow", b"ARROW1", "audit.table"),
    ],
)
def test_tables(tmp_path: Path, name: str, content: bytes, code: str | None) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    if code is None:
        assert package.audit(source, **FAST).counts == {"unreachable": 1}
        return
    with pytest.raises(package.InputError) as caught:
        package.audit(source, **FAST)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary", "binary"])
def test_types_of_text(tmp_path: Path, kind: str) -> None:
    locs = ["http://a.invalid/1", " ", None, "http://a.invalid/2"]
    types = {"dictionary": pa.dictionary(pa.int8(), pa.string()), "binary": pa.binary()}
    column = pa.array(locs).cast(types.get(kind) or getattr(pa, kind)())
    pq.write_table(pa.table({"loc": column, "kind": column}), tmp_path / "a.parquet")
    report = package.audit(tmp_path / "a.parquet", by="kind", **FAST)
    assert (report.urls, report.counts) == (2, {"unreachable": 2})


def test_default_ports_are_of_the_same_host(tmp_path: Path) -> None:
    source = table(tmp_path, "http://a.invalid:80/1", "http://A.invalid/2", "http://a.invalid:80/3")
    assert package.audit(source, **FAST).counts == {"unreachable": 3}


def test_server_errors_are_tried_again(server: HostileServer, tmp_path: Path) -> None:
    server.pages["/503"] = status("503 No", "Retry-After: 0")
    server.pages["/500"] = status("500 No")
    found = audit(server, tmp_path, "/503", "/500")
    assert found["/503"]["finding"] == found["/500"]["finding"] == "server_error"
    assert server.asked.count("/503") == 3
    assert server.asked.count("/500") == 1


@pytest.mark.parametrize(
    ("robots", "code"),
    [
        (status("500 No"), "robots_failed"),
        (status("429 No", "Retry-After: 0"), "robots_failed"),
        (lambda c: c.send(b"nonsense\r\n\r\n"), "robots_failed"),
        (status("404 No"), None),
        (status("403 No"), None),
        (redirect(b"http://elsewhere.invalid/robots.txt"), None),
        (redirect(b"/robots.txt"), None),
        (redirect(b"/rules"), "disallowed"),
        (b"user-agent: *\ndisallow: /", "disallowed"),
        (b"\xef\xbb\xbfUser-agent: urlset\nDisallow: /p\n\nUser-agent: *\nAllow: /", "disallowed"),
        (b"User-agent: urlset\nAllow: /\n\nUser-agent: *\nDisallow: /", None),
        (b"User-agent: *\nDisallow: /*.html$\nAllow: /p", None),
        (bytes(range(256)) * 100, None),
        (b"#" * 600_000 + b"\nUser-agent: *\nDisallow: /", None),
        (lambda c: c.answer(b"User-agent: *", "Content-Encoding: br"), "robots_failed"),
        (lambda c: c.answer(b"User-agent: *", "Content-Encoding: gzip"), "robots_failed"),
        (b"User-agent: url\nUser-agent: urlset-news\nDisallow: /", None),
        (b"User-agent: UrlSet/2.1 (crawler)\rDisallow: /\rUser-agent: *\rAllow: /", "disallowed"),
        (b"User-agent: *\nDisallow: /\nUser-agent: url\nAllow: /", "disallowed"),
    ],
)
def test_robots_txt(server: HostileServer, tmp_path: Path, robots: Any, code: str | None) -> None:
    server.pages = {"/robots.txt": robots, "/rules": b"User-agent: *\nDisallow: /p"}
    found = audit(server, tmp_path, "/p", bot="urlset")
    assert found[""].counts == ({} if code is None else {code: 1})
    assert ("/p" in server.asked) == (code is None)


def test_robots_txt_of_another_crawler(server: HostileServer, tmp_path: Path) -> None:
    server.pages["/robots.txt"] = b"User-agent: Googlebot\nDisallow: /p\n"
    found = audit(server, tmp_path, "/p", "/q")
    assert (found["/p"]["finding"], found["/p"]["status"]) == ("disallowed", 200)
    assert found[""].counts == {"disallowed": 1}
    assert found[""].estimate("bad").share == 0.5


def test_a_name_that_begins_like_that_of_the_crawler(server: HostileServer, tmp_path: Path) -> None:
    server.pages["/robots.txt"] = (
        b"User-agent: google\nDisallow: /\n\nUser-agent: Googlebot-News\nDisallow: /\n"
    )
    assert audit(server, tmp_path, "/p")[""].counts == {}
    assert audit(server, tmp_path, "/p", bot="Googlebot-News/1")[""].counts == {"disallowed": 1}
    assert audit(server, tmp_path, "/p", bot="Googlebot-Image")[""].counts == {}
    # without a group of its own it takes that of its family
    server.pages["/robots.txt"] = b"User-agent: Googlebot\nDisallow: /\n"
    assert audit(server, tmp_path, "/p", bot="Googlebot-Image")[""].counts == {"disallowed": 1}


def test_robots_txt_that_allows_search_engines_only(server: HostileServer, tmp_path: Path) -> None:
    server.pages["/robots.txt"] = (
        b"User-agent: googlebot\nDisallow: /q\n\nUser-agent: *\nDisallow: /\n"
    )
    found = audit(server, tmp_path, "/p", "/q")
    # nothing is known about the first one; the second one is disallowed for both
    assert found["/p"]["finding"] == "robots_refused"
    assert found["/q"]["finding"] == "disallowed"
    assert found[""].judged == 1
    assert server.asked == ["/robots.txt"]


def test_a_failed_page_is_fetched_again(server: HostileServer, tmp_path: Path) -> None:
    journal, drop = tmp_path / "audit.jsonl", tmp_path / "drop.csv"
    server.pages |= {"/busy": status("429 No", "Retry-After: 0"), "/gone": status("410 Gone")}
    options = {"resume": journal, "drop_list": drop}
    found = audit(server, tmp_path, "/busy", "/gone", "/good", **options)
    assert found[""].counts == {"gone": 1, "rate_limited": 1}
    server.pages["/busy"] = status("404 No")
    for _ in range(2):  # the third audit has nothing to do
        server.asked.clear()
        found = audit(server, tmp_path, "/busy", "/gone", "/good", **options)
        assert found[""].counts == {"gone": 1, "not_found": 1}
        assert found[""].complete
        assert found["/busy"]["finding"] == "not_found"
        assert len(drop.read_text().splitlines()) == 3
        assert "/gone" not in server.asked
    assert server.asked == []


def test_crawl_delay(server: HostileServer, tmp_path: Path) -> None:
    server.pages["/robots.txt"] = b"User-agent: *\nCrawl-delay: 0.5\nCrawl-delay: inf\n"
    started = time.monotonic()
    audit(server, tmp_path, *(f"/{n}" for n in range(5)))
    assert time.monotonic() - started >= 4 * 0.49


def test_redirects(server: HostileServer, tmp_path: Path) -> None:
    port = str(server.port).encode()
    server.pages |= {
        "/other-host": redirect(b"http://127.0.0.2:" + port + b"/x"),
        "/other-port": redirect(b"http://127.0.0.1:1/x"),
        "/two": redirect(b"/one", b"301 Moved"), "/one": redirect(b"/end"), "/end": page(),
        "/gone": redirect(b"/410"), "/410": status("410 Gone"),
        "/latin": redirect(b"../K\xe4se?\xff#\xe4"), "/utf-8": redirect("Käse".encode()),
        "/long": redirect(b"/l1"), **{f"/l{n}": redirect(b"/l%d" % (n + 1)) for n in range(9)},
    }  # fmt: skip
    paths = ("/other-host", "/other-port", "/two", "/gone", "/long", "/latin", "/utf-8")
    found = audit(server, tmp_path, *paths)
    assert {row["finding"] for path, row in found.items() if path} == {"redirect"}
    assert "not followed" in found["/other-host"]["detail"]
    assert "not followed" in found["/other-port"]["detail"]
    assert found["/two"]["target"] == f"{server.base}/end"
    assert found["/two"]["detail"].startswith("301, 302, 200")
    assert found["/gone"]["detail"].startswith("302, 410")
    assert "more than 5" in found["/long"]["detail"]
    assert found["/latin"]["target"] == f"{server.base}/K%E4se?%FF"
    assert found["/utf-8"]["target"] == f"{server.base}/K%C3%A4se"
    assert {"/K%E4se?%FF", "/K%C3%A4se"} <= set(server.asked)


def test_private_addresses(
    server: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loopback address of the server counts as public, all others do not."""
    names = {
        "good.example": ["127.0.0.1"], "bad.example": ["127.0.0.3"],
        "both.example": ["127.0.0.1", "127.0.0.3"],
    }  # fmt: skip
    resolved: list[str] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        resolved.append(host)
        if host not in names:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in names[host]]

    public = ipaddress.ip_address("127.0.0.1")
    monkeypatch.setattr("urlset.transport.address._is_public", lambda ip: ip == public)
    monkeypatch.setattr("urlset.transport.address.socket.getaddrinfo", getaddrinfo)
    server.pages |= {
        "/to-number": redirect(b"http://127.0.0.2:%d/x" % server.port),
        "/to-short": redirect(b"http://127.2:%d/x" % server.port),
        "/to-name": redirect(b"http://bad.example:%d/x" % server.port),
    }
    locs = [f"http://{name}:{server.port}/p" for name in (*names, "missing.example", "127.0.0.9")]
    locs += [f"{server.base}/to-{kind}" for kind in ("number", "short", "name")]
    output = tmp_path / "f.jsonl"
    options = {**FAST, "allow_private": False, "hosts": "any", "output": output}
    package.audit(table(tmp_path, *locs), **options)
    found = {row["loc"]: row for row in map(json.loads, output.read_text().splitlines())}
    assert [found[loc]["finding"] if loc in found else None for loc in locs] == [
        None, "private", "private", "unreachable", "private", "redirect", "redirect", "redirect",
    ]  # fmt: skip
    for loc in locs[5:]:
        assert "private" in found[loc]["detail"] or "not a URL" in found[loc]["detail"]
    # resolved once for each connection, and connected to what was checked
    assert server.asked.count("/p") == 1
    assert "/x" not in server.asked


def test_a_host_without_a_server(tmp_path: Path) -> None:
    port = free_port()
    locs = [f"http://127.0.0.1:{port}/{n}" for n in range(50)]
    report = package.audit(table(tmp_path, *locs), **FAST)
    assert report.counts == {"unreachable": 50}
    assert report.estimate("bad").share == 1.0
    assert report.requests <= 5


def test_hostile_values_do_not_reach_the_terminal(server: HostileServer, tmp_path: Path) -> None:
    server.pages["/p"] = page(b'<meta name=robots content="noindex \x1b[31m\xc2\x9b\r\n">')
    server.pages["/q"] = page(b'<link rel=canonical href="/\x1b]0;x\x07\xe2\x80\xae">')
    source = table(tmp_path, f"{server.base}/p", f"{server.base}/q", f"{server.base}/\x1b[2J")
    ended = urlset("audit", source, "--rate", "0", "--allow-private")
    assert ended.status == 0, ended.err
    assert {c for c in ended.out + ended.err if not c.isprintable()} <= {"\n"}
    assert "noindex" in ended.out

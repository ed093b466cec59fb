"""Engines that answer anything: a line in the report, in time, and no key in it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urlset
from hostile_server import ENDLESS, FLOODS, WRONG, HostileServer, body, redirect

from .conftest import assert_no_key, make_site, page, run_cli, write_list

pytestmark = pytest.mark.long

ALL = {**ENDLESS, **FLOODS, **WRONG}
ENGINES = ["indexnow", "bing", "yandex", "google", "robots"]
GOOGLE_TOKEN = "ya29.token-token-token-token"

DEEP = b"[" * 100_000 + b"]" * 100_000
DEEP_OBJECT = b'{"d":' * 100_000 + b"1" + b"}" * 100_000
#: bodies of an answer with status 200
BODIES: dict[str, bytes] = {
    "empty": b"",
    "text": b"fine",
    "html": b"<html><title>no</title></html>",
    "nul": b"\0" * 100,
    "latin": b'{"d": "\xff\xfe"}',
    "utf-16": '{"d": null}'.encode("utf-16"),
    "cut": b'{"d": {"DailyQuota":',
    "deep": DEEP,
    "deep-object": DEEP_OBJECT,
    "deep-user": b'{"user_id": ' + b"[" * 900 + b"]" * 900 + b"}",
    "digits": b'{"d": ' + b"9" * 5_000 + b"}",
    "huge-numbers": b'{"d": {"DailyQuota": 1e999, "MonthlyQuota": -1e999}, "ErrorCode": 1e999}',
    "nan": b'{"d": NaN, "user_id": NaN, "ErrorCode": NaN}',
    "lone-surrogate": b'{"d": "\\ud800", "user_id": "\\ud800", "access_token": "\\ud800"}',
    "null": b"null",
    "list": b"[]",
    "number": b"1",
    "true": b'{"d": true, "user_id": true, "access_token": true, "ErrorCode": true}',
    "types": b'{"d": [{}], "user_id": {"a": []}, "access_token": [], "ErrorCode": [],'
             b'"sitemap": 1}',
    "paths": b'{"sitemap": [{"path": []}, {"path": {}}, {"path": null}, {"path": 1}, {}]}',
    "times": b'{"sitemap": [{"path": "a", "lastSubmitted": "0001-01-01T00:00:00+23:59",'
             b'"lastDownloaded": "9999-12-31T23:59:59-23:59", "errors": {}, "warnings": "-1",'
             b'"contents": [1, {"type": [], "submitted": "9999999999999999999999"}]}]}',
    "control": b'{"d": "\\u001b]0;x\\u0007", "error": "\\u001b[31m"}',
    "quota": b'{"d": {"DailyQuota": "5", "MonthlyQuota": null}}',
    "quota-minus": b'{"d": {"DailyQuota": -5, "MonthlyQuota": -9}}',
    "quota-digits": b'{"d": {"DailyQuota": ' + b"9" * 4_000 + b', "MonthlyQuota": 0}}',
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


@pytest.fixture
def account_at(tmp_path: Path, rsa_key: Any, server: HostileServer) -> Path:
    from cryptography.hazmat.primitives import serialization

    pem = rsa_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    path = tmp_path / "account-at.json"
    info = {"type": "service_account", "client_email": "a@b.example", "private_key": pem,
            "token_uri": server.base + "/token"}  # fmt: skip
    path.write_text(json.dumps(info))
    return path


def tell(site: Path, server: HostileServer, engine: str, account: Path, **more: Any) -> Any:
    options: dict[str, Any] = {"timeout": 0.5, "retries": 0, "max_wait": 0.5, **more}
    if engine == "google":
        options["key_file"] = {"google": account}
    if engine in ("indexnow", "bing"):
        options["urls"] = write_list(site / "urls.list", [page(1), page(2)])
    if engine == "robots":
        options["check"] = True
    return urlset.announce(site, to=engine, endpoint={engine: server.base}, **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(ALL))
def test_answers(
    site: Path, server: HostileServer, keyed: None, account_at: Path, engine: str, name: str
) -> None:
    server.default = ALL[name]
    start = time.monotonic()
    report = tell(site, server, engine, account_at)
    assert time.monotonic() - start < 15
    text = json.dumps(report.to_dict()) + report.table() + "".join(report.problems())
    assert_no_key(text, account_at.read_text()[100:200])
    for outcome in report.outcomes:
        accepted = outcome.result in ("accepted", "partly")
        assert (outcome.code or "").startswith(f"{engine}.") or accepted
        # only IndexNow needs nothing but the status
        assert not accepted or engine == "indexnow"
        assert len(outcome.detail) < 1_000 and outcome.detail.isprintable()
    assert report.outcomes and not report.environment_failed


@pytest.mark.parametrize("engine", [*ENGINES, "google --status"])
@pytest.mark.parametrize("name", sorted(BODIES))
def test_bodies(
    site: Path, server: HostileServer, keyed: None, account_at: Path, engine: str, name: str
) -> None:
    server.default = body(BODIES[name])
    engine, _, status = engine.partition(" ")
    if status:
        good = json.dumps({"access_token": GOOGLE_TOKEN}).encode()
        server.pages["/token"] = body(good)
    report = tell(site, server, engine, account_at, **({"status": True} if status else {}))
    assert report.outcomes
    text = json.dumps(report.to_dict()) + report.status_table() + "".join(report.problems())
    assert_no_key(text, GOOGLE_TOKEN)


@pytest.mark.parametrize("name", ["redirect-bracket", "retry-after-superscript", "interim-fast",
                                  "drip-header-value", "length-minus", "random"])  # fmt: skip
def test_the_command(site: Path, server: HostileServer, keyed: None, name: str) -> None:
    """All engines at once: each has its line, and the exit status is that of a refusal."""
    server.default = ALL[name]
    changes = write_list(site / "urls.list", [page(1)])
    engines = ["indexnow", "bing", "yandex"]
    done = run_cli(
        site, *(f"--to={engine}" for engine in engines), "--urls", changes, "--timeout", "0.5",
        "--endpoint", server.base, "--retries", "0", "--max-wait", "0",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    for engine in engines:
        assert f"error: {engine}: " in done.stderr
    assert "internal" not in done.stderr and "Traceback" not in done.stderr
    assert_no_key(done.stdout + done.stderr)


def test_interim_answers_do_not_keep_threads(
    site: Path, server: HostileServer, keyed: None, account_at: Path
) -> None:
    """The exchange itself ends at its limit: nothing continues in the background."""
    import threading

    server.default = ENDLESS["interim-slowly"]
    before = {thread for thread in threading.enumerate() if "_serve" not in thread.name}
    tell(site, server, "bing", account_at)
    time.sleep(1.5)
    own = [
        thread for thread in threading.enumerate()
        if thread not in before and "_serve" not in thread.name
    ]  # fmt: skip
    assert own == []


# --- robots --check: the addresses that it may reach


def test_check_is_not_led_to_another_private_host(
    tmp_path: Path, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site that the user names may be on this machine; a target of a redirect may not."""
    site = make_site(tmp_path / "out", site="http://shop.test")
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *rest: Any, **options: Any) -> Any:
        known = ("shop.test", "inside.test", b"shop.test", b"inside.test")
        return real("127.0.0.1" if host in known else host, port, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    base = f"http://127.0.0.1:{server.port}"
    lines = b"Sitemap: http://shop.test/sitemap.xml\n"
    server.pages["/inside"] = lines
    server.pages["/robots.txt"] = redirect(f"http://inside.test:{server.port}/inside".encode())
    options: dict[str, Any] = {"to": "robots", "check": True, "retries": 0, "endpoint": base}
    report = urlset.announce(site, **options)
    assert report.outcomes[0].code == "robots.unanswered"
    assert "private address" in report.outcomes[0].detail
    assert server.asked == ["/robots.txt"]
    server.pages["/robots.txt"] = redirect(f"{base}/inside".encode())
    assert urlset.announce(site, **options).ok


def test_check_of_a_site_that_only_the_data_names(tmp_path: Path, server: HostileServer) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "sitemap.xml").write_text(
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"<sitemap><loc>{server.base}/a.xml</loc></sitemap></sitemapindex>"
    )
    server.pages["/robots.txt"] = f"Sitemap: {server.base}/sitemap.xml\n".encode()
    options: dict[str, Any] = {"to": "robots", "check": True, "retries": 0}
    report = urlset.announce(folder, **options)
    assert "private address" in report.outcomes[0].detail and server.connections == 0
    assert urlset.announce(folder, sitemap_url=f"{server.base}/", **options).ok


def test_a_proxy_with_a_password(
    site: Path, keyed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("https_proxy", "gopher://user:hunter2@proxy.test")
    report = urlset.announce(site, to="yandex", retries=0, timeout=1)
    assert report.outcomes[0].code == "yandex.unanswered"
    assert "hunter2" not in str(report.to_dict()) and "not an address" in report.outcomes[0].detail

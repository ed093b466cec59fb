"""Search Console: a throw-away service account, its token and the API, all on loopback."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import parse_qs

import pytest
import urlset
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from .conftest import Reply, assert_no_key, make_site, run_cli

TOKEN = "ya29.token-token-token-token"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SUBMIT = (
    "/webmasters/v3/sites/https%3A%2F%2Fwww.example.com%2F"
    "/sitemaps/https%3A%2F%2Fwww.example.com%2Fsitemap.xml"
)
LIST = "/webmasters/v3/sites/https%3A%2F%2Fwww.example.com%2F/sitemaps"


def google(engine, answer):
    """A token for each request, ``answer`` for the API."""

    def both(asked):
        if asked.path == "/token":
            return Reply(200, json.dumps({"access_token": TOKEN, "expires_in": 3599}).encode())
        return answer if isinstance(answer, Reply) else answer(asked)

    engine.answer = both


def tell(site, engine, account, **options):
    return urlset.announce(
        site,
        to="google",
        key_file={"google": account},
        endpoint=engine.url,
        timeout=5,
        retries=1,
        **options,
    )


def part(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.mark.parametrize("status", [200, 204])
def test_submit_to_the_letter(site, engine, account, rsa_key, status):
    google(engine, Reply(status))
    report = tell(site, engine, account)
    assert report.ok and report.outcomes[0].what == "https://www.example.com/sitemap.xml"
    token, submit = engine.asked
    assert (submit.method, submit.path, submit.body) == ("PUT", SUBMIT, b"")
    assert submit.headers["authorization"] == f"Bearer {TOKEN}"
    # the request for the token, its signature checked with the public key
    assert (token.method, token.path) == ("POST", "/token")
    form = parse_qs(token.body.decode())
    assert form["grant_type"] == [GRANT]
    head, claims, signature = form["assertion"][0].split(".")
    rsa_key.public_key().verify(
        part(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
    )
    said = json.loads(part(claims))
    assert said["scope"] == "https://www.googleapis.com/auth/webmasters"
    assert said["iss"] == "robot@example.iam.gserviceaccount.com"
    assert said["aud"] == engine.url + "/token"
    assert abs(said["iat"] - time.time()) < 30 and said["exp"] - said["iat"] == 3_600
    assert_no_key(str(report.to_dict()), TOKEN)


def test_a_domain_property_and_several_indexes(tmp_path, engine, account):
    site = make_site(tmp_path / "o", indexes=("a.xml", "b.xml"))
    google(engine, Reply(204))
    assert tell(site, engine, account, property="sc-domain:example.com").ok
    assert [a.path for a in engine.asked[1:]] == [
        "/webmasters/v3/sites/sc-domain%3Aexample.com/sitemaps/https%3A%2F%2Fwww.example.com%2Fa.xml",
        "/webmasters/v3/sites/sc-domain%3Aexample.com/sitemaps/https%3A%2F%2Fwww.example.com%2Fb.xml",
    ]


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, "google.refused", "refused"),
        (401, "google.token_refused", "token"),
        (403, "google.property", "sc-domain:HOST"),
        (404, "google.property", "does not belong to this account"),
        (201, "google.refused", "HTTP 201"),
        (418, "google.refused", "HTTP 418"),
    ],
)
def test_refusals(tmp_path, engine, account, status, code, words):
    site = make_site(tmp_path / "o", indexes=("a.xml", "b.xml"))
    google(engine, Reply(status, f"echo {TOKEN}".encode()))
    report = tell(site, engine, account)
    assert [o.code for o in report.outcomes] == [code] * 2 and report.exit_status == 1
    assert words in report.outcomes[0].detail
    # a request that fails because of the property or the token is sent once
    assert len(engine.asked) - 1 == (2 if code == "google.refused" else 1)
    assert_no_key(str(report.to_dict()), TOKEN)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_trouble_is_retried(site, engine, account, quick, status):
    left = [Reply(status, headers={"Retry-After": "0"}), Reply(204)]
    google(engine, lambda _asked: left.pop(0))
    assert tell(site, engine, account).ok and not left


def test_a_redirect_takes_no_token_along(site, engine, other, account):
    google(engine, Reply(307, headers={"Location": other.url + SUBMIT}))
    report = tell(site, engine, account)
    assert report.outcomes[0].code == "google.redirect" and other.asked == []
    engine.says(Reply(307, headers={"Location": other.url + "/token"}))
    report = tell(site, engine, account)
    assert report.outcomes[0].code == "google.redirect" and other.asked == []


STATUS = {
    "sitemap": [
        {
            "path": "https://www.example.com/sitemap.xml",
            "type": "SITEMAP",
            "lastSubmitted": "2026-11-20T01:02:03.456Z",
            "isPending": False,
            "isSitemapsIndex": True,
            "lastDownloaded": "2026-11-20T04:05:06.789+02:00",
            "warnings": "12",
            "errors": "0",
            "contents": [
                {"type": "web", "submitted": "1000000", "indexed": "0"},
                {"type": "image", "submitted": 5},
            ],
        },
        {"path": "https://www.example.com/old.xml", "errors": "3", "isPending": True},
    ]
}


def test_status(site, engine, account):
    google(engine, Reply(200, json.dumps(STATUS).encode()))
    report = tell(site, engine, account, status=True)
    assert report.ok
    assert [(a.method, a.path) for a in engine.asked[1:]] == [("GET", LIST)]
    claims = json.loads(part(parse_qs(engine.asked[0].body.decode())["assertion"][0].split(".")[1]))
    assert claims["scope"] == "https://www.googleapis.com/auth/webmasters.readonly"
    ours, old = report.statuses
    assert (ours.errors, ours.warnings, ours.type) == (0, 12, "sitemap")
    assert ours.last_downloaded == "2026-11-20T02:05:06Z"
    assert ours.submitted == {"web": 1_000_000, "image": 5}
    assert (old.ours, old.errors, old.pending, old.last_downloaded) == (False, 3, True, None)
    lines = report.status_table().splitlines()
    assert "1,000,005" in lines[1] and "not of this target, pending" in lines[2]


def test_status_asks_for_what_the_list_lacks(site, engine, account):
    google(engine, lambda a: Reply(200, b"{}") if a.path == LIST else Reply(404))
    report = tell(site, engine, account, status=True)
    assert [(a.method, a.path) for a in engine.asked[1:]] == [("GET", LIST), ("GET", SUBMIT)]
    assert not report.ok and report.outcomes[0].detail == "never submitted"


def test_status_with_errors(site, engine, account):
    item = {"path": "https://www.example.com/sitemap.xml", "errors": "7"}
    google(engine, lambda a: Reply(200, json.dumps({} if a.path == LIST else item).encode()))
    report = tell(site, engine, account, status=True)
    assert report.exit_status == 1 and report.outcomes[0].detail == "7 errors"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"no",
        b'{"sitemap": 7}',
        b'{"sitemap": [7]}',
        b"[" * 100_000,
    ],
)
def test_status_from_a_strange_server(site, engine, account, body):
    google(engine, Reply(200, body))
    report = tell(site, engine, account, status=True)
    assert report.outcomes[0].code == "google.answer"


@pytest.mark.parametrize(
    "value",
    [
        {"errors": "many"},
        {"errors": -1},
        {"errors": True},
        {"contents": [7]},
        {"type": 3},
        {"errors": "9" * 5000},
        {"contents": {"a": 1}},
        {"lastDownloaded": "\x1b[2J"},
        {"contents": [{"type": "\x1b]0;evil\x07", "submitted": "x"}]},
        {"isPending": "yes"},
    ],
)
def test_status_of_strange_values(site, engine, account, value):
    item = {"path": "https://www.example.com/sitemap.xml", **value}
    google(engine, Reply(200, json.dumps({"sitemap": [item]}).encode()))
    report = tell(site, engine, account, status=True)
    assert len(report.statuses) == 1 and "\x1b" not in report.status_table()


def test_a_list_that_is_huge(site, engine, account):
    google(engine, Reply(200, huge=1 << 28))
    report = tell(site, engine, account, status=True)
    assert report.outcomes[0].code == "google.answer" and engine.sent < 1 << 26


@pytest.mark.parametrize("minutes", [-90, 90])
def test_a_clock_far_off(site, engine, account, minutes):
    there = datetime.now(UTC) + timedelta(minutes=minutes)
    date = format_datetime(there, usegmt=True)
    engine.says(Reply(400, b'{"error":"invalid_grant"}', headers={"Date": date}))
    report = tell(site, engine, account)
    (outcome,) = report.outcomes
    assert outcome.code == "google.clock"
    assert f"90 minutes {'behind' if minutes > 0 else 'ahead of'}" in outcome.detail


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(400, b'{"error":"invalid_grant","error_description":"ECHO"}'), "invalid_grant"),
        (Reply(401, b'{"error":"<script>"}'), "HTTP 401"),
        (Reply(200, b"{}"), "contains none"),
        (Reply(200, b'{"access_token":"a b\\r\\nX: y"}'), "contains none"),
        (Reply(200, b'{"access_token":5}'), "contains none"),
    ],
)
def test_no_token(site, engine, account, reply, words):
    engine.says(reply)
    report = tell(site, engine, account)
    (outcome,) = report.outcomes
    assert outcome.code == "google.token_refused" and words in outcome.detail
    assert "ECHO" not in outcome.detail and "script" not in outcome.detail
    assert len(engine.asked) == 1


def test_an_echoed_assertion_is_hidden(site, engine, account):
    """A token endpoint that repeats what was sent to it, with a status that is retried."""
    engine.answer = lambda asked: Reply(503, asked.body)
    report = tell(site, engine, account)
    assertion = parse_qs(engine.asked[0].body.decode())["assertion"][0]
    assert assertion.split(".")[2][:40] not in str(report.to_dict())


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/token",
        "http://oauth2.googleapis.com/token",
        "https://oauth2.googleapis.com.evil.example/token",
        "https://oauth2.googleapis.com@evil/token",
        "https://oauth2.googleapis.com/token?to=evil",
        "http://localhost.evil.example/",
        "x",
    ],
)
def test_the_key_file_cannot_send_elsewhere(site, engine, account, uri):
    info = json.loads(account.read_text())
    account.write_text(json.dumps({**info, "token_uri": uri}))
    with pytest.raises(urlset.ConfigError) as caught:
        tell(site, engine, account)
    assert caught.value.code == "google.key_file" and "token_uri" in str(caught.value)
    assert engine.asked == []


def test_a_token_uri_on_loopback_needs_an_endpoint_there(site, engine, account):
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(site, to="google", key_file={"google": account})
    assert "token_uri" in str(caught.value) and engine.asked == []


@pytest.mark.parametrize(
    "change",
    [
        {"type": "authorized_user"},
        {"private_key": "-----BEGIN NONSENSE SECRETSECRETSECRET"},
        {"private_key": 7},
        {"client_email": ""},
        {"token_uri": None},
    ],
)
def test_a_bad_account(site, engine, account, change):
    account.write_text(json.dumps({**json.loads(account.read_text()), **change}))
    with pytest.raises(urlset.ConfigError) as caught:
        tell(site, engine, account)
    assert caught.value.code == "google.key_file" and "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None and engine.asked == []


def test_the_quota_is_kept():
    """20 a second and 200 a minute, on a simulated clock."""
    from urlset.announce.google import PER_MINUTE, PER_SECOND, Pace

    now, sent = 0.0, []
    pace = Pace((PER_SECOND, 1.0), (PER_MINUTE, 60.0), clock=lambda: now)
    for _ in range(1_000):
        now += pace.delay()
        sent.append(now)
    for width, limit in ((1.0, 20), (60.0, 200)):
        for start in sent:
            assert sum(start <= at < start + width for at in sent) <= limit
    assert 240 <= sent[-1] < 250


@pytest.mark.parametrize(
    "name",
    [
        "sc-domain:",
        "sc-domain:a b.c",
        "www.example.com",
        "https://a/\r\nX: y",
        "",
        "sc-domain:a/../b",
    ],
)
def test_a_bad_property(site, engine, account, name):
    with pytest.raises(urlset.ConfigError) as caught:
        tell(site, engine, account, property=name)
    assert caught.value.code == "google.bad_property" and engine.asked == []


def test_no_account(site, engine):
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(site, to="google", endpoint=engine.url)
    assert caught.value.code == "google.no_key"


def test_without_google_auth(site, engine, account, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(urlset.ConfigError) as caught:
        tell(site, engine, account)
    assert caught.value.code == "google.not_installed" and "urlset[google]" in str(caught.value)


def test_the_command(site, engine, account):
    google(engine, Reply(200, json.dumps(STATUS).encode()))
    result = run_cli(
        site,
        "--to",
        "google",
        "--status",
        "--endpoint",
        engine.url,
        GOOGLE_APPLICATION_CREDENTIALS=str(account),
    )
    assert result.returncode == 0, result.stderr
    assert "2026-11-20T02:05:06Z" in result.stdout
    assert_no_key(result.stdout + result.stderr, TOKEN)

"""Bing's and Yandex's APIs on loopback."""

from __future__ import annotations

import json
import signal
import time

import pytest
import urlset

from .conftest import (
    ALL_KEYS,
    BING_KEY,
    YANDEX_TOKEN,
    Reply,
    assert_no_key,
    make_site,
    page,
    start_cli,
    write_list,
)

pytestmark = pytest.mark.usefixtures("keyed", "quick")
OK = Reply(200, b'{"d":null}')


def bing(site, engine, **options):
    options = {"timeout": 5, "retries": 1, **options}
    return urlset.announce(site, to="bing", endpoint=engine.url, **options)


def test_submit_feed_to_the_letter(site, engine):
    engine.says(OK)
    report = bing(site, engine)
    assert report.ok
    (asked,) = engine.asked
    assert asked.method == "POST"
    assert asked.path == f"/webmaster/api.svc/json/SubmitFeed?apikey={BING_KEY}"
    assert asked.headers["content-type"] == "application/json; charset=utf-8"
    assert asked.body == (
        b'{"siteUrl":"https://www.example.com","feedUrl":"https://www.example.com/sitemap.xml"}'
    )


def test_the_property_is_sent_as_it_is_given(site, engine):
    engine.says(OK)
    assert bing(site, engine, property="http://www.example.com/").ok
    assert engine.asked[0].json()["siteUrl"] == "http://www.example.com/"


@pytest.mark.parametrize(
    ("code", "name", "ours"),
    [
        (3, "InvalidApiKey", "bing.key_refused"),
        (14, "NotAuthorized", "bing.property"),
        (8, "InvalidParameter", "bing.refused"),
        (16, "Deprecated", "bing.refused"),
        (1, "InternalError", "bing.refused"),
    ],
)
@pytest.mark.parametrize("status", [200, 400])
def test_error_codes(site, engine, code, name, ours, status):
    message = f"ERROR!!! {name} {BING_KEY}"
    engine.says(Reply(status, json.dumps({"ErrorCode": code, "Message": message}).encode()))
    report = bing(site, engine)
    (outcome,) = report.outcomes
    assert outcome.code == ours and name in outcome.detail and "***" in outcome.detail
    assert len(engine.asked) == 1 and report.exit_status == 1
    assert_no_key(str(report.to_dict()))


@pytest.mark.parametrize("code", [4, 5])
def test_throttling_is_waited_for(site, engine, code):
    throttled = Reply(400, json.dumps({"ErrorCode": code}).encode(), {"Retry-After": "1"})
    engine.says(throttled, OK)
    assert bing(site, engine).ok
    assert engine.asked[1].at - engine.asked[0].at > 0.99


@pytest.mark.parametrize(
    "reply",
    [
        Reply(400),
        Reply(404),
        Reply(401),
        Reply(418, b"[]"),
        Reply(200, b"<html>"),
        Reply(200),
        Reply(400, b'{"ErrorCode":"3"}'),
        Reply(400, b'{"ErrorCode":99}'),
        Reply(200, b"[" * 99_999),
    ],
)
def test_strange_answers(site, engine, reply):
    engine.says(reply)
    report = bing(site, engine)
    assert report.exit_status == 1 and report.outcomes[0].code in ("bing.refused", "bing.answer")


def test_a_redirect_takes_no_key_along(site, engine, other):
    engine.says(Reply(302, headers={"Location": f"{other.url}/?apikey={BING_KEY}"}))
    report = bing(site, engine)
    assert report.outcomes[0].code == "bing.redirect" and other.asked == []
    assert_no_key(str(report.to_dict()))


def test_a_server_that_is_gone_does_not_show_the_key(site, engine, caplog):
    """httpx puts the address, and with it the key, into its exceptions and its log."""
    caplog.set_level(1)
    engine.says(Reply(cut="before"))
    report = bing(site, engine)
    engine.says(OK)
    assert bing(site, engine).ok
    engine.close()
    report2 = bing(site, engine)
    assert report.outcomes[0].code == report2.outcomes[0].code == "bing.unanswered"
    assert "HTTP Request" in caplog.text  # httpx did log
    assert_no_key(caplog.text + str(report.to_dict()) + str(report2.to_dict()))


def quota(engine, daily, monthly=10_000, reply=OK):
    def answer(asked):
        if "GetUrlSubmissionQuota" in asked.path:
            return Reply(
                200, json.dumps({"d": {"DailyQuota": daily, "MonthlyQuota": monthly}}).encode()
            )
        return reply

    engine.answer = answer


def batches(engine):
    return [a.json()["urlList"] for a in engine.asked if "SubmitUrlBatch" in a.path]


def test_urls_within_the_quota(site, engine, tmp_path):
    quota(engine, 2_000)
    urls = write_list(tmp_path / "u.txt", [page(i) for i in range(1_001)])
    report = bing(site, engine, urls=urls)
    assert report.ok
    assert [len(b) for b in batches(engine)] == [500, 500, 1]
    feed, ask, first = engine.asked[:3]
    assert "SubmitFeed" in feed.path
    assert (ask.method, ask.path) == (
        "GET",
        "/webmaster/api.svc/json/GetUrlSubmissionQuota"
        f"?siteUrl=https%3A%2F%2Fwww.example.com&apikey={BING_KEY}",
    )
    assert first.path == f"/webmaster/api.svc/json/SubmitUrlBatch?apikey={BING_KEY}"
    assert first.body.startswith(
        b'{"siteUrl":"https://www.example.com","urlList":["https://www.example.com/p/0000000",'
    )


def test_the_quota_ends_and_the_next_run_goes_on(site, engine, tmp_path):
    quota(engine, 10_000, monthly=700)
    urls = write_list(tmp_path / "u.txt", [page(i) for i in range(1_001)])
    report = bing(site, engine, urls=urls)
    last = report.outcomes[-1]
    assert (last.result, last.accepted, last.total) == ("partly", 700, 1_001)
    assert last.code == "bing.quota" and report.exit_status == 1
    before = [u for b in batches(engine) for u in b]
    engine.asked.clear()
    quota(engine, 500)
    assert bing(site, engine, urls=urls).ok
    after = [u for b in batches(engine) for u in b]
    assert len(before) == 700 and sorted(before + after) == [page(i) for i in range(1_001)]


@pytest.mark.parametrize(("sign", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_is_not_told_as_a_quota(site, engine, tmp_path, sign, status):
    quota(engine, 2_000, reply=Reply(200, OK.body, delay=3))
    urls = write_list(tmp_path / "u.txt", [page(i) for i in range(1_001)])
    told = tmp_path / "r.json"
    process = start_cli(
        site, "--to", "bing", "--urls", urls, "--endpoint", engine.url, "--json", told
    )
    while not batches(engine):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(sign)
    out, err = process.communicate(timeout=30)
    assert process.returncode == status and "Traceback" not in err
    assert_no_key(out + err)
    assert json.loads(told.read_text())["outcomes"][-1]["code"] == "bing.interrupted"
    assert "quota" not in err


@pytest.mark.parametrize(("daily", "monthly"), [(0, 0), (-5, 9), (None, 9), ("9", 9), (True, 9)])
def test_no_quota(site, engine, tmp_path, daily, monthly):
    quota(engine, daily, monthly)
    report = bing(site, engine, urls=write_list(tmp_path / "u.txt", [page(1)]))
    assert not report.ok and batches(engine) == []
    assert report.outcomes[-1].code in ("bing.quota", "bing.answer")


def test_urls_of_another_site(site, engine, tmp_path):
    quota(engine, 10)
    report = bing(
        site, engine, urls=write_list(tmp_path / "u.txt", [page(1), page(2, "b.example")])
    )
    assert batches(engine) == [[page(1)]] and not report.ok
    assert report.outcomes[0].code == "bing.other_host"


def yandex(site, engine, **options):
    return urlset.announce(
        site,
        to="yandex",
        endpoint=engine.url,
        timeout=5,
        retries=1,
        **{"yandex_user": "42", **options},
    )


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (Reply(201, b'{"sitemap_id":"c7-fe:80-c0"}'), ""),
        (
            Reply(409, b'{"error_code":"SITEMAP_ALREADY_ADDED","sitemap_id":"1"}'),
            "was added before",
        ),
    ],
)
def test_yandex_to_the_letter(site, engine, reply, detail):
    engine.says(reply)
    report = yandex(site, engine)
    assert report.ok and report.outcomes[0].detail == detail
    (asked,) = engine.asked
    assert (asked.method, asked.path) == (
        "POST",
        "/v4/user/42/hosts/https:www.example.com:443/user-added-sitemaps",
    )
    assert asked.headers["authorization"] == f"OAuth {YANDEX_TOKEN}"
    assert asked.body == b'{"url":"https://www.example.com/sitemap.xml"}'


def test_yandex_tells_who_the_user_is(site, engine):
    engine.answer = lambda a: Reply(200, b'{"user_id": 1}') if a.method == "GET" else Reply(201)
    assert yandex(site, engine, yandex_user=None).ok
    assert [(a.method, a.path.rsplit("/", 2)[0]) for a in engine.asked] == [
        ("GET", ""), ("POST", "/v4/user/1/hosts"),
    ]  # fmt: skip
    assert engine.asked[0].path == "/v4/user"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"user_id":"../7"}', b'{"user_id":[1]}'])
def test_yandex_says_something_else(site, engine, body):
    engine.says(Reply(200, body))
    report = yandex(site, engine, yandex_user=None)
    assert report.outcomes[0].code == "yandex.answer" and len(engine.asked) == 1


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(401), "yandex.key_refused"),
        (Reply(403, b'{"error_code":"INVALID_OAUTH_TOKEN"}'), "yandex.key_refused"),
        (Reply(403, b'{"error_code":"INVALID_USER_ID"}'), "yandex.property"),
        (Reply(404, b'{"error_code":"HOST_NOT_FOUND"}'), "yandex.property"),
        (Reply(409, b'{"error_code":"OTHER"}'), "yandex.refused"),
        (Reply(400), "yandex.refused"),
        (Reply(422), "yandex.refused"),
        (Reply(500), "yandex.unanswered"),
        (Reply(301), "yandex.redirect"),
        (Reply(429, headers={"Retry-After": "99999"}), "yandex.throttled"),
    ],
)
def test_yandex_refuses(site, engine, reply, code):
    reply.body += b" " + YANDEX_TOKEN.encode()
    engine.says(reply)
    report = yandex(site, engine)
    assert report.outcomes[0].code == code and report.exit_status == 1
    assert_no_key(str(report.to_dict()))


def test_yandex_with_a_port(tmp_path, engine):
    engine.says(Reply(201))
    site = make_site(tmp_path / "o", site="http://www.example.com:8080")
    assert yandex(site, engine).ok
    assert engine.asked[0].path.startswith("/v4/user/42/hosts/http:www.example.com:8080/")


@pytest.mark.parametrize(
    "options",
    [
        {"yandex_user": "../1"},
        {"property": "https:a/../b:443"},
        {"property": "x"},
    ],
)
def test_yandex_options(site, engine, options):
    with pytest.raises(urlset.ConfigError):
        yandex(site, engine, **options)
    assert engine.asked == []


@pytest.mark.parametrize(
    ("engine_name", "variable"),
    [
        ("bing", "URLSET_BING_KEY"),
        ("yandex", "URLSET_YANDEX_TOKEN"),
    ],
)
@pytest.mark.parametrize("value", ["", "short", "with space in it", "a\nb\nc\nd\ne\nf", "ä" * 20])
def test_wrong_keys(site, engine, monkeypatch, engine_name, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(site, to=engine_name, endpoint=engine.url)
    assert caught.value.code in (f"{engine_name}.bad_key", f"{engine_name}.no_key")
    assert not value or value == "short" or value not in str(caught.value)
    assert engine.asked == []


def test_keys_do_not_meet(site, engine, tmp_path):
    """Each engine receives its own key, and no other."""

    def answer(asked):
        if "Quota" in asked.path:
            return Reply(200, b'{"d":{"DailyQuota":9,"MonthlyQuota":9}}')
        return OK if "api.svc" in asked.path else Reply(201 if "v4" in asked.path else 200)

    engine.answer = answer
    report = urlset.announce(
        site,
        to=["bing", "yandex", "indexnow"],
        yandex_user="42",
        endpoint=engine.url,
        urls=write_list(tmp_path / "u.txt", [page(1)]),
    )
    assert report.ok and len(engine.asked) == 5
    for asked in engine.asked:
        text = asked.path + str(asked.headers) + asked.body.decode()
        assert sum(key in text for key in ALL_KEYS) == 1

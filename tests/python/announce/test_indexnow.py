"""IndexNow against a server on loopback that follows the protocol."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import urlset

from .conftest import (
    INDEXNOW_KEY,
    Reply,
    assert_no_key,
    changes_file,
    make_site,
    page,
    sent,
    write_list,
)
from .conftest import (
    tell_indexnow as tell,
)

pytestmark = pytest.mark.usefixtures("keyed", "quick")


def test_the_request_is_the_protocols_to_the_letter(site, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", ["https://www.example.com/a?x=1&y=%C3%BC"])
    report = tell(site, engine, urls)
    assert report.ok and report.exit_status == 0
    (asked,) = engine.asked
    assert (asked.method, asked.path) == ("POST", "/indexnow")
    assert asked.headers["content-type"] == "application/json; charset=utf-8"
    assert asked.body == (
        b'{"host":"www.example.com","key":"5ec2e7aa0b1c4d5e8f90123456789abc",'
        b'"keyLocation":"https://www.example.com/5ec2e7aa0b1c4d5e8f90123456789abc.txt",'
        b'"urlList":["https://www.example.com/a?x=1&y=%C3%BC"]}'
    )


def test_an_endpoint_with_a_path_is_taken_whole(site, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", [page(1)])
    urlset.announce(site, to="indexnow", urls=urls, endpoint=engine.url + "/other/place")
    assert engine.asked[0].path == "/other/place"


@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (1, [1]),
        (9_999, [9_999]),
        (10_000, [10_000]),
        (10_001, [10_000, 1]),
        (20_000, [10_000] * 2),
    ],
)
def test_batches_of_at_most_10_000(site, engine, tmp_path, count, sizes):
    urls = write_list(tmp_path / "u.txt", [page(i) for i in range(count)])
    report = tell(site, engine, urls)
    assert report.ok
    assert sorted(len(a.json()["urlList"]) for a in engine.asked) == sorted(sizes)
    assert sorted(sent(engine)) == [page(i) for i in range(count)]
    assert report.outcomes[0].accepted == report.outcomes[0].total == count


@pytest.mark.parametrize("status", [200, 202])
def test_success(site, engine, tmp_path, status):
    engine.says(Reply(status))
    assert tell(site, engine, write_list(tmp_path / "u.txt", [page(1)])).ok


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, "indexnow.bad_request", "malformed"),
        (403, "indexnow.key_refused", "key was refused"),
        (404, "indexnow.refused", "refused"),
        (410, "indexnow.refused", "refused"),
        (418, "indexnow.refused", "refused"),
        (422, "indexnow.not_of_host", "another host"),
    ],
)
def test_refusals_are_explained_and_not_repeated(site, engine, tmp_path, status, code, words):
    engine.says(Reply(status, b"because of \x1b[31m " + INDEXNOW_KEY.encode()))
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(i) for i in range(10_001)]))
    (outcome,) = report.outcomes
    assert (outcome.result, outcome.code) == ("refused", code)
    assert report.exit_status == 1
    assert words in outcome.detail and "\x1b" not in outcome.detail
    assert (outcome.accepted, outcome.total) == (0, 10_001)
    # both batches may have been open at the same time, none is sent twice
    assert len(engine.asked) <= 2
    assert_no_key(str(report.to_dict()))


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_passing_trouble_is_retried(site, engine, tmp_path, status):
    engine.says(Reply(status), Reply(status), Reply(200))
    assert tell(site, engine, write_list(tmp_path / "u.txt", [page(1)])).ok
    assert len(engine.asked) == 3


def test_lasting_trouble_ends(site, engine, tmp_path):
    engine.says(Reply(503, b"down"))
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]))
    (outcome,) = report.outcomes
    assert (outcome.result, outcome.code) == ("failed", "indexnow.unanswered")
    assert "HTTP 503: down (tried 3 times)" in outcome.detail
    assert len(engine.asked) == 3


def test_429_and_retry_after_in_seconds(site, engine, tmp_path):
    engine.says(Reply(429, headers={"Retry-After": "1"}), Reply(200))
    assert tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), retries=0).ok
    assert engine.asked[1].at - engine.asked[0].at >= 0.99


@pytest.mark.parametrize("skew_days", [-3650, 0, 3650])
def test_429_and_retry_after_as_a_date_of_a_clock_far_off(site, engine, tmp_path, skew_days):
    now = datetime.now(UTC) + timedelta(days=skew_days)
    then = now + timedelta(seconds=1)
    headers = {
        "Date": format_datetime(now, usegmt=True),
        "Retry-After": format_datetime(then, usegmt=True),
    }
    engine.says(Reply(429, headers=headers), Reply(200))
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), max_wait=5)
    assert report.ok
    assert 0.9 <= engine.asked[1].at - engine.asked[0].at < 4


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Retry-After": "3600"},
        {"Retry-After": "-1"},
        {"Retry-After": "soon"},
        {"Retry-After": "9" * 400},
        {"Retry-After": "Fri, 99 Foo 2026 99:99:99 GMT"},
    ],
)
def test_429_beyond_our_patience(site, engine, tmp_path, headers):
    """Without a legal Retry-After the wait is ten minutes (section 4)."""
    engine.says(Reply(429, headers=headers))
    started = time.monotonic()
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), max_wait=500)
    assert time.monotonic() - started < 40
    (outcome,) = report.outcomes
    assert outcome.code == "indexnow.throttled" and outcome.result == "failed"
    assert "--max-wait" in outcome.detail and len(engine.asked) == 1


def test_429_holds_all_workers(site, engine, tmp_path):
    """After a 429 nothing else is sent before the time is over."""
    engine.says(Reply(429, headers={"Retry-After": "1"}, delay=0.2), Reply(200, delay=0.3))
    urls = write_list(tmp_path / "u.txt", [page(i) for i in range(80_000)])
    assert tell(site, engine, urls).ok
    first = engine.asked[0].at
    early = [a for a in engine.asked if a.at - first < 1.1]
    assert len(early) <= 4 + 4  # open requests, and those that the workers began meanwhile
    assert len(sent(engine)) == 90_000


def test_403_of_a_fresh_key_is_retried(site, engine, tmp_path, monkeypatch):
    from urlset.announce import indexnow

    monkeypatch.setattr(indexnow, "NEW_KEY_WAIT", 0.1)
    fresh = Reply(403, b'{"errorCode":"SiteVerificationNotCompleted","message":"wait"}')
    engine.says(fresh, fresh, fresh, fresh, Reply(200))
    assert tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), retries=0).ok
    assert len(engine.asked) == 5


def test_403_of_a_fresh_key_ends_with_patience(site, engine, tmp_path):
    engine.says(Reply(403, b"SiteVerificationNotCompleted"))
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), max_wait=4)
    assert report.outcomes[0].code == "indexnow.unanswered"
    assert "still being checked" in report.outcomes[0].detail


@pytest.mark.parametrize("cut", ["before", "header", "body"])
def test_a_cut_connection_is_retried(site, engine, tmp_path, cut):
    engine.says(Reply(cut=cut), Reply(200))
    assert tell(site, engine, write_list(tmp_path / "u.txt", [page(1)])).ok
    assert len(engine.asked) == 2


def test_a_slow_answer_is_waited_for(site, engine, tmp_path):
    engine.says(Reply(delay=1.0))
    assert tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), timeout=10).ok
    assert len(engine.asked) == 1


def test_a_server_that_never_answers(site, engine, tmp_path):
    engine.says(Reply(delay=60))
    started = time.monotonic()
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), timeout=0.5, retries=1)
    assert time.monotonic() - started < 40
    (outcome,) = report.outcomes
    assert outcome.result == "failed" and outcome.code == "indexnow.unanswered"
    assert "no complete answer within 0.5 s" in outcome.detail


def test_a_server_that_drips_is_left(site, engine, tmp_path):
    """Each byte arrives in time, but the response never ends."""
    engine.says(Reply(body=b"x" * 1000, drip=0.2))
    started = time.monotonic()
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), timeout=1, retries=0)
    assert time.monotonic() - started < 60
    assert report.outcomes[0].code in (None, "indexnow.unanswered")


def test_a_huge_answer_is_not_read(site, engine, tmp_path):
    engine.says(Reply(400, huge=1 << 30))
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), timeout=20)
    assert report.outcomes[0].code == "indexnow.bad_request"
    assert len(report.outcomes[0].detail) < 400
    assert engine.sent < 1 << 26


def test_nobody_listens(site, engine, tmp_path):
    engine.close()
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), retries=1)
    assert report.outcomes[0].code == "indexnow.unanswered"
    assert "cannot connect" in report.outcomes[0].detail


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(site, engine, other, tmp_path, status):
    engine.says(Reply(status, headers={"Location": f"{other.url}/?key={INDEXNOW_KEY}"}))
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]))
    (outcome,) = report.outcomes
    assert outcome.code == "indexnow.redirect" and f"127.0.0.1:{other.port}" in outcome.detail
    assert other.asked == [] and len(engine.asked) == 1
    assert_no_key(str(report.to_dict()))


@pytest.mark.parametrize("location", ["https://a/\x1b[31m", "http://[::1", "x" * 9_000, "//"])
def test_a_redirect_to_nonsense(site, engine, tmp_path, location):
    engine.says(Reply(301, headers={"Location": location}))
    report = tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]))
    (outcome,) = report.outcomes
    assert outcome.code in ("indexnow.redirect", "indexnow.unanswered")
    assert outcome.detail.isprintable() and len(outcome.detail) < 500


def test_several_hosts_are_grouped(site, engine, tmp_path):
    hosts = [f"h{i}.example.com" for i in range(60)]
    urls = [page(n, host) for n in range(50) for host in hosts]
    report = tell(site, engine, write_list(tmp_path / "u.txt", urls), hosts="any")
    assert report.ok and len(engine.asked) == 60
    for asked in engine.asked:
        value = asked.json()
        assert len(value["urlList"]) == 50
        assert all(u.startswith(f"https://{value['host']}/") for u in value["urlList"])
        assert value["keyLocation"] == f"https://{value['host']}/{INDEXNOW_KEY}.txt"
    assert len(report.outcomes) == 51 and report.outcomes[-1].what == "10 more hosts"
    assert sum(o.accepted for o in report.outcomes) == 3_000


def test_another_host_in_the_feed_does_not_learn_the_key(site, engine, tmp_path):
    """Engines fetch the key file from each announced host."""
    urls = write_list(tmp_path / "u.txt", [page(1), page(2, "evil.example"), page(3)])
    report = tell(site, engine, urls)
    assert sorted(sent(engine)) == [page(1), page(3)]
    bad = next(o for o in report.outcomes if o.code == "indexnow.other_host")
    assert f"row 2: {page(2, 'evil.example')}" in bad.detail and bad.total == 1
    assert report.exit_status == 1
    engine.asked.clear()
    assert tell(site, engine, urls, hosts="evil.example").ok
    assert sent(engine) == [page(2, "evil.example")]


def test_one_host_refused_leaves_the_others(site, engine, tmp_path):
    engine.answer = lambda a: Reply(403 if a.json()["host"] == "b.example" else 200)
    urls = [page(i, h) for h in ("a.example", "b.example", "c.example") for i in range(3)]
    report = tell(site, engine, write_list(tmp_path / "u.txt", urls), hosts="any")
    found = {o.what: (o.result, o.accepted) for o in report.outcomes}
    assert found == {
        "a.example": ("accepted", 3),
        "b.example": ("refused", 0),
        "c.example": ("accepted", 3),
    }
    # the next run sends only the refused URLs
    engine.asked.clear()
    engine.says(Reply(200))
    report = tell(site, engine, write_list(tmp_path / "u.txt", urls), hosts="any")
    assert report.ok and [a.json()["host"] for a in engine.asked] == ["b.example"]


BAD_URLS = [
    "https://www.example.com/a\tb", "https://www.example.com/a b", "https://www.example.com/ü",
    "ftp://www.example.com/", "www.example.com/a", "/a", "https:///a", "https://",
    "https://www.example.com/#top", "https://user:pw@www.example.com/", "javascript:alert(1)",
    "https://www.example.com:0/", "https://www.example.com:99999/", "https://www.example.com:x/",
    "https://www.example.com/" + "a" * 2_024, 'https://www.example.com/"', "https://[::1/",
    "https://www.example.com\\@evil.example/", "https://www.example.com/<", "https://-/a",
    "https://www.example.com/\x00", "https://www.example.com/\x1b[2J", "https://..%2f/a",
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_URLS)
def test_a_bad_url_is_named_and_the_others_are_sent(site, engine, tmp_path, bad):
    feed = tmp_path / "u.jsonl"
    feed.write_text("".join(json.dumps({"loc": u}) + "\n" for u in (page(1), bad, page(2))))
    report = tell(site, engine, feed)
    assert sorted(sent(engine)) == [page(1), page(2)]
    refused = next(o for o in report.outcomes if o.code == "indexnow.bad_url")
    assert refused.total == 1 and "row 2" in refused.detail
    assert refused.detail.isprintable()
    assert report.exit_status == 1


def test_a_url_cannot_inject_a_header(site, engine, tmp_path):
    feed = tmp_path / "u.jsonl"
    evil = "https://www.example.com/\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1"
    feed.write_text(json.dumps({"loc": evil}) + "\n" + json.dumps({"loc": page(1)}) + "\n")
    tell(site, engine, feed)
    (asked,) = engine.asked
    assert sent(engine) == [page(1)] and "x-evil" not in asked.headers
    for target in (evil, "https://www.example.com/a\nb"):
        with pytest.raises(urlset.ConfigError) as caught:
            urlset.announce(target, to="yandex")
        assert caught.value.code == "announce.bad_url"


def test_the_longest_url(site, engine, tmp_path):
    longest = "https://www.example.com/" + "a" * 2_023
    assert len(longest) == 2_047
    assert tell(site, engine, write_list(tmp_path / "u.txt", [longest])).ok
    assert sent(engine) == [longest]


def test_duplicates_are_sent_once(site, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", [page(1), page(2), page(1), page(1)])
    report = tell(site, engine, urls)
    assert sorted(sent(engine)) == [page(1), page(2)]
    assert report.outcomes[0].total == 2


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_the_change_feed(site, engine, tmp_path, suffix):
    rows = [("added", page(1)), ("changed", page(2) + "?a=1,2&b=%22"), ("removed", page(3))]
    feed = changes_file(tmp_path / f"c{suffix}", rows)
    report = urlset.announce(site, to="indexnow", changes=feed, endpoint=engine.url)
    assert report.ok and sorted(sent(engine)) == sorted(url for _, url in rows)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".txt"])
def test_a_list(site, engine, tmp_path, suffix):
    path = tmp_path / f"u{suffix}"
    if suffix == ".csv":
        path.write_bytes(b'\xef\xbb\xbfid,url\r\n1,"' + page(1).encode() + b'"\r\n')
    elif suffix == ".txt":
        path.write_bytes(b"\xef\xbb\xbf" + page(1).encode() + b"\r\n\r\n")
    else:
        changes_file(path, [("added", page(1))])
    assert tell(site, engine, path).ok and sent(engine) == [page(1)]


@pytest.mark.parametrize(
    ("name", "content", "error", "code"),
    [
        ("c.csv", b"change,loc\nnew,https://a/\n", urlset.InputError, "feed.change"),
        ("c.csv", b"kind,loc\nadded,https://a/\n", urlset.ConfigError, "feed.column"),
        ("c.csv", b"change,page\nadded,https://a/\n", urlset.ConfigError, "feed.column"),
        ("c.csv", b"", urlset.ConfigError, "feed.column"),
        ("c.csv", b"change,loc\nadded\n", urlset.InputError, "feed.damaged"),
        ("c.csv", b'change,loc\nadded,"https://a/\n', urlset.InputError, "feed.damaged"),
        ("c.csv", b"change,loc\nadded,\xff\xfe\n", urlset.InputError, "feed.damaged"),
        ("c.csv", b"change,loc\nadded," + b"a" * 1_100_000, urlset.InputError, "feed.damaged"),
        ("c.csv", b"change,loc\nadded," + b"a" * 200_000, urlset.InputError, "feed.damaged"),
        ("c.jsonl", b"{", urlset.InputError, "feed.damaged"),
        ("c.jsonl", b"[" * 900_000, urlset.InputError, "feed.damaged"),
        ("c.jsonl", b'["added"]', urlset.InputError, "feed.damaged"),
        ("c.jsonl", b'{"change":"added","loc":7}', urlset.InputError, "feed.damaged"),
        ("c.jsonl", b'{"change":{"a":1},"loc":"https://a/"}', urlset.InputError, "feed.change"),
        ("c.parquet", b"PAR1 no", urlset.InputError, "feed.damaged"),
        ("c.txt", b"https://a/\n", urlset.ConfigError, "feed.format"),
    ],
)
def test_a_damaged_feed_sends_nothing(site, engine, tmp_path, name, content, error, code):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        urlset.announce(site, to="indexnow", changes=path, endpoint=engine.url)
    assert caught.value.code == code and engine.asked == []
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["no.csv", "no.parquet", "no.txt"])
def test_a_missing_feed(site, engine, tmp_path, name):
    with pytest.raises(urlset.InputError) as caught:
        tell(site, engine, tmp_path / name)
    assert caught.value.code == "feed.unreadable" and engine.asked == []


# the guard against a full set


@pytest.mark.parametrize(
    ("live", "count", "refused"),
    [
        (100, 50, False),
        (100, 51, True),
        (3, 1, False),
        (3, 2, True),
        (0, 1, True),
        (1, 1, True),
    ],
)
def test_more_than_half_is_refused_unless_all(tmp_path, engine, live, count, refused):
    site = make_site(tmp_path / "o", urls=live)
    feed = changes_file(tmp_path / "c.csv", [("added", page(i)) for i in range(count)])
    report = urlset.announce(site, to="indexnow", changes=feed, endpoint=engine.url)
    assert report.ok != refused and bool(engine.asked) != refused
    if refused:
        assert report.outcomes[0].code == "indexnow.full_set"
        assert urlset.announce(site, to="indexnow", changes=feed, endpoint=engine.url, all=True).ok
    assert len(sent(engine)) == count


def test_removed_urls_are_not_live(tmp_path, engine):
    site = make_site(tmp_path / "o", urls=10)
    rows = [("removed", page(i)) for i in range(90)] + [("added", page(100))]
    feed = changes_file(tmp_path / "c.csv", rows)
    assert urlset.announce(site, to="indexnow", changes=feed, endpoint=engine.url).ok
    assert len(sent(engine)) == 91


@pytest.mark.parametrize(("count", "refused"), [(10_000, False), (10_001, True)])
def test_where_the_live_urls_are_not_counted(engine, tmp_path, count, refused):
    urls = write_list(tmp_path / "u.txt", [page(i) for i in range(count)])
    report = tell("https://www.example.com/sitemap.xml", engine, urls)
    assert report.ok != refused and bool(engine.asked) != refused
    assert bool(report.warnings) != refused


# keys


def test_init_key(site, engine, tmp_path, monkeypatch):
    monkeypatch.delenv("URLSET_INDEXNOW_KEY")
    report = urlset.announce(site, init_key=True)
    assert report.ok
    (proof,) = site.glob("*.txt")
    key = proof.stem
    assert len(key) == 32 and set(key) <= set("0123456789abcdef")
    assert proof.read_bytes() == key.encode()
    secret = site / ".urlset" / "announce" / "indexnow.key"
    assert secret.read_text().strip() == key and secret.stat().st_mode & 0o777 == 0o600
    umask = os.umask(0)
    os.umask(umask)
    assert proof.stat().st_mode & 0o777 == 0o666 & ~umask
    assert key not in str(report.to_dict())
    # again: the key stays, a lost proof is restored
    proof.unlink()
    assert urlset.announce(site, to="indexnow", init_key=True).ok
    assert proof.read_bytes() == key.encode()
    # and it is found without an option
    assert tell(site, engine, write_list(tmp_path / "u.txt", [page(1)])).ok
    assert engine.asked[0].json()["key"] == key


def test_two_keys_are_not_the_same(tmp_path):
    a, b = make_site(tmp_path / "a"), make_site(tmp_path / "b")
    urlset.announce(a, init_key=True)
    urlset.announce(b, init_key=True)
    assert next(a.glob("*.txt")).name != next(b.glob("*.txt")).name


@pytest.mark.parametrize(
    "content",
    [
        b"short",
        b"a" * 129,
        b"has space in it",
        b"under_score",
        b"line\nline-line",
        b"",
        b" \n",
        b"\xff\xfe\x00bad-key",
        b"k" * 70_000,
        "ключключключ".encode(),
    ],
)
def test_a_bad_key_file(site, engine, tmp_path, content):
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(urlset.ConfigError) as caught:
        tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), key_file=path)
    assert caught.value.code in ("indexnow.bad_key", "indexnow.key_file") and not engine.asked
    words = content.decode("utf-8", "replace").strip()
    if words and words != "short":
        assert words not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_key_file_wins_over_the_environment(site, engine, tmp_path):
    path = tmp_path / "key"
    path.write_text("another-key-of-mine\n")
    tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]), key_file={"indexnow": path})
    assert engine.asked[0].json()["key"] == "another-key-of-mine"


def test_no_key(site, engine, tmp_path, monkeypatch):
    monkeypatch.delenv("URLSET_INDEXNOW_KEY")
    with pytest.raises(urlset.ConfigError) as caught:
        tell(site, engine, write_list(tmp_path / "u.txt", [page(1)]))
    assert caught.value.code == "indexnow.no_key" and "URLSET_INDEXNOW_KEY" in str(caught.value)


def test_a_key_location_binds_the_host(site, engine, tmp_path):
    location = f"https://www.example.com/keys/{INDEXNOW_KEY}.txt"
    urls = [page(1), "https://www.example.com/keys/a", page(2, "b.example")]
    report = tell(
        site, engine, write_list(tmp_path / "u.txt", urls), key_location=location, hosts="any"
    )
    assert engine.asked[0].json()["keyLocation"] == location
    assert sent(engine) == ["https://www.example.com/keys/a"]
    assert {o.code for o in report.outcomes if o.code} == {"indexnow.other_host"}

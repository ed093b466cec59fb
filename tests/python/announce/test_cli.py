"""The command as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from .conftest import (
    BING_KEY,
    INDEXNOW_KEY,
    YANDEX_TOKEN,
    Reply,
    assert_no_key,
    make_site,
    page,
    run_cli,
    write_list,
)

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("keyed")]


def everything(engine):
    """All engines at one address, which accepts everything."""

    def answer(asked):
        if "Quota" in asked.path:
            return Reply(200, b'{"d":{"DailyQuota":100,"MonthlyQuota":100}}')
        if "api.svc" in asked.path:
            return Reply(200, b'{"d":null}')
        return Reply(201 if "/v4/" in asked.path else 200)

    engine.answer = answer
    return ["--to", "indexnow", "--to", "bing", "--to", "yandex", "--yandex-user", "42",
            "--endpoint", engine.url]  # fmt: skip


def test_all_at_once(site, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", [page(i) for i in range(3)])
    robots = tmp_path / "robots.txt"
    arguments = [*everything(engine), "--to", "robots", "--robots", robots, "--urls", urls]
    result = run_cli(site, *arguments)
    assert result.returncode == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["ENGINE", "ACCEPTED", "RESULT", "WHAT", "NOTE"]
    assert [line.split()[0] for line in lines[1:]] == [
        "indexnow", "bing", "bing", "yandex", "robots",
    ]  # fmt: skip
    assert "3 of 3" in lines[1] and "1 of 1" in lines[2]
    assert_no_key(result.stdout)
    again = run_cli(site, *arguments)
    assert again.returncode == 0 and "not sent again" in again.stdout


def test_json_to_stdout_is_alone_there(site, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", [page(1)])
    result = run_cli(site, *everything(engine), "--urls", urls, "--json", "-")
    value = json.loads(result.stdout)
    assert value["ok"] and value["error"] is None and len(value["outcomes"]) == 4
    assert set(value["outcomes"][0]) == {
        "engine",
        "what",
        "result",
        "total",
        "accepted",
        "skipped",
        "requests",
        "detail",
        "code",
    }
    assert_no_key(result.stdout + result.stderr)


def test_json_is_written_when_it_fails(site, engine, tmp_path):
    path = tmp_path / "r.json"
    result = run_cli(site, "--to", "indexnow", "--json", path)
    assert result.returncode == 2
    value = json.loads(path.read_text())
    assert not value["ok"] and value["error"]["code"] == "announce.options"
    engine.says(Reply(403))
    urls = write_list(tmp_path / "u.txt", [page(1)])
    result = run_cli(
        site, "--to", "indexnow", "--urls", urls, "--endpoint", engine.url, "--json", path
    )
    assert result.returncode == 1 and "indexnow.key_refused" in path.read_text()


def test_one_refusal_is_exit_1(site, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", [page(1)])
    arguments = everything(engine)
    good = engine.answer
    engine.answer = lambda a: Reply(403) if "/v4/" in a.path else good(a)
    result = run_cli(site, *arguments, "--urls", urls)
    assert result.returncode == 1
    assert [line.split()[1] for line in result.stdout.splitlines()[1:]] == ["1", "1", "1", "0"]
    (line,) = result.stderr.splitlines()
    assert line.startswith("urlset: error: yandex: ") and line.endswith("[yandex.property]")
    quiet = run_cli(site, *arguments, "--urls", urls, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, "", result.stderr)


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["--to", "yahoo"], 2, "announce.engine"),
        (["--to", "indexnow"], 2, "announce.options"),
        (["--to", "bing", "--endpoint", "http://a.example/"], 2, "announce.endpoint"),
        (["--to", "indexnow", "--changes", "no.csv"], 3, "feed.unreadable"),
        (["--to", "google"], 2, "google.no_key"),
        (["--to", "bing", "--key-file", "bing=/no/such"], 2, "bing.key_file"),
    ],
)
def test_errors_are_one_line(site, arguments, status, code):
    result = run_cli(site, *arguments)
    assert result.returncode == status
    assert result.stdout == "" and result.stderr.count("\n") == 1
    assert result.stderr.startswith("urlset: error: ") and f"[{code}]" in result.stderr


def test_an_unknown_option(site):
    result = run_cli(site, "--key", INDEXNOW_KEY)
    assert result.returncode == 2 and "No such option" in result.stderr
    assert_no_key(result.stdout + result.stderr)


def test_the_dry_run_shows_the_exact_requests_and_sends_none(site, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", [page(1), page(2)])
    robots = tmp_path / "robots.txt"
    result = run_cli(
        site,
        *everything(engine),
        "--to",
        "robots",
        "--robots",
        robots,
        "--urls",
        urls,
        "--dry-run",
    )
    assert result.returncode == 0, result.stderr
    assert engine.asked == [] and not robots.exists()
    assert not (site / ".urlset" / "announce").exists()
    assert_no_key(result.stdout + result.stderr)
    shown = result.stdout
    assert (
        f"POST {engine.url}/indexnow\nContent-Type: application/json; charset=utf-8\n\n"
        '{"host":"www.example.com","key":"***","keyLocation":"https://www.example.com/***.txt",'
        f'"urlList":["{page(1)}","{page(2)}"]}}\n'
    ) in shown
    assert f"POST {engine.url}/webmaster/api.svc/json/SubmitFeed?apikey=***\n" in shown
    assert f"GET {engine.url}/webmaster/api.svc/json/GetUrlSubmissionQuota?siteUrl=" in shown
    assert "Authorization: OAuth ***\n" in shown
    assert "Sitemap: https://www.example.com/sitemap.xml" in shown
    # the requests that are shown are those that are sent
    run_cli(site, *everything(engine), "--urls", urls)
    for asked in engine.asked:
        text = f"{asked.method} {engine.url}{asked.path}"
        body = asked.body.decode()
        for key in (INDEXNOW_KEY, BING_KEY, YANDEX_TOKEN):
            text, body = text.replace(key, "***"), body.replace(key, "***")
        assert text in shown and body in shown


def test_a_hostile_server_does_not_reach_the_terminal(site, engine):
    engine.says(Reply(400, b"\x1b]0;owned\x07\x1b[31m\r\nurlset: all is well\x00\xff\xe2\x80\xae"))
    result = run_cli(site, "--to", "bing", "--endpoint", engine.url)
    assert result.returncode == 1
    assert all(line.isprintable() for line in (result.stdout + result.stderr).splitlines())
    assert len(result.stdout.splitlines()) == 2 and len(result.stderr.splitlines()) == 1


def test_no_key_in_ps(site, engine, tmp_path):
    """Neither the arguments nor the title of the process ever contain a key."""
    engine.says(Reply(delay=5))
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from urlset.cli import main; main()",
            "announce",
            str(site),
            "--to",
            "bing",
            "--endpoint",
            engine.url,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not engine.asked:
        time.sleep(0.01)
    listing = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-p", str(process.pid)],
        capture_output=True,
        text=True,
        check=True,
    )
    out, err = process.communicate(timeout=30)
    assert "announce" in listing.stdout
    assert_no_key(listing.stdout + out.decode() + err.decode())


def test_no_key_in_a_traceback_or_a_log(site, engine):
    """Even if everything is logged, and a defect is shown with its traceback."""
    code = (
        "import logging, traceback, urlset, sys\n"
        "logging.basicConfig(level=1)\n"
        f"for port in ({engine.port}, 1):\n"
        "    try:\n"
        f"        r = urlset.announce({str(site)!r}, to=['bing','yandex'], yandex_user='42',"
        " endpoint=f'http://127.0.0.1:{port}', retries=0, timeout=2)\n"
        "        print(r, r.to_dict())\n"
        "    except Exception:\n"
        "        traceback.print_exc()\n"
    )
    for reply in (Reply(), Reply(cut="header"), Reply(delay=9), Reply(302), Reply(401)):
        reply.body = (BING_KEY + YANDEX_TOKEN).encode()
        engine.says(reply)
        result = subprocess.run(
            [sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=60
        )
        assert result.returncode == 0, result.stderr
        assert "Traceback" not in result.stderr
        assert_no_key(result.stdout + result.stderr)


def test_errors_have_no_chain(site, engine):
    """No exception of httpx is in the chain of the raised exception."""
    import threading

    from urlset import AnnounceError
    from urlset.announce.client import EngineClient, Request
    from urlset.transport.keyring import Keyring

    ring = Keyring()
    ring.add(BING_KEY)
    engine.close()
    with EngineClient("bing", engine.url, ring, threading.Event(), timeout=2, retries=0) as client:
        with pytest.raises(AnnounceError) as caught:
            client.call(Request("GET", f"{engine.url}/?apikey={BING_KEY}"), lambda _a: None)
        request = Request("GET", f"http://evil.example/?apikey={BING_KEY}")
        with pytest.raises(AssertionError) as other:
            client.call(request, lambda _a: None)
    for error in (caught.value, other.value):
        assert error.__cause__ is None and error.__context__ is None
        assert_no_key(repr(error) + repr(request) + repr(ring))


def test_init_key_says_what_to_do(tmp_path):
    site = make_site(tmp_path / "o")
    result = run_cli(site, "--init-key", URLSET_INDEXNOW_KEY="")
    assert result.returncode == 0
    key = next(site.glob("*.txt")).stem
    assert key not in result.stdout + result.stderr and "upload" in result.stdout


def test_help_teaches_by_example():
    result = run_cli("--help")
    assert result.returncode == 0
    for word in ("--init-key", "URLSET_INDEXNOW_KEY", "--dry-run", "Exit status"):
        assert word in result.stdout
    assert "  urlset announce sitemaps --to indexnow --changes changes.csv\n" in result.stdout


def test_the_import_is_cheap():
    """Neither httpx nor pyarrow nor sqlite is imported before it is needed."""
    code = (
        "import sys, urlset, urlset.cli.announce\n"
        "print([m for m in ('httpx', 'pyarrow', 'sqlite3', 'google.auth', 'rich') if m in"
        " sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


def test_a_reader_that_leaves(site, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", [page(i) for i in range(10_000)])
    command = (
        f"{sys.executable} -c 'from urlset.cli import main; main()' announce {site} --to indexnow"
        f" --urls {urls} --dry-run --endpoint {engine.url} | head -c 10"
    )
    result = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=os.environ, timeout=60
    )
    assert "Traceback" not in result.stderr and "Exception ignored" not in result.stderr

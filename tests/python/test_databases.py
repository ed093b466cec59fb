"""Databases as inputs: a real PostgreSQL on loopback, and SQLite."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import adbc_driver_postgresql.dbapi as postgresql_driver
import adbc_driver_sqlite.dbapi as sqlite_driver
import pytest
import urlset as package
from conftest import SITE, Ended, files, read_set, urlset

pytestmark = pytest.mark.long

PASSWORD = "correct-horse-7"
WRONG = "wrong-battery-9"


def build(tmp_path: Path, source: object, query: str | None, *more: object) -> Ended:
    chosen = () if query is None else ("--query", query)
    return urlset("build", source, *chosen, "--site", SITE, "--out", tmp_path / "out", *more)


def refused(ended: Ended, status: int, code: str) -> str:
    """One line on standard error, with the code and without secrets."""
    assert (ended.status, ended.out) == (status, ""), ended
    assert ended.err.count("\n") == 1 and f"[{code}]" in ended.err, ended.err
    assert PASSWORD not in ended.err and WRONG not in ended.err
    return ended.err


# SQLite


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A table of 40,000 products, whose column ``mixed`` contains integers, then text."""
    path = tmp_path / "a shop.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE product (id INTEGER, changed TEXT, price REAL, mixed)")
        db.executemany(
            "INSERT INTO product VALUES (?, ?, ?, ?)",
            (
                (n, f"2026-01-{n % 28 + 1:02}", n / 7, n if n < 39_000 else "text")
                for n in range(40_000)
            ),
        )
    db.close()
    return path


QUERY = "SELECT '/p/' || id AS url, changed AS lastmod FROM product ORDER BY id"


def expected(rows: int) -> list[dict[str, str]]:
    return [{"loc": f"{SITE}/p/{n}", "lastmod": f"2026-01-{n % 28 + 1:02}"} for n in range(rows)]


def test_a_query_of_sqlite(tmp_path: Path, shop: Path) -> None:
    before = shop.read_bytes()
    ended = build(tmp_path, f"sqlite:///{shop}", QUERY)
    assert ended.status == 0, ended.err
    assert read_set(tmp_path / "out") == expected(40_000)
    assert shop.read_bytes() == before
    # relative to the working folder, by the same rules as every path
    again = urlset(
        "build", "sqlite:///a%20shop.db", "--query", QUERY, "--site", SITE, "--out", "again",
        cwd=tmp_path,
    )  # fmt: skip
    assert again.status == 0, again.err
    assert files(tmp_path / "again").items() >= {
        (name, data) for name, data in files(tmp_path / "out").items() if name != "sitemap.xml"
    }


def test_a_query_in_a_configuration_file(tmp_path: Path, shop: Path) -> None:
    text = f'site = "{SITE}"\nout = "out"\ninput = "sqlite:///{shop}"\nquery = "{QUERY}"\n'
    (tmp_path / "urlset.toml").write_text(text, encoding="utf-8")
    assert urlset("build", cwd=tmp_path).status == 0
    assert len(read_set(tmp_path / "out")) == 40_000


def test_a_cursor(tmp_path: Path, shop: Path) -> None:
    with sqlite_driver.connect(str(shop)) as connection, connection.cursor() as cursor:
        with pytest.raises(package.ConfigError, match="before execute"):
            package.build(cursor, site=SITE, out=tmp_path / "out")
        cursor.execute(QUERY)
        report = package.build(cursor, site=SITE, out=tmp_path / "out")
        assert report.urls == 40_000
        assert read_set(tmp_path / "out") == expected(40_000)
        cursor.execute("SELECT 1")  # it is still open
        assert cursor.fetchone() == (1,)


@pytest.mark.parametrize(
    ("query", "status", "code", "words"),
    [
        ("SELEC 1", 2, "config.query", 'near "SELEC"'),
        ("SELECT url FROM nowhere", 2, "config.query", "no such table: nowhere"),
        ("SELECT price FROM product", 2, "column.missing", "price"),
        ("SELECT '/p/' || id AS url, mixed AS priority FROM product", 3, "input.damaged", "cast"),
        ("DELETE FROM product", 2, "config.query", "readonly"),
        # columns have names, not the numbers from 0 of the driver
        ("SELECT '/p/' || id AS url, mixed AS priority FROM product", 3, "input.damaged",
         'column "priority"'),
        ("SELECT cast(x'2fff' AS text) AS url", 3, "input.damaged", 'column "url"'),
        ("SELECT '/a' AS url; SELECT '/b' AS url", 2, "config.query", "more than one"),
        ("SELECT '/a' AS url; DROP TABLE product", 2, "config.query", "more than one"),
        ("SELECT timeout FROM connections", 2, "config.query", "no such table: connections"),
        (None, 2, "config.query", "--query"),
        (" ", 2, "config.query", "--query"),
    ],
)  # fmt: skip
def test_a_query_that_fails_publishes_nothing(
    tmp_path: Path, shop: Path, query: str | None, status: int, code: str, words: str
) -> None:
    assert build(tmp_path, f"sqlite:///{shop}", QUERY).status == 0
    live = files(tmp_path / "out")
    ended = build(tmp_path, f"sqlite:///{shop}", query)
    assert words in refused(ended, status, code)
    assert files(tmp_path / "out") == live


def test_one_statement_with_a_semicolon_and_a_comment(tmp_path: Path, shop: Path) -> None:
    ended = build(tmp_path, f"sqlite:///{shop}", "SELECT '/a' AS url; -- '; SELECT 1'\n")
    assert ended.status == 0, ended.err


def test_a_cursor_whose_rows_were_fetched_in_part(tmp_path: Path, shop: Path) -> None:
    with sqlite_driver.connect(str(shop)) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        cursor.fetchone()
        with pytest.raises(package.ConfigError, match="already fetched"):
            package.build(cursor, site=SITE, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_addresses_of_sqlite(tmp_path: Path, shop: Path) -> None:
    missing = build(tmp_path, f"sqlite:///{tmp_path}/none.db", QUERY)
    refused(missing, 3, "input.missing")
    assert not (tmp_path / "none.db").exists()
    refused(build(tmp_path, "sqlite://shop.db", QUERY), 2, "config.uri")
    (tmp_path / "text.db").write_text("id,url\n" * 1000, encoding="utf-8")
    assert "not a database" in build(tmp_path, f"sqlite:///{tmp_path}/text.db", QUERY).err


def test_a_query_needs_a_database(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(f"url\n{SITE}/p/1\n", encoding="utf-8")
    refused(build(tmp_path, tmp_path / "shop.csv", QUERY), 2, "config.query")


# PostgreSQL


@dataclass(frozen=True)
class Server:
    port: int
    folder: Path

    def uri(self, password: str = f":{PASSWORD}") -> str:
        return f"postgresql://seller{password}@127.0.0.1:{self.port}/postgres"

    def run(self, *statements: str) -> list[tuple]:
        connected = postgresql_driver.connect(self.uri(), autocommit=True)
        with connected as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """A server of its own, with passwords, on a free port; not run by root, which it refuses."""
    path = os.pathsep.join([os.environ["PATH"], *glob.glob("/usr/lib/postgresql/*/bin")])
    initdb, postgres = (shutil.which(name, path=path) for name in ("initdb", "postgres"))
    if not (initdb and postgres):
        reason = "PostgreSQL is not installed (Debian: postgresql)"
        assert not os.environ.get("URLSET_REQUIRE_TOOLS"), reason
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="urlset-postgres-"))
    run = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    if run:
        shutil.chown(folder, "nobody")
        shutil.chown(folder / "password", "nobody")
    data = folder / "data"
    subprocess.run(
        [initdb, "-D", data, "-U", "seller", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C",
         f"--pwfile={folder}/password", "--no-sync"],
        check=True, capture_output=True, cwd=folder, **run,
    )  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [postgres, "-D", data, "-p", str(port), "-k", folder, "-h", "127.0.0.1", "-F"],
            stdout=log, stderr=log, cwd=folder, **run,
        )  # fmt: skip
    server = Server(port, folder)
    try:
        for _ in range(600):
            try:
                server.run("SELECT 1")
                break
            except postgresql_driver.Error:
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
        yield server
    finally:
        process.send_signal(2)  # a fast shutdown
        process.wait(60)
        shutil.rmtree(folder)


#: rows of generate_series, of several types
SERIES = (
    "SELECT '/p/' || n AS url, timestamptz '2026-01-01 00:00+00' + n * interval '1 second' AS"
    " lastmod, (n % 11)::numeric / 10 AS priority FROM generate_series(0, {}) AS n"
)


def test_a_query_of_postgresql(tmp_path: Path, postgres: Server) -> None:
    ended = build(tmp_path, postgres.uri(), SERIES.format(59_999), "--json", "-", "--quiet")
    assert ended.status == 0, ended.err
    assert PASSWORD not in ended.out + ended.err
    found = read_set(tmp_path / "out")
    assert len(found) == 60_000 == json.loads(ended.out)["rows"]
    assert found[3661] == {
        "loc": f"{SITE}/p/3661", "lastmod": "2026-01-01T01:01:01Z", "priority": "0.9",
    }  # fmt: skip
    state = (tmp_path / "out/.urlset/manifest.json").read_text(encoding="utf-8")
    assert PASSWORD not in state


def test_a_password_of_the_environment(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert build(tmp_path, postgres.uri(""), SERIES.format(9)).status == 0
    assert len(read_set(tmp_path / "out")) == 10
    monkeypatch.setenv("PGPASSWORD", WRONG)
    refused(build(tmp_path, postgres.uri(""), SERIES.format(9)), 3, "input.unreachable")


@pytest.mark.parametrize(
    ("query", "status", "code", "words"),
    [
        ("SELECT url FROM nowhere", 2, "config.query", "does not exist"),
        ("SELEC 1", 2, "config.query", "syntax error"),
        (f"SELECT '{PASSWORD}' FROM nowhere", 2, "config.query", "does not exist"),
        # an error after 50,000 rows
        ("SELECT '/p/' || n AS url, 1 / (50000 - n) AS x FROM generate_series(0, 99999) AS n",
         3, "input.damaged", "division by zero"),
        ("SELECT point(1, 2) AS url", 2, "column.type", "cast it first"),
        ("SELECT 'x' AS timeout FROM connections", 2, "config.query", "does not exist"),
        ("SELECT '/a' AS url; SELECT '/b' AS url", 2, "config.query", "multiple commands"),
        # nothing can be written
        ("CREATE TABLE kept (n int)", 2, "config.query", "read-only"),
        ("WITH x AS (INSERT INTO pg_description VALUES (1, 1, 1, 'x') RETURNING 1) SELECT '/a' AS"
         " url FROM x", 2, "config.query", "read-only"),
    ],
)  # fmt: skip
def test_a_query_that_postgresql_refuses(
    tmp_path: Path, postgres: Server, query: str, status: int, code: str, words: str
) -> None:
    assert build(tmp_path, postgres.uri(), SERIES.format(99)).status == 0
    live = files(tmp_path / "out")
    assert words in refused(build(tmp_path, postgres.uri(), query), status, code)
    assert files(tmp_path / "out") == live


def test_credentials_are_never_shown(tmp_path: Path, postgres: Server) -> None:
    wrong = refused(
        build(tmp_path, postgres.uri(f":{WRONG}"), SERIES.format(9)), 3, "input.unreachable"
    )
    assert "authentication failed" in wrong
    # as libpq and people write them: what looks like the path or the query is of the password
    for secret in ("battery/staple", "bat?tery", "bat@tery", "battery#1", "%2Fbattery%40"):
        ended = build(tmp_path, postgres.uri(f":{secret}"), SERIES.format(9))
        assert ended.status in (2, 3) and ended.err.count("\n") == 1, ended.err
        assert "***@127.0.0.1" in ended.err
        assert not re.search("bat|tery|staple|seller", ended.err), ended.err
    away = postgres.uri().replace(str(postgres.port), "1")
    assert "refused" in refused(build(tmp_path, away, "SELECT 1"), 3, "input.unreachable")


def started(folder: Path, uri: str, query: str) -> subprocess.Popen[str]:
    """A build in a process of its own."""
    command = [sys.executable, "-m", "urlset", "build", uri, "--query", query]
    return subprocess.Popen(
        [*command, "--site", SITE, "--out", folder / "out"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_connection_that_is_lost_in_the_middle(tmp_path: Path, postgres: Server) -> None:
    assert build(tmp_path, postgres.uri(), SERIES.format(99)).status == 0
    live = files(tmp_path / "out")
    # takes minutes if it is not ended
    query = SERIES.format(100_000_000).replace("SELECT ", "SELECT /* endless */ ", 1)
    process = started(tmp_path, postgres.uri(), query)
    running = (
        " FROM pg_stat_activity WHERE query LIKE '%/* endless */%' AND pid <> pg_backend_pid()"
        " AND query LIKE 'COPY%'"
    )
    staging = tmp_path / "out/.urlset/staging"
    # until the first shard is written
    while process.poll() is None and not list(staging.glob("*.gz")):
        time.sleep(0.05)
    assert postgres.run(f"SELECT pg_terminate_backend(pid){running}") == [(True,)]
    out, err = process.communicate(timeout=100)
    refused(Ended(process.returncode, out, err), 3, "input.unreachable")
    assert files(tmp_path / "out") == live


def test_a_statement_that_takes_too_long(tmp_path: Path, postgres: Server) -> None:
    limited = f"{postgres.uri()}?options=-c%20statement_timeout%3D200&sslmode=prefer"
    for query in (
        "SELECT '/a' || pg_sleep(60)::text AS url",
        "SELECT '/p/' || n AS url, CASE WHEN n > 90000 THEN pg_sleep(60)::text END AS x"
        " FROM generate_series(1, 100000) AS n",
    ):
        words = refused(build(tmp_path, limited, query), 3, "input.unreachable")
        assert "statement timeout" in words


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_query(tmp_path: Path, postgres: Server, sent: signal.Signals) -> None:
    query = f"SELECT '/a' || pg_sleep(600)::text AS url /* signal {int(sent)} */"
    process = started(tmp_path, postgres.uri(), query)
    running = (
        f"SELECT pid::text FROM pg_stat_activity WHERE query LIKE '%/* signal {int(sent)} */%'"
        " AND query NOT LIKE '%pg_stat_activity%' AND state = 'active'"
    )
    while process.poll() is None and not postgres.run(running):
        time.sleep(0.05)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + sent, err
    assert PASSWORD not in err and err.count("\n") == 1
    assert not (tmp_path / "out/sitemap.xml").exists()


@pytest.mark.slow
def test_five_million_rows_take_bounded_memory(tmp_path: Path, postgres: Server) -> None:
    peaks = []
    for rows in (500_000, 5_000_000):
        ended = build(tmp_path, postgres.uri(), SERIES.format(rows - 1), "--json", "-", "--quiet")
        assert ended.status == 0, ended.err
        report = json.loads(ended.out)
        assert (report["rows"], report["urls"]) == (rows, rows)
        peaks.append(report["peak_rss"])
    assert peaks[1] < 512 << 20
    assert peaks[1] < peaks[0] + (128 << 20)

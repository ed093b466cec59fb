"""The access to object stores: every provider, its errors, and the faults of the test proxy."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import store_servers
from store_servers import BUCKET, FAULTS, Proxy, Request, Server
from urlset import ConfigError, InputError, PublishError
from urlset.transport.store import VersionError, address_of, is_store, open_store


def test_an_object_is_written_read_listed_and_deleted(any_store: Server) -> None:
    place = open_store(f"{any_store.url}/a/prefix")
    headers = {"Content-Type": "application/xml", "Cache-Control": "max-age=60"}
    assert place.get("x.xml") is None
    assert place.head("x.xml") is None
    version = place.put("x.xml", b"<one/>", headers=headers)
    place.put("d/y z.xml.gz", b"two")
    found = place.get("x.xml")
    assert found is not None
    assert found.data == b"<one/>"
    assert found.version["e_tag"] == version["e_tag"]
    assert found.attributes["Content-Type"] == "application/xml"
    assert bytes(place.get_range("x.xml", 1, 3, version)) == b"one"
    listed = {each.key: each.size for each in place.list()}
    assert listed == {"x.xml": 6, "d/y z.xml.gz": 3}
    assert [each.key for each in place.list("d")] == ["d/y z.xml.gz"]
    assert sorted(each.key for each in open_store(any_store.url).list()) == [
        "a/prefix/d/y z.xml.gz", "a/prefix/x.xml",
    ]  # fmt: skip
    place.delete(["x.xml", "none"])
    assert [each.key for each in place.list()] == ["d/y z.xml.gz"]


# fake-gcs-server ignores the header x-goog-if-generation-match
@pytest.mark.parametrize("any_store", ["versitygw", "moto", "strict-gcs", "azurite"], indirect=True)
def test_conditional_writes(any_store: Server) -> None:
    place = open_store(any_store.url)
    first = place.put("index.xml", b"1", only="create")
    with pytest.raises(VersionError):
        place.put("index.xml", b"2", only="create")
    second = place.put("index.xml", b"2", only=first)
    with pytest.raises(VersionError):
        place.put("index.xml", b"3", only=first)
    with pytest.raises(VersionError):
        place.get_range("index.xml", 0, 1, first)
    found = place.get("index.xml")
    assert found is not None
    assert (found.data, found.version["e_tag"]) == (b"2", second["e_tag"])


def test_create_is_atomic(s3: Server) -> None:
    """Of many writers at once, exactly one creates each object, and it is the one that stays."""
    for round_ in range(20):
        start, won = threading.Barrier(8), []

        def write(number: int, round_: int = round_, start=start, won=won) -> None:
            place = open_store(s3.url)
            start.wait()
            try:
                place.put(f"{round_}", b"%d" % number, only="create")
                won.append(number)
            except VersionError:
                pass

        threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        body = s3.client.get_object(Bucket=BUCKET, Key=f"{round_}")["Body"].read()
        assert [int(body)] == won


def test_replacing_a_version_is_atomic(s3: Server) -> None:
    place = open_store(s3.url)
    version = place.put("x", b"start")
    for round_ in range(20):
        start, won = threading.Barrier(8), []

        def write(number: int, version=version, start=start, won=won, round_=round_) -> None:
            place = open_store(s3.url)
            start.wait()
            with contextlib.suppress(VersionError):
                won.append(place.put("x", b"%d-%d" % (round_, number), only=version))

        threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [version] = won


def test_the_strict_server_honours_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    with store_servers.strict_gcs() as (server, state):
        store_servers.use(server, monkeypatch)
        place = open_store(server.url)
        version = place.put("x", b"1", only="create")
        place.put("x", b"2", only=version)
        with pytest.raises(VersionError):
            place.put("x", b"3", only=version)
        assert [(c, s) for _, c, s in state.writes] == [
            ("0", 200), (version["version"], 200), (version["version"], 412),
        ]  # fmt: skip
        assert state.objects["x"][0] == b"2"


def test_missing_bucket(any_store: Server, request: pytest.FixtureRequest) -> None:
    place = open_store(f"{any_store.scheme}://nobucket/x", error=PublishError)
    calls = [lambda: place.put("x", b"")]
    if "fake-gcs" not in request.node.name:  # it has the same body for a missing object
        calls += [lambda: place.get("x"), lambda: list(place.list())]
    for call in calls:
        with pytest.raises(PublishError) as raised:
            call()
        assert raised.value.code == "store.bucket"
        assert "there is no bucket 'nobucket'" in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("env", "code", "part"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "other-secret-1"}, "store.credentials", "AWS_SECRET_ACCESS_KEY"),
        ({"AWS_ACCESS_KEY_ID": "other-id"}, "store.credentials", "AWS_ACCESS_KEY_ID"),
        ({"AWS_REGION": "eu-west-1"}, "store.region", "AWS_REGION to us-east-1"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "store.unreachable", "127.0.0.1:9"),
        ({"AWS_ENDPOINT_URL": "http://no.such.invalid"}, "store.unreachable", "no.such.invalid"),
    ],
)
def test_wrong_settings(
    s3: Server, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], code: str, part: str
) -> None:
    monkeypatch.setattr("urlset.transport.store.MAX_RETRIES", 1)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    place = open_store(f"{s3.url}/p")
    calls = [lambda: place.put("x", b""), lambda: place.get("x"), lambda: list(place.list())]
    if "AWS_ACCESS_KEY_ID" not in env:  # versitygw responds 404 to HEAD
        calls.append(lambda: place.head("x"))
    for call in calls:
        with pytest.raises(InputError) as raised:
            call()
        message = str(raised.value)
        assert raised.value.code == code, message
        assert part in message
        assert message.startswith(f"{s3.url}/p")
        assert not any(secret in message for secret in ("other-secret", store_servers.SECRET))
        assert "\n" not in message


def test_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    class Handler(store_servers._Quiet):
        def do_any(self) -> None:
            self.body()
            body = b"<Error><Code>AccessDenied</Code><Message>secret detail</Message></Error>"
            self.answer(403, body, Content_Type="application/xml")

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = do_any

    with store_servers.serving(Handler) as server:
        port = server.server_port
        store_servers.use(Server("s3", port, store_servers.s3_env(port)), monkeypatch)
        place = open_store("s3://bkt/p")
        for call, action in ((lambda: place.put("x", b""), "s3:PutObject"),
                             (lambda: place.get("x"), "s3:GetObject"),
                             (lambda: list(place.list()), "s3:ListBucket")):  # fmt: skip
            with pytest.raises(InputError, match=action) as raised:
                call()
            assert raised.value.code == "store.permission"
            assert "secret detail" not in str(raised.value)


@pytest.mark.parametrize("status", [200, 404, 405])
def test_an_endpoint_that_is_not_s3(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    class Handler(store_servers._Quiet):
        def do_any(self) -> None:
            self.body()
            self.answer(status, b"<!DOCTYPE html><p>Welcome</p>", Content_Type="text/html")

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = do_any

    with store_servers.serving(Handler) as server:
        port = server.server_port
        store_servers.use(Server("s3", port, store_servers.s3_env(port)), monkeypatch)
        place = open_store("s3://bkt/p")
        for call in (lambda: place.put("x", b""), lambda: place.get("x")):
            with pytest.raises(InputError, match="does not respond as S3 does") as raised:
                call()
            assert raised.value.code == "store.endpoint"


def test_addresses() -> None:
    assert tuple(address_of("S3://bkt//a/b/")) == ("s3", "bkt", "a/b")
    assert str(address_of("gcs://bkt")) == "gs://bkt"
    for bad in ("s3://", "s3:///x", "s3://b/../x", "s3://b/a\nb", "s3://key:hidden@b/x",
                "s3://b/x?secret=hidden"):  # fmt: skip
        with pytest.raises(ConfigError) as raised:
            address_of(bad)
        assert raised.value.code == "config.store"
        assert "hidden" not in str(raised.value)
    assert is_store("az://c/x")
    assert not any(map(is_store, ("s3:/x", "https://a/b", "x", 5, Path("s3://b/x"), "file:///x")))


def test_a_store_object(tmp_path: Path) -> None:
    from obstore.store import LocalStore, MemoryStore

    for store in (MemoryStore(), LocalStore(tmp_path)):
        assert is_store(store)
        place = open_store(store)
        place.put("a", b"1", only="create")
        with pytest.raises(VersionError):
            place.put("a", b"2", only="create")
        found = place.get("a")
        assert found is not None
        assert found.data == b"1"
        assert place.get("b") is None


def test_without_obstore_the_error_has_the_command(tmp_path: Path) -> None:
    (tmp_path / "obstore.py").write_text("raise ImportError('not here')\n")
    code = "from urlset.transport.store import open_store\nopen_store('s3://b/x')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert "pip install 'urlset[cloud]'" in done.stderr
    assert "ConfigError" in done.stderr


def test_plain_http_needs_consent(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from obstore.store import S3Store

    monkeypatch.delenv("AWS_ENDPOINT_URL")
    store = S3Store(BUCKET, endpoint=f"http://127.0.0.1:{s3.port}")
    with pytest.raises(InputError, match="AWS_ALLOW_HTTP=true"):
        open_store(store).get("x")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_one_request_is_retried_or_explained(
    s3: Server, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A GET survives what is temporary, and what is not is one line."""
    s3.client.put_object(Bucket=BUCKET, Key="x", Body=b"content" * 1_000)
    monkeypatch.setenv("URLSET_STORE_TIMEOUT", "2")
    with Proxy(s3.port, lambda r: fault if r.number == 1 else None).running() as proxy:
        for name, value in s3.through(proxy.port).items():
            monkeypatch.setenv(name, value)
        place = open_store(s3.url)
        try:
            found = place.get("x")
            assert found is not None
            assert found.data == b"content" * 1_000
        except InputError as error:  # of a request without a condition no provider says that
            assert fault in ("409", "412")
            assert f"HTTP {fault}" in str(error)
        else:
            assert fault not in ("409", "412")
            assert len(proxy.requests) == 2
        assert proxy.requests[0].fault == fault


@pytest.mark.parametrize("fault", ["reset-before", "timeout-before", "429", "500", "503"])
def test_a_lasting_fault_is_one_line(
    s3: Server, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setenv("URLSET_STORE_TIMEOUT", "1")
    monkeypatch.setattr("urlset.transport.store.MAX_RETRIES", 1)
    with Proxy(s3.port, lambda _: fault).running() as proxy:
        for name, value in s3.through(proxy.port).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(PublishError) as raised:
            open_store(s3.url, error=PublishError).put("x", b"1")
        kinds = {"reset-before": "unreachable", "timeout-before": "timeout", "500": "failed"}
        assert raised.value.code == f"store.{kinds.get(fault, 'busy')}", str(raised.value)
        assert "\n" not in str(raised.value)


def test_reset_after_the_server_acted(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy does what its names promise: the object exists although no response came."""
    monkeypatch.setattr("urlset.transport.store.MAX_RETRIES", 0)
    for fault, exists in (("reset-before", False), ("reset-after", True)):
        with Proxy(s3.port, lambda _, fault=fault: fault).running() as proxy:
            for name, value in s3.through(proxy.port).items():
                monkeypatch.setenv(name, value)
            with pytest.raises(InputError):
                open_store(s3.url).put(fault, b"1", only="create")
        assert (fault in store_servers.objects(s3.client)) == exists


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait(s3: Server, number: int) -> None:
    code = (
        "import signal\n"
        "from urlset.transport.store import open_store\n"
        "signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))\n"
        "open_store('s3://site/x').get('y')\n"
    )
    seen = threading.Event()

    def fault(_: Request) -> str:
        seen.set()
        return "timeout-before"

    with Proxy(s3.port, fault).running() as proxy:
        env = s3.environ(**s3.through(proxy.port))
        process = subprocess.Popen([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE)
        assert seen.wait(60)
        start = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - start < 20  # the request itself would take 150 s
        assert b"KeyboardInterrupt" in err

"""Object store servers for the tests, on loopback, and a proxy that injects faults.

Each is a context manager; it starts a server and stops it by its process id. ``Server.env`` is what
urlset needs to reach it, ``Server.client`` a client that is not the one under test.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

ROOT = Path(__file__).resolve().parents[2]
ACCESS, SECRET = "testaccess", "testsecret-0123456789"
#: seconds until a server must accept connections, on a loaded machine
START_SECONDS = 120
BUCKET = "site"
#: variables of the providers that may be set where the tests run
PREFIXES = ("AWS_", "GOOGLE_", "AZURE_", "AZURITE_", "URLSET_STORE_")


def program(name: str) -> str:
    """The path of a server that ``scripts/store-servers`` installed; else the test is skipped."""
    folder = Path(os.environ.get("URLSET_TEST_SERVERS", ROOT / ".servers"))
    found = shutil.which(name, path=str(folder.absolute())) or shutil.which(name)
    if found is None:
        why = f"{name} is not in {folder} nor in PATH: scripts/store-servers installs it"
        if os.environ.get("URLSET_REQUIRE_TOOLS"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@dataclass
class Server:
    """A running server with one empty bucket.

    Attributes:
        env: the variables with its endpoint and credentials.
        client: of boto3 for S3; None for the others.
    """

    scheme: str
    port: int
    env: dict[str, str]
    bucket: str = BUCKET
    client: Any = None

    @property
    def url(self) -> str:
        """The address of the bucket."""
        return f"{self.scheme}://{self.bucket}"

    def environ(self, **more: str) -> dict[str, str]:
        """The environment of a command that uses this server and no other."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(PREFIXES)}
        return {**kept, **self.env, **more}

    def through(self, port: int) -> dict[str, str]:
        """``env`` with the port of a proxy."""
        own = f"127.0.0.1:{self.port}"
        return {name: value.replace(own, f"127.0.0.1:{port}") for name, value in self.env.items()}


def use(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Sets the environment of this process for a server."""
    for name in list(os.environ):
        if name.startswith(PREFIXES):
            monkeypatch.delenv(name)
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    return server


def s3_client(endpoint: str, access: str = ACCESS, secret: str = SECRET) -> Any:
    """A client of boto3, without retries."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=access,
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=Config(
            retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, read_timeout=120
        ),
    )


def s3_env(port: int, access: str = ACCESS, secret: str = SECRET) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": access,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def objects(client: Any, bucket: str = BUCKET, prefix: str = "") -> dict[str, bytes]:
    """All objects of a bucket, by boto3."""
    found = {}
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", []):
            key = entry["Key"]
            if not key.endswith("/"):
                found[key] = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    return found


def upload(client: Any, folder: Path, bucket: str = BUCKET, prefix: str = "") -> None:
    """Copies the files of a folder to a bucket, by boto3."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = prefix + path.relative_to(folder).as_posix()
            client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextlib.contextmanager
def _process(command: list[str], log: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server process; it accepts connections when the block starts."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(PREFIXES)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=kept)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"{command[0]} does not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def versitygw(folder: Path) -> Iterator[Server]:
    """S3 with conditional writes; the objects are files in ``folder/data``."""
    data, port = folder / "data", free_port()
    data.mkdir()
    command = [program("versitygw"), "--port", f"127.0.0.1:{port}", "--access", ACCESS]
    command += ["--secret", SECRET, "--keep-alive", "--quiet", "posix"]
    try:
        os.setxattr(data, "user.urlset", b"1")
    except OSError:  # no extended attributes on this filesystem
        (folder / "sidecar").mkdir()
        command += ["--sidecar", str(folder / "sidecar")]
    with _process([*command, str(data)], folder / "versitygw.log", port):
        client = s3_client(f"http://127.0.0.1:{port}")
        client.create_bucket(Bucket=BUCKET)
        yield Server("s3", port, s3_env(port), client=client)


@contextlib.contextmanager
def moto() -> Iterator[Server]:
    """S3 in Python, in this process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        client = s3_client(f"http://127.0.0.1:{port}")
        client.create_bucket(Bucket=BUCKET)
        yield Server("s3", port, s3_env(port), client=client)
    finally:
        server.stop()


@contextlib.contextmanager
def fake_gcs(folder: Path) -> Iterator[Server]:
    """Google Cloud Storage without conditional writes; the objects are files in ``folder``.

    fake-gcs-server accepts a PUT of the XML API only as a signed URL, and responds without the
    headers of the API: a proxy adds both.
    """
    data, port = folder / "gcs", free_port()
    (data / BUCKET).mkdir(parents=True)
    command = [program("fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1"]
    command += ["-port", str(port), "-backend", "filesystem", "-filesystem-root", str(data)]
    command += ["-public-host", f"127.0.0.1:{port}"]
    with _process(command, folder / "fake-gcs.log", port), _GcsAdapter(port).running() as proxy:
        yield Server("gs", proxy.port, gcs_env(proxy.port))


def gcs_env(port: int) -> dict[str, str]:
    url = f"http://127.0.0.1:{port}"
    # GOOGLE_SKIP_SIGNATURE serves for reading only
    account = {"gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": "",
               "private_key_id": ""}  # fmt: skip
    return {"GOOGLE_BASE_URL": url, "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account)}


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[Server]:
    """Azure Blob Storage."""
    account = "devstoreaccount1"
    # the key that every installation of azurite has; it is in its documentation
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    port = free_port()
    command = [program("azurite-blob"), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--location", str(folder), "--silent", "--skipApiVersionCheck"]
    command += ["--disableTelemetry"]
    env = {
        "AZURE_STORAGE_ACCOUNT_NAME": account,
        "AZURE_STORAGE_ACCOUNT_KEY": key,
        "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/{account}",
    }
    with _process(command, folder / "azurite.log", port):
        _create_container(port, account, key)
        yield Server("az", port, env)


def _create_container(port: int, account: str, key: str) -> None:
    """Creates the container by a request that is signed here: obstore cannot create one."""
    import base64
    import hashlib
    import hmac
    from email.utils import formatdate

    date, version = formatdate(usegmt=True), "2021-08-06"
    path = f"/{account}/{BUCKET}"
    text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{version}\n"
    text += f"/{account}{path}\nrestype:container"
    signature = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(
        "PUT",
        f"{path}?restype=container",
        headers={
            "x-ms-date": date,
            "x-ms-version": version,
            "Content-Length": "0",
            "Authorization": f"SharedKey {account}:{base64.b64encode(signature).decode()}",
        },
    )
    response = connection.getresponse()
    assert response.status == 201, (response.status, response.read())
    connection.close()


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def body(self) -> bytes:
        """The body of the request."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[ThreadingHTTPServer]:
    """A server of Python in threads."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: object) -> None:
            pass  # a client that went away

    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class StrictGcs:
    """The state of :func:`strict_gcs`.

    Attributes:
        objects: content, generation and headers by key.
        writes: (key, x-goog-if-generation-match, status) of each PUT.
    """

    objects: dict[str, tuple[bytes, int, dict[str, str]]] = field(default_factory=dict)
    writes: list[tuple[str, str | None, int]] = field(default_factory=list)
    generation: int = 1_700_000_000_000_000
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextlib.contextmanager
def strict_gcs() -> Iterator[tuple[Server, StrictGcs]]:
    """The XML API of Google Cloud Storage as far as obstore uses it, with its preconditions.

    https://cloud.google.com/storage/docs/xml-api/reference-headers: a PUT with
    ``x-goog-if-generation-match: 0`` creates, with a generation it replaces only that one.
    """
    state = StrictGcs()

    class Handler(_Quiet):
        def key(self) -> str | None:
            """The key; None for the bucket, after a response if there is no such bucket."""
            bucket, _, key = urlsplit(self.path).path.lstrip("/").partition("/")
            if unquote(bucket) != BUCKET:
                self.refuse(404, "NoSuchBucket")
                raise ConnectionError
            return unquote(key) or None

        def refuse(self, status: int, code: str) -> None:
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
            self.answer(status, body, Content_Type="application/xml")

        def do_PUT(self) -> None:
            data, key = self.body(), self.key()
            condition = self.headers.get("x-goog-if-generation-match")
            with state.lock:
                found = state.objects.get(key or "")
                current = found[1] if found else 0
                if condition is not None and int(condition) != current:
                    status = 412
                else:
                    status = 200
                    state.generation += 1
                    headers = {
                        name: value
                        for name, value in self.headers.items()
                        if name.lower().startswith(("content-type", "content-enc", "cache-c"))
                        or name.lower().startswith("x-goog-meta-")
                    }
                    state.objects[key or ""] = (data, state.generation, headers)
                state.writes.append((key or "", condition, status))
                generation = state.generation
            if status == 412:
                self.refuse(412, "PreconditionFailed")
            else:
                self.answer(200, ETag=f'"{generation:x}"', x_goog_generation=str(generation))

        def do_GET(self) -> None:
            key = self.key()
            if key is None:
                return self.listing()
            with state.lock:
                found = state.objects.get(key)
            if found is None:
                return self.refuse(404, "NoSuchKey")
            data, generation, headers = found
            tag = f'"{generation:x}"'
            if self.headers.get("If-Match") not in (None, tag):
                return self.refuse(412, "PreconditionFailed")
            more = {"ETag": tag, "x-goog-generation": str(generation), **headers}
            more["Last-Modified"] = "Sat, 21 Nov 2026 00:00:00 GMT"
            if (asked := self.headers.get("Range")) is None:
                return self.answer(200, data, **more)
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(data) - int(last))
            end = min(int(last), len(data) - 1) if first and last else len(data) - 1
            if start > end:
                return self.refuse(416, "InvalidRange")
            more["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
            return self.answer(206, data[start : end + 1], **more)

        do_HEAD = do_GET

        def listing(self) -> None:
            query = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
            prefix = query.get("prefix", "")
            with state.lock:
                found = {k: v for k, v in sorted(state.objects.items()) if k.startswith(prefix)}
            entries = "".join(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                f"<LastModified>2026-11-21T00:00:00.000Z</LastModified>"
                f"<ETag>&quot;{generation:x}&quot;</ETag></Contents>"
                for key, (data, generation, _) in found.items()
            )
            body = f"<?xml version='1.0'?><ListBucketResult>{entries}</ListBucketResult>"
            self.answer(200, body.encode(), Content_Type="application/xml")

        def do_DELETE(self) -> None:
            key = self.key()
            with state.lock:
                found = state.objects.pop(key or "", None)
            if found is None:
                self.refuse(404, "NoSuchKey")
            else:
                self.answer(204)

    with serving(Handler) as server:
        yield Server("gs", server.server_port, gcs_env(server.server_port)), state


#: what :class:`Proxy` can do to a request
FAULTS = (
    "reset-before",  # the connection is reset, and the server never sees the request
    "reset-after",  # the server acts, then the connection is reset
    "timeout-before",  # no response, and the server never sees the request
    "timeout-after",  # the server acts, but no response comes
    "409", "412", "429", "500", "503",  # this status, and the server never sees the request
    "truncated",  # the server acts; half of the response comes
)  # fmt: skip
_CODES = {"403": "AccessDenied", "409": "OperationAborted", "412": "PreconditionFailed",
          "429": "TooManyRequests",
          "500": "InternalError", "503": "SlowDown"}  # fmt: skip


@dataclass
class Request:
    """One request that the proxy received: its number from 1, and what became of it."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    fault: str | None = None
    status: int | None = None

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD")


#: status, reason, headers and body
Response = tuple[int, str, list[tuple[str, str]], bytes]


class Proxy:
    """Forwards HTTP requests to a server, and injects faults.

    Args:
        fault: called for each request before it is forwarded; returns one of :data:`FAULTS` or
            None. It may also wait or end a process.
        after: called after the server responded, before the response is sent.
    """

    def __init__(
        self,
        port: int,
        fault: Callable[[Request], str | None] = lambda _: None,
        after: Callable[[Request], None] = lambda _: None,
    ) -> None:
        self._upstream = port
        self.fault, self.after = fault, after
        self.requests: list[Request] = []
        self.port = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[Proxy]:
        proxy = self

        class Handler(_Quiet):
            def handle_any(self) -> None:
                proxy._handle(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

        with serving(Handler) as server:
            self.port = server.server_port
            try:
                yield self
            finally:
                self._stopped.set()

    def _handle(self, handler: _Quiet) -> None:
        body = handler.body()
        with self._lock:
            request = Request(
                len(self.requests) + 1, handler.command, handler.path, dict(handler.headers)
            )
            self.requests.append(request)
        fault = request.fault = self.fault(request)
        assert fault is None or fault in FAULTS or fault in _CODES, fault
        if fault == "reset-before":
            return self._reset(handler)
        if fault == "timeout-before":
            return self._hang(handler)
        if fault in _CODES:
            request.status = int(fault)
            text = f"<?xml version='1.0'?><Error><Code>{_CODES[fault]}</Code></Error>"
            return handler.answer(int(fault), text.encode(), Content_Type="application/xml")
        status, reason, headers, data = self._forward(handler, body)
        request.status = status
        self.after(request)
        if fault == "reset-after":
            return self._reset(handler)
        if fault == "timeout-after":
            return self._hang(handler)
        lines = [f"HTTP/1.1 {status} {reason}", *(f"{k}: {v}" for k, v in headers)]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        if fault == "truncated":
            # within the body if there is one, else within the headers
            handler.wfile.write(head + data[: len(data) // 2] if data else head[: len(head) // 2])
            handler.wfile.flush()
            handler.close_connection = True
            return None
        handler.wfile.write(head + data)
        return None

    def _forward(self, handler: _Quiet, body: bytes) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self._upstream, timeout=300)
        try:
            connection.putrequest(
                handler.command, handler.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in handler.headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    connection.putheader(name, value)
            if body or handler.command in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            data = response.read()
            dropped = ("connection", "transfer-encoding", "keep-alive")
            headers = [(k, v) for k, v in response.getheaders() if k.lower() not in dropped]
            if handler.command != "HEAD" and response.status != 204:
                headers = [(k, v) for k, v in headers if k.lower() != "content-length"]
                headers.append(("Content-Length", str(len(data))))
            return response.status, response.reason, headers, data
        finally:
            connection.close()

    def _reset(self, handler: _Quiet) -> None:
        """Ends the connection with RST."""
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
        handler.close_connection = True

    def _hang(self, handler: _Quiet) -> None:
        """Sends nothing until the client gives up or the proxy stops."""
        handler.connection.settimeout(0.2)
        while not self._stopped.is_set():
            try:
                if not handler.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        handler.close_connection = True


class _GcsAdapter(Proxy):
    """What fake-gcs-server lacks of the XML API."""

    def _forward(self, handler: _Quiet, body: bytes) -> Response:
        # its router compares the host with the one it was started with
        handler.headers.replace_header("Host", f"127.0.0.1:{self._upstream}")
        if handler.command == "PUT":
            handler.path += "?X-Goog-Algorithm=none"
        status, reason, headers, data = super()._forward(handler, body)
        if handler.command == "PUT" and status == 200:
            known = json.loads(data)
            headers += [("ETag", f'"{known["etag"]}"')]
            headers += [("x-goog-generation", str(known["generation"]))]
        return status, reason, headers, data

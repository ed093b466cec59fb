"""HTTP connections with limits: of time, of bytes, and of the addresses that they reach.

A timeout of httpx is for one read: a server that sends a byte every second, or interim answers
without end, is never stopped by it. And httpx resolves a host name by itself, so that a name
checked before may mean another address by then. Both are settled here, where sockets are made and
read:

- A :class:`Budget` covers all that is done inside its ``with`` block: name resolution, connecting,
  TLS, headers, interim answers, body, redirects and retries.
- A name is resolved once for each connection, every address it has is checked, and the connection
  goes to one of exactly these. TLS and the Host header keep the name.

httpx's own ``HTTPTransport`` takes no network backend; ``httpcore``, on which it is built, does.
"""

from __future__ import annotations

import ipaddress
import math
import queue
import socket
import ssl
import threading
import time
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from .errors import ConfigError

#: a server must send SLOWEST_BYTES in every SLOWEST_SECONDS until its answer is complete
SLOWEST_BYTES, SLOWEST_SECONDS = 64 << 10, 60.0
#: bytes on the wire before the headers of the answer are complete: TLS handshake, interim answers
#: (1xx) and headers; h11 refuses a single header block of more than 100 KiB
MAX_HEADER_BYTES = 1 << 20

_TLS_READ = 1 << 16
#: only 2000::/3 is allocated for global unicast (IANA); this leaves out NAT64 (64:ff9b::/96,
#: 64:ff9b:1::/48), IPv4-compatible and IPv4-translated addresses, fec0::/10 and all that is local
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
#: parts of it that are not, whatever the ipaddress of this Python knows: Teredo, documentation
_NOT_GLOBAL = tuple(map(ipaddress.ip_network, ("2001::/32", "2001:db8::/32", "3fff::/20")))

_Result = typing.TypeVar("_Result")
_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


class ExceededError(Exception):
    """A limit of the budget is reached; the message says which one."""


class PrivateError(Exception):
    """The address to connect to is not public."""


class Budget:
    """What one fetch may take, for the thread that enters it.

    Args:
        seconds: for all that is done inside the block.
        max_bytes: of one answer, as they come over the wire.
        steady: each answer must keep to the minimum rate, too.
    """

    def __init__(self, seconds: float, max_bytes: int, *, steady: bool = False) -> None:
        self._seconds, self._max_bytes, self._steady = seconds, max_bytes, steady
        self._deadline = time.monotonic() + seconds
        self.begin()

    def __enter__(self) -> Budget:
        _active.budget = self
        return self

    def __exit__(self, *_: object) -> None:
        del _active.budget

    def begin(self) -> None:
        """A new exchange starts: the limits of one answer start from nothing."""
        self._in_headers, self._bytes = True, 0
        self._start_window()

    def headers_complete(self) -> None:
        self._in_headers = False

    def left(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self._deadline - time.monotonic())

    def wait(self, timeout: float | None) -> float:
        """How long the next operation on a socket may take, in seconds, more than 0.

        Raises:
            ExceededError: the deadline is over, or too little came in the last window.
        """
        now = time.monotonic()
        if now >= self._deadline:
            raise ExceededError(f"not complete after {self._seconds:g} s")
        if now >= self._window_end:
            if self._window_bytes < SLOWEST_BYTES:
                raise ExceededError(f"slower than {SLOWEST_BYTES:,} bytes in {SLOWEST_SECONDS:g} s")
            self._start_window()
        # a little more: when a socket gives up, the clock must be past the limit
        left = min(self._deadline, self._window_end) - now + 0.01
        return left if timeout is None else min(max(timeout, 0.001), left)

    def count(self, size: int) -> None:
        """Counts bytes that were received.

        Raises:
            ExceededError: they are too many.
        """
        self._bytes += size
        self._window_bytes += size
        if self._in_headers and self._bytes > MAX_HEADER_BYTES:
            raise ExceededError(f"more than {MAX_HEADER_BYTES:,} bytes of headers")
        if self._bytes > self._max_bytes:
            raise ExceededError(f"more than {self._max_bytes:,} bytes in one file")

    def _start_window(self) -> None:
        seconds = SLOWEST_SECONDS if self._steady else math.inf
        self._window_end, self._window_bytes = time.monotonic() + seconds, 0


class _Active(threading.local):
    budget: Budget


#: the budget of the calling thread: httpcore does all I/O of a request in the thread that sends it
_active = _Active()


def is_public(address: str) -> bool:
    """Whether ``address``, a number as ``getaddrinfo`` returns it, is on the public internet."""
    return _is_public(ipaddress.ip_address(address.partition("%")[0]))


def _is_public(ip: _Ip) -> bool:
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return _is_public(ip.ipv4_mapped)
        if ip not in _GLOBAL_UNICAST or any(ip in network for network in _NOT_GLOBAL):
            return False
        if ip.sixtofour is not None and not _is_public(ip.sixtofour):
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _must_not_name_private(host: str) -> None:
    """What can be checked of a host that a proxy resolves: numbers, in every spelling."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        raise PrivateError("the host has a private address")
    try:
        ip: _Ip = ipaddress.ip_address(name)
    except ValueError:
        try:
            ip = ipaddress.IPv4Address(socket.inet_aton(name))  # 0x7f.1, 2130706433, 0177.1
        except (OSError, UnicodeError):
            return  # a name
    if not _is_public(ip):
        raise PrivateError("the host has a private address")


# --- sockets


@contextmanager
def _errors(timeout: type[Exception], failed: type[Exception]) -> Iterator[None]:
    """Turns what a socket raises into the exceptions that httpcore expects."""
    try:
        yield
    except TimeoutError:
        raise timeout("timed out") from None
    except OSError as error:
        raise failed(str(error)) from error


class Stream(httpcore.NetworkStream):
    """A TCP connection that keeps to the budget of the thread that uses it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _errors(httpcore.ReadTimeout, httpcore.ReadError):
            data = self._repeat(lambda: self._sock.recv(max_bytes), timeout)
        _active.budget.count(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        with _errors(httpcore.WriteTimeout, httpcore.WriteError):
            while rest:
                rest = rest[self._repeat(lambda: self._sock.send(rest), timeout) :]  # noqa: B023

    def _repeat(self, step: Callable[[], _Result], timeout: float | None) -> _Result:
        """The result of ``step``, which the budget may interrupt sooner than the timeout."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            self._sock.settimeout(_active.budget.wait(end - time.monotonic()))
            try:
                return step()
            except TimeoutError:
                _active.budget.wait(None)  # where the budget is the reason, say so
                if time.monotonic() >= end:
                    raise

    def close(self) -> None:
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return TlsStream(self, ssl_context, server_hostname, timeout)

    def get_extra_info(self, info: str) -> typing.Any:
        if info == "is_readable":  # httpcore: an idle connection with something to read has ended
            return _is_readable(self._sock)
        if info == "server_addr":
            return self._sock.getpeername()
        return self._sock if info == "socket" else None


class TlsStream(httpcore.NetworkStream):
    """TLS over any stream, which may be TLS itself (an https proxy).

    ``SSLContext.wrap_socket`` would take the socket away from :class:`Stream`, and with it the
    check of the budget before every receive.
    """

    def __init__(
        self,
        inner: httpcore.NetworkStream,
        context: ssl.SSLContext,
        server_hostname: str | None,
        timeout: float | None,
    ) -> None:
        self._inner = inner
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(
                self._incoming, self._outgoing, server_hostname=server_hostname
            )
            self._run(self._tls.do_handshake, timeout)
        except (ssl.SSLError, ssl.CertificateError, ValueError) as error:
            self.close()
            raise httpcore.ConnectError(str(error)) from error
        except BaseException:
            self.close()
            raise

    def _run(self, step: Callable[[], _Result], timeout: float | None) -> _Result:
        """The result of ``step``, with as much input and output as it asks for."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self._flush(timeout)
                if data := self._inner.read(_TLS_READ, timeout):
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                self._flush(timeout)
                return result

    def _flush(self, timeout: float | None) -> None:
        if self._outgoing.pending:
            self._inner.write(self._outgoing.read(), timeout)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return self._run(lambda: self._tls.read(max_bytes), timeout)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""  # with or without a farewell; h11 knows whether the answer was complete
        except ssl.SSLError as error:
            raise httpcore.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        try:
            while rest:
                rest = rest[self._run(lambda: self._tls.write(rest), timeout) :]  # noqa: B023
        except ssl.SSLError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return TlsStream(self, ssl_context, server_hostname, timeout)

    def get_extra_info(self, info: str) -> typing.Any:
        return self._tls if info == "ssl_object" else self._inner.get_extra_info(info)


def _is_readable(sock: socket.socket) -> bool:
    import select

    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


class Backend(httpcore.NetworkBackend):
    """Makes connections: resolves once, checks every address, connects to these and no other."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[typing.Any] | None = None,
    ) -> httpcore.NetworkStream:
        budget = _active.budget
        addresses = _resolve(host, port, budget.wait(timeout))
        if not self._allow_private and not all(is_public(str(a[4][0])) for a in addresses):
            raise PrivateError("the host has a private address")
        # all addresses together have the time of one: a name may have any number of them
        end = time.monotonic() + (budget.left() if timeout is None else timeout)
        failed: Exception = httpcore.ConnectError(f"{host}: no address")
        for family, kind, protocol, _, address in addresses:
            try:
                with _errors(httpcore.ConnectTimeout, httpcore.ConnectError):
                    sock = socket.socket(family, kind, protocol)
                    try:
                        sock.settimeout(budget.wait(end - time.monotonic()))
                        sock.connect(address)
                        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    except BaseException:
                        sock.close()
                        raise
                return Stream(sock)
            except (httpcore.ConnectTimeout, httpcore.ConnectError) as error:
                failed = error
            if time.monotonic() >= end:
                break
        raise failed


def _resolve(host: str, port: int, seconds: float) -> list[typing.Any]:
    """The addresses of a host, asked for by a thread: nothing else can bound ``getaddrinfo``."""
    box: queue.SimpleQueue[list[typing.Any] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            box.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except (OSError, ValueError, OverflowError) as error:  # names that cannot be encoded, too
            box.put(error)

    try:
        threading.Thread(target=ask, daemon=True).start()
    except RuntimeError:  # no thread to be had
        ask()
    try:
        found = box.get(timeout=seconds)
    except queue.Empty:
        raise httpcore.ConnectTimeout(f"{host}: not resolved after {seconds:,.0f} s") from None
    if isinstance(found, Exception):
        raise httpcore.ConnectError(f"{host}: no such host")
    return found


# --- requests


class Transport(httpx.BaseTransport):
    """What an ``httpx.Client`` sends its requests through. Use it inside a :class:`Budget`.

    Args:
        allow_private: connect to addresses that are not public, too. Behind a proxy names are
            resolved by the proxy, and only hosts given as a number can be checked.
        proxies: use those of the environment (``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``,
            ``NO_PROXY``).
        connections: how many at a time.

    Raises:
        ConfigError: ``network.certificates``; while sending, ``network.proxy``.
    """

    def __init__(self, *, allow_private: bool, proxies: bool = True, connections: int = 16) -> None:
        self._allow_private = allow_private
        self._proxies = getproxies() if proxies else {}
        self._connections = connections
        self._lock = threading.Lock()
        self._pools: dict[str | None, httpcore.ConnectionPool] = {}
        try:
            self._context = httpx.create_ssl_context()
        except OSError as error:
            raise ConfigError(
                "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be loaded:"
                f" {error.strerror or error}",
                code="network.certificates",
            ) from None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        budget = _active.budget
        budget.begin()
        proxy = self._proxy(request.url)
        if proxy is not None and not self._allow_private:
            _must_not_name_private(request.url.host)
        with _httpx_errors():
            assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101 - for the checker
            answer = self._pool(proxy).handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        budget.headers_complete()
        assert isinstance(answer.stream, Iterable)  # noqa: S101 - for the checker
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _proxy(self, url: httpx.URL) -> str | None:
        address = self._proxies.get(url.scheme) or self._proxies.get("all")
        if not address or proxy_bypass(url.netloc.decode("ascii")):
            return None
        return address if "://" in address else f"http://{address}"

    def _pool(self, proxy: str | None) -> httpcore.ConnectionPool:
        with self._lock:
            if proxy not in self._pools:
                if proxy is None:
                    self._pools[proxy] = httpcore.ConnectionPool(
                        ssl_context=self._context,
                        max_connections=self._connections,
                        network_backend=Backend(self._allow_private),
                    )
                else:
                    self._pools[proxy] = self._proxy_pool(proxy)
            return self._pools[proxy]

    def _proxy_pool(self, address: str) -> httpcore.ConnectionPool:
        # the message does not repeat the address: it may hold a password
        backend = Backend(allow_private=True)  # whoever sets the variable chooses the address
        try:
            proxy = httpx.Proxy(address)
            url = httpcore.URL(
                scheme=proxy.url.raw_scheme,
                host=proxy.url.raw_host,
                port=proxy.url.port,
                target=proxy.url.raw_path,
            )
            if not proxy.url.host:
                raise ValueError
            if proxy.url.scheme.startswith("socks5"):
                return httpcore.SOCKSProxy(
                    url,
                    proxy_auth=proxy.raw_auth,
                    ssl_context=self._context,
                    max_connections=self._connections,
                    network_backend=backend,
                )
            return httpcore.HTTPProxy(
                url,
                proxy_auth=proxy.raw_auth,
                ssl_context=self._context,
                max_connections=self._connections,
                network_backend=backend,
            )
        except (RuntimeError, ImportError):
            raise ConfigError(
                "the environment names a SOCKS proxy: pip install 'httpx[socks]' to use it",
                code="network.proxy",
            ) from None
        except (httpx.InvalidURL, ValueError, TypeError):
            raise ConfigError(
                "the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not an address of the form"
                " http://host:port, https://host:port or socks5://host:port",
                code="network.proxy",
            ) from None


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _httpx_errors():
            yield from self._stream

    def close(self) -> None:
        if hasattr(self._stream, "close"):
            self._stream.close()


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """httpcore's exceptions as those of httpx, which have the same names."""
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.ProxyError,
        httpcore.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error

"""Connections that keep the current budget.

Note for maintainers. httpcore's own streams lack three guarantees:

- A timeout of httpx limits one read. Measured with httpx 0.28: ``timeout=1.0`` and a server that
  sends a byte of a header every 0.5 s; the call returned after 30 s, when the server closed. Here
  each receive takes its timeout from the :class:`Budget` (test_fetch_limits.py).
- httpx resolves a host name by itself: a name that was checked before can have another address
  by then. :class:`Backend` resolves once for each connection, checks every address and connects to
  one of exactly these; TLS and the Host header keep the name (test_fetch_addresses.py).
- ``SSLContext.wrap_socket`` takes the socket away, and bytes of the TLS layer would not be counted.
  :class:`TlsStream` runs TLS over any stream, so that TLS to an https proxy can carry TLS
  (test_a_server_that_never_ends_the_handshake).

``httpx.HTTPTransport`` accepts no network backend; ``httpcore``, on which it is built, does.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, TypeVar

import httpcore

from . import ExchangeError, PrivateAddressError, address
from .budget import current

#: bytes of one read below TLS: four of its records
_TLS_READ = 1 << 16

_Result = TypeVar("_Result")


def _broken(error: OSError) -> ExchangeError:
    return ExchangeError(f"the connection broke: {error.strerror or error}", retry=True)


class _Stream(httpcore.NetworkStream, ABC):
    """Common code of both kinds of streams."""

    @abstractmethod
    def _send(self, data: memoryview, timeout: float | None) -> int:
        """Sends the beginning of the data; returns the number of bytes."""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        try:
            while rest:
                rest = rest[self._send(rest, timeout) :]
        except OSError as error:  # ssl.SSLError too; httpcore still reads an early answer
            raise httpcore.WriteError(str(error)) from error

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return TlsStream(self, ssl_context, server_hostname, timeout)


class PlainStream(_Stream):
    """A TCP connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = self._repeat(lambda: self._sock.recv(max_bytes), timeout)
        except OSError as error:
            raise _broken(error) from None
        current().count(len(data))
        return data

    def _send(self, data: memoryview, timeout: float | None) -> int:
        return self._repeat(lambda: self._sock.send(data), timeout)

    def _repeat(self, step: Callable[[], _Result], timeout: float | None) -> _Result:
        """The result of ``step``, which the budget interrupts, maybe before the timeout."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            self._sock.settimeout(current().timeout(end - time.monotonic()))
            try:
                return step()
            except TimeoutError:
                current().timeout(None)  # raises where the budget is the reason
                if time.monotonic() >= end:
                    raise ExchangeError(f"no data for {timeout:.3g} s", retry=True) from None

    def close(self) -> None:
        self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # httpcore: an idle connection with data to read was closed
            return self._is_readable()
        if info == "server_addr":
            return self._sock.getpeername()
        return self._sock if info == "socket" else None

    def _is_readable(self) -> bool:
        if self._sock.fileno() < 0:
            return True
        if not hasattr(select, "poll"):  # Windows, where select takes any socket
            return bool(select.select([self._sock], [], [], 0)[0])
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(0))


class TlsStream(_Stream):
    """TLS over any stream, which may itself be TLS (an https proxy)."""

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
        except BaseException as error:
            self.close()
            if isinstance(error, ssl.SSLCertVerificationError):
                raise ExchangeError(f"the certificate is not trusted: {error}") from None
            if isinstance(error, ssl.SSLError | ValueError):
                raise ExchangeError(f"cannot connect: {error}", retry=True) from None
            raise

    def _run(self, step: Callable[[], _Result], timeout: float | None) -> _Result:
        """The result of ``step``, after as much input and output as it needs."""
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
            return b""  # with or without close_notify; h11 checks whether the answer is complete
        except ssl.SSLError as error:
            raise _broken(error) from None

    def _send(self, data: memoryview, timeout: float | None) -> int:
        return self._run(lambda: self._tls.write(data), timeout)

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._tls if info == "ssl_object" else self._inner.get_extra_info(info)


class Backend(httpcore.NetworkBackend):
    """Connects to the addresses that it has checked.

    Args:
        allow_private: also connect to addresses that are not public.
    """

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        budget = current()
        found = address.resolve(host, port, budget.timeout(timeout))
        if not self._allow_private and not all(address.is_public(str(f[4][0])) for f in found):
            raise PrivateAddressError
        # all addresses share the timeout: a name can have any number of them
        end = time.monotonic() + (budget.left() if timeout is None else timeout)
        reason = "no address"
        for family, kind, protocol, _, target in found:
            try:
                sock = socket.socket(family, kind, protocol)
                with ExitStack() as failed:
                    failed.callback(sock.close)
                    sock.settimeout(budget.timeout(end - time.monotonic()))
                    sock.connect(target)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    failed.pop_all()
                return PlainStream(sock)
            except OSError as error:
                reason = error.strerror or str(error)
            if time.monotonic() >= end:
                break
        raise ExchangeError(f"cannot connect: {reason}", retry=True)

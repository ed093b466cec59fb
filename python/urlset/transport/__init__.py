"""HTTP for everything that leaves this machine: sitemaps of others, and search engines.

::

    Client --> httpx.Client --> Transport --> httpcore pool --> Backend --> PlainStream, TlsStream
    errors     URLs, headers    proxies       HTTP/1.1          addresses   deadline, rate, bytes

Each exchange runs inside a :class:`~urlset.transport.budget.Budget`. Every failure is one of::

    ExchangeError               no complete answer; ``retry``: another attempt can succeed
    ├── SlowError               the deadline or a timeout is over               retry
    ├── LimitError              too many bytes, or slower than the minimum rate
    ├── PrivateAddressError     the host has an address that is not public
    ├── ConnectError            no connection: the name, the address, TLS       retry
    │   └── CertificateError    the certificate of the host is not trusted
    ├── ProxyError              the proxy refuses to connect
    └── ProtocolError           a broken connection, or no HTTP                 retry

plus :class:`urlset.ConfigError` for proxies and certificates that the environment names and that
cannot be used. This module imports nothing: the commands that need no network stay fast.
"""

from __future__ import annotations


class ExchangeError(Exception):
    """No complete answer came; the message is one line without the URL.

    Attributes:
        retry: another attempt can succeed.
    """

    retry = False

    def __init__(self, message: str) -> None:
        super().__init__("".join(c if c.isprintable() else " " for c in message))


class SlowError(ExchangeError):
    """The deadline of the exchange or the timeout of one operation is over."""

    retry = True


class LimitError(ExchangeError):
    """The answer has too many bytes, or comes more slowly than the minimum rate."""


class PrivateAddressError(ExchangeError):
    """The host has an address that is not public."""

    def __init__(self) -> None:
        super().__init__("the host has a private address")


class ConnectError(ExchangeError):
    """The host name does not resolve, or no address of it accepts a connection."""

    retry = True


class CertificateError(ConnectError):
    """The certificate of the host is not trusted."""

    retry = False


class ProxyError(ExchangeError):
    """The proxy refuses to connect to the host."""


class ProtocolError(ExchangeError):
    """The connection broke, or what came is not HTTP."""

    retry = True

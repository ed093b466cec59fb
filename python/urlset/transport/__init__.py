"""HTTP for all network access of ``announce`` and of the commands that fetch sitemaps.

::

    Client --> httpx --> Transport --> httpcore --> Backend --> PlainStream, TlsStream
    errors     URLs      proxies       HTTP/1.1     addresses   deadline, rate, bytes

An exchange runs inside a :class:`~urlset.transport.budget.Budget`. It fails with one of::

    ExchangeError               no complete answer; ``retry``: another attempt can succeed
    ├── BudgetError             the deadline, the byte limit or the minimum rate
    └── PrivateAddressError     the host has an address that is not public

or with :class:`urlset.ConfigError`, for a proxy or certificates that the environment names. This
module imports nothing of httpx, so that commands without network start fast.
"""

from __future__ import annotations

from ..wording import one_line


class ExchangeError(Exception):
    """No complete answer came. The message is one line without the URL."""

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(one_line(message))
        self.retry = retry


class BudgetError(ExchangeError):
    """The answer takes too long, has too many bytes, or is slower than the minimum rate."""


class PrivateAddressError(ExchangeError):
    """The host has an address that is not public."""

    def __init__(self) -> None:
        super().__init__("the host has a private address")

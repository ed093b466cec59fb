"""The URLs that may be sent, and the endpoints that may receive requests."""

from __future__ import annotations

import ipaddress

from .._core import Url, split_url, url_fault
from ..errors import ConfigError

#: sitemaps.org: ``loc`` has fewer than 2,048 characters
MAX_URL = 2_047
#: characters of an invalid value that a message quotes
MAX_QUOTE = 200


def split(url: str) -> Url | None:
    """The parts of a URL that may be sent, ``None`` for any other text.

    It is absolute, http or https, percent-encoded, without user, password and fragment. This also
    keeps line breaks out of headers and files.
    """
    if len(url) > MAX_URL or url_fault(url) is not None:
        return None
    parts = split_url(url)
    if parts is None or parts.userinfo is not None or parts.fragment is not None or parts.port == 0:
        return None
    return parts


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine by ``localhost`` or by a loopback number."""
    parts = split(url)
    if parts is None or parts.host == "localhost":
        return parts is not None
    try:
        return ipaddress.ip_address(parts.host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_page(url: str, *, what: str) -> Url:
    """The parts of a URL that a person entered.

    Raises:
        ConfigError: ``announce.bad_url``.
    """
    parts = split(url)
    if parts is None:
        raise ConfigError(
            f"{what} must be an absolute http or https URL, percent-encoded, of at most"
            f" {MAX_URL:,} characters, without user, password or fragment: {url[:MAX_QUOTE]!r}",
            code="announce.bad_url",
        )
    return parts


def endpoint(given: str | None, default: str) -> str:
    """The URL of an engine, without a slash at its end.

    Args:
        given: the option; a URL without a path takes the path of ``default``.

    Raises:
        ConfigError: ``announce.endpoint``: neither https, nor http to this machine.
    """
    if given is None:
        return default.rstrip("/")
    parts = split(given)
    if parts is None or parts.query or (parts.scheme == "http" and not is_loopback(given)):
        raise ConfigError(
            "--endpoint must be an https URL, or http to localhost, 127.x.x.x or [::1],"
            f" without user, query or fragment: {given[:MAX_QUOTE]!r}",
            code="announce.endpoint",
        )
    known = split(default)
    path = parts.path.rstrip("/") or (known.path.rstrip("/") if known else "")
    return parts.origin + path

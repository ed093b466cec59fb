"""Web addresses: which ones may be sent, and where requests may go."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import SplitResult, quote, urlsplit

from ..errors import ConfigError

#: PROTOCOL section 1: ``loc`` has fewer than 2,048 characters
MAX_URL = 2_047

# RFC 3986: what may stand in an address as it is; space, controls, quotes, <>\^`{|} and anything
# outside ASCII must be percent-encoded. This also keeps line breaks out of headers and files.
_SOME = r"[A-Za-z0-9\-._~:@!$&'()*+,;=%\[\]"
_LEGAL = re.compile(rf"(https?://{_SOME}]+)(/{_SOME}/]*)?(?:\?{_SOME}/?]*)?", re.IGNORECASE)
_HOST = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]+\])")


def split(url: str) -> SplitResult | None:
    """The parts of an absolute http(s) address, or ``None`` where it is not a legal one.

    No user or password, no fragment, a host, a port between 1 and 65535.
    """
    if len(url) > MAX_URL or not _LEGAL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = parts.netloc.rsplit(":", 1)[0] if port is not None else parts.netloc
    if "@" in parts.netloc or not _HOST.fullmatch(host) or port == 0:
        return None
    return parts


def place(url: str) -> tuple[str, str] | None:
    """Host and path of a legal address: what :func:`split` says, five times as fast in bulk."""
    found = _LEGAL.fullmatch(url)
    if found is None or len(url) > MAX_URL:
        return None
    host = _authority(found[1])
    return None if host is None else (host, found[2] or "/")


@lru_cache(maxsize=1_024)
def _authority(origin: str) -> str | None:
    parts = split(origin)
    return None if parts is None else host_of(parts)


def host_of(parts: SplitResult) -> str:
    """Host in lower case, with its port where that is not the scheme's own."""
    host = parts.netloc.lower().removesuffix(":")
    return host.removesuffix(":443" if parts.scheme.lower() == "https" else ":80")


def origin_of(parts: SplitResult) -> str:
    """``https://www.example.com``: scheme, host, port, and no slash at the end."""
    return f"{parts.scheme.lower()}://{host_of(parts)}"


def is_loopback(parts: SplitResult) -> bool:
    """Whether the address names this machine by ``localhost`` or by a loopback number."""
    host = parts.hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def segment(text: str) -> str:
    """``text`` percent-encoded whole, as one segment of a path (PROTOCOL section 5)."""
    return quote(text, safe="")


def check_page(url: str, *, what: str) -> SplitResult:
    """The parts of an address that a person gave.

    Raises:
        ConfigError: ``announce.bad_url``.
    """
    parts = split(url)
    if parts is None:
        raise ConfigError(
            f"{what} must be an absolute http or https address, percent-encoded, of at most"
            f" {MAX_URL:,} characters, without user, password or fragment: {url[:200]!r}",
            code="announce.bad_url",
        )
    return parts


def endpoint(given: str | None, default: str) -> str:
    """The address under which an engine is asked; no slash at its end.

    A given address without a path takes the path of ``default``.

    Raises:
        ConfigError: ``announce.endpoint``: neither https, nor http to this machine.
    """
    if given is None:
        return default.rstrip("/")
    parts = split(given)
    if parts is None or parts.query or (parts.scheme.lower() == "http" and not is_loopback(parts)):
        raise ConfigError(
            "--endpoint must be an https address, or http to localhost, 127.x.x.x or [::1],"
            f" without user, query or fragment: {given[:200]!r}",
            code="announce.endpoint",
        )
    origin = f"{parts.scheme.lower()}://{parts.netloc}"
    path = parts.path.rstrip("/")
    return origin + (path or urlsplit(default).path.rstrip("/"))

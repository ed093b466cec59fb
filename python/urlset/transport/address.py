"""The addresses that a request may reach (docs/verify.md)."""

from __future__ import annotations

import ipaddress
import socket
import time
from typing import Any

from ..threads import completed
from . import ExchangeError, PrivateAddressError

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address

#: only 2000::/3 is allocated for global unicast (IANA); this excludes NAT64 (64:ff9b::/96,
#: 64:ff9b:1::/48), IPv4-compatible and IPv4-translated addresses, fec0::/10 and all local ones
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
#: parts of 2000::/3 that are not global in some version of Python only: Teredo, documentation
_NOT_GLOBAL = tuple(map(ipaddress.ip_network, ("2001::/32", "2001:db8::/32", "3fff::/20")))


def is_public(address: str) -> bool:
    """Whether ``address``, a number as ``getaddrinfo`` returns it, is on the public internet."""
    return _is_public(ipaddress.ip_address(address.partition("%")[0]))


def _is_public(ip: Ip) -> bool:
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return _is_public(ip.ipv4_mapped)
        if ip not in _GLOBAL_UNICAST or any(ip in network for network in _NOT_GLOBAL):
            return False
        if ip.sixtofour is not None and not _is_public(ip.sixtofour):
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def check_literal(host: str) -> None:
    """Checks a host that a proxy resolves: only numbers, in every spelling, are known here.

    Raises:
        PrivateAddressError: the host is ``localhost`` or a private number.
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        raise PrivateAddressError
    try:
        ip: Ip = ipaddress.ip_address(name)
    except ValueError:
        try:
            ip = ipaddress.IPv4Address(socket.inet_aton(name))  # 0x7f.1, 2130706433, 0177.1
        except (OSError, UnicodeError):
            return  # a name
    if not _is_public(ip):
        raise PrivateAddressError


def resolve(host: str, port: int, seconds: float) -> list[Any]:
    """The result of ``getaddrinfo``, which has no timeout.

    Raises:
        ExchangeError: the name does not resolve, or not in time.
    """
    end = time.monotonic() + seconds

    def ask(name: str) -> list[Any]:
        return list(socket.getaddrinfo(name, port, type=socket.SOCK_STREAM))

    try:
        for _, addresses in completed(ask, [host], lambda: end - time.monotonic()):
            return addresses
    except (OSError, ValueError, OverflowError):  # also names that cannot be encoded
        raise ExchangeError(f"{host}: no such host", retry=True) from None
    raise ExchangeError(f"{host}: not resolved after {seconds:.3g} s", retry=True)

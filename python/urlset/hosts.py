"""The option ``hosts`` in the form of the core."""

from __future__ import annotations

from collections.abc import Sequence

from . import _core
from .errors import ConfigError, Error


def host_list(hosts: str | Sequence[str]) -> list[str] | None:
    """Hosts in the form of the core: ``None`` for ``same``, an empty list for ``any``.

    Raises:
        ConfigError: ``verify.options`` for text that is not a host.
    """
    names = hosts.split(",") if isinstance(hosts, str) else list(hosts)
    if names in (["same"], ["any"]):
        return None if names == ["same"] else []
    found = []
    for name in names:
        try:
            address = _core.address(f"https://{name.strip()}/")
        except Error:
            address = ""
        host = address.removeprefix("https://").removesuffix("/")
        if not host or set(host) & set("/?#@"):
            message = f"hosts: {name!r} is not a host; write same, any, or hosts such as"
            message += " m.shop.example,shop.example:8080"
            raise ConfigError(message, code="verify.options")
        # without a port, both schemes are allowed on their default port; with :443 only https
        found.append(f"{host}:443" if name.strip().endswith(":443") else host)
    return found

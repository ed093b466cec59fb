"""URIs in messages: without user names, passwords, tokens and signatures."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

MASK = "***"

#: shorter values are not secrets: they occur in many texts by chance
SHORTEST = 4

#: keys of a query with the location of a store
PUBLIC = {
    "region", "scheme", "endpoint_override", "retry_limit_seconds", "sslmode", "connect_timeout",
    "host", "hostaddr", "port", "dbname", "application_name",
}  # fmt: skip


def shown(uri: str) -> str:
    """``uri`` without its possible secrets: user information, query and fragment.

    ``?***`` replaces a query. The name of a bucket remains.
    """
    scheme, sign, rest = uri.partition("://")
    if not sign:
        return uri
    user, rest = _split_user(rest)
    place, query = _split_query(rest)
    return f"{scheme}://{user and f'{MASK}@'}{place}{f'?{MASK}' if query else ''}"


def user_of(uri: str) -> str:
    """The user information of a URI, as written; empty without one."""
    return _split_user(uri.partition("://")[2])[0]


def _split_user(rest: str) -> tuple[str, str]:
    """The user information, and what follows the ``@`` behind it.

    A password may contain ``/``, ``?``, ``#`` or ``@`` that should have been percent-encoded.
    """
    user, at, tail = rest.rpartition("@")
    while at:
        name, colon, _ = user.partition(":")
        end = next((i for i, char in enumerate(user) if char in "/?#"), len(user))
        # with one of these characters, only behind a colon that is not that of a port
        if end == len(user) or (
            colon and len(name) < end and not user[len(name) + 1 : end].isdigit()
        ):
            return user, tail
        user, at, more = user.rpartition("@")
        tail = f"{more}@{tail}"
    return "", rest


def _split_query(rest: str) -> tuple[str, str]:
    """The part before query and fragment, and these."""
    at = min((i for i in (rest.find("?"), rest.find("#")) if i >= 0), default=len(rest))
    return rest[:at], rest[at:]


def secrets_of(uri: str) -> list[str]:
    """The possible secrets in ``uri``, the longest first, as written and percent-decoded."""
    user, rest = _split_user(uri.partition("://")[2])
    query = _split_query(rest)[1]
    secrets = {query[1:], user, *user.split(":", 1), *re.split("[:/?#@]", user)}
    secrets |= {value for key, value in parse_qsl(query[1:]) if key not in PUBLIC}
    parts = [part.partition("=") for part in query[1:].split("&")]
    secrets |= {value for key, _, value in parts if key not in PUBLIC}
    secrets |= {unquote(secret) for secret in secrets}
    return sorted((s for s in secrets if len(s) >= SHORTEST), key=len, reverse=True)


def hide(text: str, uri: str) -> str:
    """``text`` without the secrets of ``uri``, in each form in which a library may repeat them."""
    text = text.replace(uri, shown(uri))
    for secret in secrets_of(uri):
        text = text.replace(secret, MASK)
    return text

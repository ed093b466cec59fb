"""URIs in messages: without user names, passwords, tokens and signatures."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

MASK = "***"

#: shorter values are not secrets: they occur in many texts by chance
SHORTEST = 4

#: keys of a query with the location of a store
PUBLIC = {"region", "scheme", "endpoint_override", "retry_limit_seconds"}


def shown(uri: str) -> str:
    """``uri`` without its possible secrets: user information, query and fragment.

    ``?***`` replaces a query. The name of a bucket remains.
    """
    scheme, sign, rest = uri.partition("://")
    if not sign:
        return uri
    place, query = _split_query(rest)
    authority, slash, path = place.partition("/")
    host = authority.rpartition("@")[2]
    user = f"{MASK}@" if "@" in authority else ""
    return f"{scheme}://{user}{host}{slash}{path}{f'?{MASK}' if query else ''}"


def _split_query(rest: str) -> tuple[str, str]:
    """The part before query and fragment, and these."""
    at = min((i for i in (rest.find("?"), rest.find("#")) if i >= 0), default=len(rest))
    return rest[:at], rest[at:]


def secrets_of(uri: str) -> list[str]:
    """The possible secrets in ``uri``, the longest first, as written and percent-decoded."""
    place, query = _split_query(uri.partition("://")[2])
    user = place.partition("/")[0].rpartition("@")[0]
    secrets = {query[1:], user, *user.split(":", 1)}
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

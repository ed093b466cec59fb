"""Yandex Webmaster: the sitemap is added once (PROTOCOL section 7)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from ..errors import ConfigError
from .http import JSON, Again, Answer, Http, Request
from .secrets import find_key
from .session import Session

ENDPOINT = "https://api.webmaster.yandex.net/v4"
VARIABLE = "URLSET_YANDEX_TOKEN"
USER_VARIABLE = "URLSET_YANDEX_USER"


def host_id(site: str) -> str:
    """``https:example.com:443``: scheme, host and port, the port always there."""
    parts = urlsplit(site)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}:{parts.hostname}:{port}"


class Yandex:
    """One site of one user."""

    def __init__(self, http: Http, base: str, token: str, user: str | None, host: str) -> None:
        self._http, self._base, self._token = http, base, token
        self.user, self._host = user, host

    def who(self) -> Request:
        """Whose token it is: ``GET /v4/user`` of Yandex's API reference."""
        return Request("GET", f"{self._base}/user", self._headers())

    def add(self, sitemap: str) -> Request:
        user = self.user or "{uid}"
        url = f"{self._base}/user/{user}/hosts/{self._host}/user-added-sitemaps"
        body = json.dumps({"url": sitemap}, separators=(",", ":")).encode("ascii")
        return Request("POST", url, {**self._headers(), "Content-Type": JSON}, body)

    def ask_user(self) -> None:
        """Find the user's number out."""
        answer = self._http.call(self.who(), self.judge)
        try:
            value = json.loads(answer.body)
        except (ValueError, RecursionError):
            value = None
        user = value.get("user_id") if isinstance(value, dict) else None
        if not isinstance(user, int | str) or not re.fullmatch(r"[0-9]{1,20}", str(user)):
            raise self._http.refuse(answer, "it did not tell the user's number", "answer")
        self.user = str(user)

    def judge(self, answer: Answer) -> Again | None:
        if answer.status in (200, 201):
            return None
        if answer.status == 409 and b"SITEMAP_ALREADY_ADDED" in answer.body:
            return None
        if answer.status == 401 or b"INVALID_OAUTH_TOKEN" in answer.body:
            raise self._http.refuse(answer, "the token was refused", "key_refused")
        if answer.status in (403, 404):
            raise self._http.refuse(
                answer,
                f"the site {self._host} is not this user's, or not verified: check the site in"
                " Yandex Webmaster, or give --property yandex=HOST_ID",
                "property",
            )
        raise self._http.refuse(answer, "refused", "refused")

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"OAuth {self._token}"}


def prepare(session: Session) -> Callable[[], None]:
    """Check the token and the site; what is returned sends."""
    target, options = session.target, session.options
    indexes = target.need_indexes()
    base = session.endpoint("yandex", ENDPOINT)
    host = options.properties.get("yandex") or host_id(target.site)
    if not re.fullmatch(r"https?:[A-Za-z0-9_.-]+:[0-9]{1,5}", host):
        raise ConfigError(
            f"--property yandex={host[:100]!r} is not of the form https:example.com:443",
            code="yandex.bad_property",
        )
    user = options.yandex_user or os.environ.get(USER_VARIABLE, "").strip() or None
    if user is not None and not re.fullmatch(r"[0-9]{1,20}", user):
        raise ConfigError(f"the Yandex user {user[:40]!r} is not a number", code="yandex.bad_user")
    token = find_key(
        session.keyring,
        engine="yandex",
        variables=[VARIABLE],
        file=session.key_file("yandex"),
        form=r"[A-Za-z0-9._~+/=-]{8,4096}",
        form_in_words="8 to 4,096 letters, digits or any of - . _ ~ + / =",
        where_to_get="an OAuth token with access to Yandex Webmaster",
    )
    http = session.open(session.http("yandex", base))
    yandex = Yandex(http, base, token, user, host)

    def submit(index: str) -> str:
        answer = http.call(yandex.add(index), yandex.judge)
        return "was added before" if answer.status == 409 else ""

    def send() -> None:
        if yandex.user is None:
            if session.dry_run:
                session.show(yandex.who().text())
            else:
                yandex.ask_user()
        session.submit_each("yandex", indexes, yandex.add, submit)

    return send

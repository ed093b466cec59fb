"""Yandex Webmaster API v4: adds each sitemap once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ..errors import ConfigError
from .address import check_page
from .client import Answer, EngineClient, Request, Retry, json_request
from .secrets import find_key
from .session import Session

ENDPOINT = "https://api.webmaster.yandex.net/v4"
VARIABLE = "URLSET_YANDEX_TOKEN"
USER_VARIABLE = "URLSET_YANDEX_USER"


def host_id(site: str) -> str:
    """``https:example.com:443``: scheme, host and port, also the default port."""
    parts = check_page(site, what="site")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}:{parts.host}:{port}"


class Yandex:
    """One site of one user."""

    def __init__(
        self, client: EngineClient, base: str, token: str, user: str | None, host: str
    ) -> None:
        self._client, self._base, self._host = client, base, host
        self._headers = {"Authorization": f"OAuth {token}"}
        self.user = user

    def user_request(self) -> Request:
        """The request for the user of the token."""
        return Request("GET", f"{self._base}/user", self._headers)

    def add(self, sitemap: str) -> Request:
        user = self.user or "{uid}"
        url = f"{self._base}/user/{user}/hosts/{self._host}/user-added-sitemaps"
        return json_request("POST", url, {"url": sitemap}, self._headers)

    def find_user(self) -> None:
        """Requests the number of the user."""
        answer = self._client.call(self.user_request(), self.judge)
        user = answer.json().get("user_id")
        if not isinstance(user, int | str) or not re.fullmatch(r"[0-9]{1,20}", str(user)):
            raise self._client.refusal(answer, "an answer without the number of the user", "answer")
        self.user = str(user)

    def judge(self, answer: Answer) -> Retry | None:
        if answer.status in (200, 201):
            return None
        if answer.status == 409 and b"SITEMAP_ALREADY_ADDED" in answer.body:
            return None
        if answer.status == 401 or b"INVALID_OAUTH_TOKEN" in answer.body:
            raise self._client.refusal(answer, "the token was refused", "key_refused")
        if answer.status in (403, 404):
            raise self._client.refusal(
                answer,
                f"the site {self._host} is not verified for this user: check the site in"
                " Yandex Webmaster, or give --property yandex=HOST_ID",
                "property",
            )
        raise self._client.refusal(answer, "refused", "refused")


def prepare(session: Session) -> Callable[[], None]:
    """Checks the token and the site; returns the function that sends."""
    target, options = session.target, session.options
    indexes = target.need_indexes()
    base = session.endpoint("yandex", ENDPOINT)
    host = options.properties.get("yandex") or host_id(target.site)
    if not re.fullmatch(r"https?:[A-Za-z0-9_.-]+:[0-9]{1,5}", host):
        raise ConfigError(
            f"--property yandex={host[:100]!r} does not have the form https:example.com:443",
            code="yandex.bad_property",
        )
    user = options.yandex_user or os.environ.get(USER_VARIABLE, "").strip() or None
    if user is not None and not re.fullmatch(r"[0-9]{1,20}", user):
        raise ConfigError(f"the Yandex user {user[:40]!r} is not a number", code="yandex.bad_user")
    token = find_key(
        session.keyring,
        engine="yandex",
        variable=VARIABLE,
        file=session.key_file("yandex"),
        form=r"[A-Za-z0-9._~+/=-]{8,4096}",
        form_in_words="8 to 4,096 letters, digits or any of - . _ ~ + / =",
        where_to_get="an OAuth token with access to Yandex Webmaster",
    )
    client = session.open(session.client("yandex", base))
    yandex = Yandex(client, base, token, user, host)

    def submit(index: str) -> str:
        answer = client.call(yandex.add(index), yandex.judge)
        return "was added before" if answer.status == 409 else ""

    def send() -> None:
        if yandex.user is None:
            if session.dry_run:
                session.show(yandex.user_request().text())
            else:
                yandex.find_user()
        session.submit_each("yandex", indexes, yandex.add, submit)

    return send

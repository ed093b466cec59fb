"""Google: the sitemaps of Search Console (Webmasters API v3), with a service account.

google-auth signs with the key. The request for the token is made here, so that it has the same
limits, retries and masked messages as all others.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from ..errors import AnnounceError, ConfigError
from ..wording import count
from .address import MAX_URL, is_loopback, split
from .client import Answer, Cancelled, EngineClient, Request, Retry
from .report import EngineOutcome, SitemapStatus
from .secrets import read_key_file
from .session import Session

ENDPOINT = "https://searchconsole.googleapis.com"
VARIABLES = ("URLSET_GOOGLE_KEY_FILE", "GOOGLE_APPLICATION_CREDENTIALS")
SCOPE_WRITE = "https://www.googleapis.com/auth/webmasters"
SCOPE_READ = "https://www.googleapis.com/auth/webmasters.readonly"

#: where a service account may request its token; its file can name no other URL
TOKEN_URIS = (
    "https://oauth2.googleapis.com/token",
    "https://accounts.google.com/o/oauth2/token",
    "https://www.googleapis.com/oauth2/v4/token",
)
#: quota of the API: requests per second and per minute
PER_SECOND, PER_MINUTE = 20, 200
#: seconds by which a clock may be wrong before Google refuses its signatures
MAX_CLOCK_ERROR = 300.0
#: seconds for which a token is valid
_TOKEN_LIFETIME = 3_600
#: characters of the shortest line of the key in PEM that is masked on its own
_MIN_KEY_LINE = 32
#: RFC 6749, 5.2: error codes; messages quote nothing else of the answer
_OAUTH = frozenset(
    ["invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
     "unsupported_grant_type", "invalid_scope", "access_denied"]
)  # fmt: skip


class Pace:
    """Keeps the quota: at most ``count`` requests in any ``seconds``, for each pair."""

    def __init__(
        self, *limits: tuple[int, float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = [(count, seconds, deque[float]()) for count, seconds in limits]
        self._clock = clock

    def delay(self) -> float:
        """Seconds to wait before the next request, which counts as sent."""
        now = due = self._clock()
        for limit, seconds, sent in self._limits:
            if len(sent) == limit:
                due = max(due, sent.popleft() + seconds)
        for _limit, _seconds, sent in self._limits:
            sent.append(due)
        return due - now


class Account:
    """A service account: its key signs requests for tokens, which only Google receives."""

    def __init__(self, path: Path, session: Session, *, loopback: bool) -> None:
        def wrong(why: str) -> ConfigError:
            return ConfigError(f"the google key file {path} {why}", code="google.key_file")

        text = read_key_file(path, engine="google")
        info: Any = None
        with contextlib.suppress(ValueError, RecursionError):  # its message contains the content
            info = json.loads(text)
        if not isinstance(info, dict) or info.get("type") != "service_account":
            raise wrong("is not the JSON key of a service account")
        fields = ("client_email", "private_key", "token_uri")
        if not all(isinstance(info.get(name), str) and info[name] for name in fields):
            raise wrong(f"lacks one of {', '.join(fields)}")
        session.keyring.add(info["private_key"])
        for line in info["private_key"].splitlines():
            if len(line) >= _MIN_KEY_LINE and not line.startswith("-----"):
                session.keyring.add(line)
        self.token_uri: str = info["token_uri"]
        if self.token_uri not in TOKEN_URIS and not (loopback and is_loopback(self.token_uri)):
            raise wrong(
                "names a token_uri that is not Google's: nothing signed with the key is sent there"
            )
        try:
            from google.auth import crypt, jwt
        except ImportError:
            raise ConfigError(
                "--to google needs google-auth: pip install 'urlset[google]'",
                code="google.not_installed",
            ) from None
        self._encode: Callable[..., bytes] = jwt.encode
        self._email: str = info["client_email"]
        self._signer: Any = None
        with contextlib.suppress(ValueError, TypeError):  # its message can contain the key
            signer: Any = crypt.RSASigner  # google-auth has no types
            self._signer = signer.from_service_account_info(info)
        if self._signer is None:
            raise wrong("contains a private_key that is not an RSA key in PEM")
        self._session = session

    def token(self, scope: str) -> str:
        """An access token, valid for an hour.

        Raises:
            AnnounceError: ``google.token_refused``, ``google.clock``, those of ``EngineClient``.
        """
        now = int(time.time())
        claims = {
            "iss": self._email, "scope": scope, "aud": self.token_uri, "iat": now,
            "exp": now + _TOKEN_LIFETIME,
        }  # fmt: skip
        keyring = self._session.keyring
        assertion = keyring.add(self._encode(self._signer, claims).decode("ascii"))
        grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        form = urlencode({"grant_type": grant, "assertion": assertion}).encode("ascii")
        with self._session.client("google", self.token_uri) as client:
            answer = client.call(
                Request(
                    "POST",
                    self.token_uri,
                    {"Content-Type": "application/x-www-form-urlencoded"},
                    form,
                ),
                self._judge,
            )
        value = answer.json().get("access_token")
        if not isinstance(value, str) or not re.fullmatch(r"[!-~]{8,8192}", value):
            raise AnnounceError(
                "the answer to the request for a token contains none", code="google.token_refused"
            )
        return keyring.add(value)

    def _judge(self, answer: Answer) -> Retry | None:
        if answer.status == 200:
            return None
        off = answer.clock or 0.0
        if abs(off) > MAX_CLOCK_ERROR:
            raise AnnounceError(
                f"no token: this machine's clock is {abs(off) / 60:,.0f} minutes"
                f" {'behind' if off > 0 else 'ahead of'} Google's: set the clock",
                code="google.clock",
            )
        reason = answer.json().get("error")
        known = isinstance(reason, str) and reason in _OAUTH
        raise AnnounceError(
            "no token for the service account:"
            f" {reason if known else f'HTTP {answer.status}'}; is the key still valid?",
            code="google.token_refused",
        )


class SearchConsole:
    """The sitemaps of one property."""

    def __init__(self, session: Session, client: EngineClient, base: str, site: str) -> None:
        self._session, self._client, self._site = session, client, site
        self._sitemaps = f"{base}/webmasters/v3/sites/{quote(site, safe='')}/sitemaps"
        self._pace = Pace((PER_SECOND, 1.0), (PER_MINUTE, 60.0))
        self.token = ""

    def request(self, method: str, feed: str | None) -> Request:
        """PUT submits a sitemap, GET returns its status or, without one, that of all."""
        url = self._sitemaps + (f"/{quote(feed, safe='')}" if feed is not None else "")
        return Request(method, url, {"Authorization": f"Bearer {self.token or '***'}"})

    def submit(self, feed: str) -> None:
        self._call("PUT", feed, (200, 204))

    def all(self) -> list[Mapping[str, Any]]:
        answer = self._call("GET", None, (200,))
        found = self._value(answer).get("sitemap", [])
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise AnnounceError("its list of sitemaps is not a list", code="google.answer")
        return found

    def get(self, feed: str) -> Mapping[str, Any] | None:
        """``None`` if it was never submitted."""
        answer = self._call("GET", feed, (200, 404))
        return None if answer.status == 404 else self._value(answer)

    def _value(self, answer: Answer) -> Mapping[str, Any]:
        value = answer.json()
        if answer.cut or (not value and answer.body.strip() != b"{}"):
            raise AnnounceError(
                "an answer that is not a JSON object, or is too large",
                code="google.answer",
            )
        return value

    def _call(self, method: str, feed: str | None, good: tuple[int, ...]) -> Answer:
        if self._session.stop.wait(self._pace.delay()):
            raise Cancelled

        def judge(answer: Answer) -> Retry | None:
            if answer.status in good:
                return None
            if answer.status == 401:
                raise self._client.refusal(answer, "the token was refused", "token_refused")
            if answer.status in (403, 404):
                other = "a domain property sc-domain:HOST"
                if self._site.startswith("sc-domain:"):
                    other = "a URL-prefix property https://HOST/"
                raise self._client.refusal(
                    answer,
                    f"the property {self._site} does not belong to this account: add the service"
                    f" account to it as an owner, or give --property: {other} is another property",
                    "property",
                )
            raise self._client.refusal(answer, "refused", "refused")

        return self._client.call(self.request(method, feed), judge)


def read_property(session: Session) -> str:
    """The property: the option, or the URL-prefix property of the site.

    Raises:
        ConfigError: ``google.bad_property``.
    """
    given = session.options.properties.get("google")
    if given is None:
        return session.target.site
    if not re.fullmatch(r"sc-domain:[a-z0-9-]+(\.[a-z0-9-]+)+", given) and split(given) is None:
        raise ConfigError(
            f"--property google={given[:100]!r} is neither sc-domain:HOST nor a URL such as"
            " https://www.example.com/",
            code="google.bad_property",
        )
    return given


def prepare(session: Session) -> Callable[[], None]:
    """Checks key file and property; returns the function that submits, or reads the status."""
    indexes = session.target.need_indexes()
    site = read_property(session)
    base = session.endpoint("google", ENDPOINT)
    path = session.key_file("google") or _from_environment()
    account = Account(path, session, loopback=is_loopback(base))
    client = session.open(session.client("google", base))
    console = SearchConsole(session, client, base, site)
    if session.options.status:
        if session.dry_run:
            return lambda: session.show(console.request("GET", None).text())
        return lambda: _status(session, console, account, indexes)
    return lambda: _submit(session, console, account, indexes)


def _from_environment() -> Path:
    for name in VARIABLES:
        if value := os.environ.get(name, "").strip():
            return Path(value)
    raise ConfigError(
        f"no google key: set {' or '.join(VARIABLES)} to the JSON key file of a service account,"
        " or give --key-file google=PATH",
        code="google.no_key",
    )


def _submit(
    session: Session, console: SearchConsole, account: Account, indexes: tuple[str, ...]
) -> None:
    if not session.dry_run:
        console.token = account.token(SCOPE_WRITE)
    session.submit_each(
        "google", indexes, lambda index: console.request("PUT", index), console.submit
    )


def _status(
    session: Session, console: SearchConsole, account: Account, indexes: tuple[str, ...]
) -> None:
    console.token = account.token(SCOPE_READ)
    known = {path: item for item in console.all() if isinstance(path := item.get("path"), str)}
    for index in indexes:
        item = known.pop(index, None) or console.get(index)
        status = read_status(item or {}, index, ours=True, known=item is not None)
        session.report.statuses.append(status)
        bad = "never submitted" if item is None else count(status.errors, "error")
        good = item is not None and status.errors == 0
        session.add(
            EngineOutcome(
                "google", index, "accepted" if good else "refused", 1, int(good),
                detail="" if good else bad, code=None if good else "google.status",
            )
        )  # fmt: skip
    for path, item in known.items():
        session.report.statuses.append(read_status(item, path, ours=False))


def read_status(
    item: Mapping[str, Any], path: str, *, ours: bool, known: bool = True
) -> SitemapStatus:
    """The status in an item; numbers are strings, and an invalid value counts as absent."""
    contents = item.get("contents")
    submitted: dict[str, int] = {}
    for part in contents if isinstance(contents, list) else []:
        if isinstance(part, dict):
            kind = _kind(part.get("type")) or "unknown"
            submitted[kind] = submitted.get(kind, 0) + _int(part.get("submitted"))
    return SitemapStatus(
        path=path[: MAX_URL + 1],
        ours=ours,
        known=known,
        type=_kind(item.get("type")),
        pending=item.get("isPending") is True,
        last_submitted=_time(item.get("lastSubmitted")),
        last_downloaded=_time(item.get("lastDownloaded")),
        warnings=_int(item.get("warnings")),
        errors=_int(item.get("errors")),
        submitted=submitted,
    )


def _int(value: object) -> int:
    text = str(value) if isinstance(value, str | int) else ""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0


def _kind(value: object) -> str | None:
    """``SITEMAP`` and ``sitemap``, ``RSS_FEED`` and ``rssFeed`` are the same."""
    return value.replace("_", "").lower()[:40] if isinstance(value, str) else None


def _time(value: object) -> str | None:
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError: the first and the last day of datetime
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

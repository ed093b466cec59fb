"""Bing's Webmaster API, which feeds Yahoo too (PROTOCOL section 6).

The key stands in the query of every request: no address of this module may be shown unmasked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from urllib.parse import quote, urlsplit

from ..errors import AnnounceError
from ..signals import undisturbed
from ..wording import count
from .address import check_page, host_of, origin_of
from .http import JSON, Again, Answer, Http, Request, Stopped, retry_after
from .journal import Journal
from .report import Outcome
from .secrets import find_key
from .session import Session
from .spool import Spool, fill_spool

ENDPOINT = "https://ssl.bing.com/webmaster/api.svc/json"
VARIABLE = "URLSET_BING_KEY"

#: URLs of one SubmitUrlBatch
BATCH = 500

CODES = (
    "None", "InternalError", "UnknownError", "InvalidApiKey", "ThrottleUser", "ThrottleHost",
    "UserBlocked", "InvalidUrl", "InvalidParameter", "TooManySites", "UserNotFound", "NotFound",
    "AlreadyExists", "NotAllowed", "NotAuthorized", "UnexpectedState", "Deprecated",
)  # fmt: skip
_THROTTLED = (4, 5)
_EXPLAINED = {
    3: "the API key is wrong",
    7: "it calls the address invalid for this site",
    13: "not allowed for this site",
    14: "the site is not this account's: add and verify it, or give --property bing=URL exactly"
    " as Bing lists it",
}


class Bing:
    """The three methods that are used."""

    def __init__(self, http: Http, base: str, key: str, site: str) -> None:
        self._http, self._base, self._key, self._site = http, base, key, site

    def submit_feed(self, feed: str) -> Request:
        return self._post("SubmitFeed", {"siteUrl": self._site, "feedUrl": feed})

    def submit_urls(self, urls: list[str]) -> Request:
        return self._post("SubmitUrlBatch", {"siteUrl": self._site, "urlList": urls})

    def quota(self) -> Request:
        site, key = quote(self._site, safe=""), quote(self._key, safe="")
        return Request("GET", f"{self._base}/GetUrlSubmissionQuota?siteUrl={site}&apikey={key}")

    def call(self, request: Request) -> Any:
        """The value of ``d`` in the answer."""
        answer = self._http.call(request, self._judge)
        try:
            value = json.loads(answer.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict) or "d" not in value:
            raise self._http.refuse(answer, "an answer without the d of a success", "answer")
        return value["d"]

    def _post(self, method: str, value: dict[str, Any]) -> Request:
        body = json.dumps(value, separators=(",", ":")).encode("ascii")
        url = f"{self._base}/{method}?apikey={quote(self._key, safe='')}"
        return Request("POST", url, {"Content-Type": JSON}, body)

    def _judge(self, answer: Answer) -> Again | None:
        try:
            value = json.loads(answer.body)
        except (ValueError, RecursionError):
            value = None
        code = value.get("ErrorCode") if isinstance(value, dict) else None
        if not isinstance(code, int) or not 0 <= code < len(CODES):
            code = 0
        if answer.status == 200 and code == 0:
            return None
        if code in _THROTTLED:
            asked = retry_after(answer)
            return Again(f"too many requests ({CODES[code]})", 60.0 if asked is None else asked)
        why = f"{_EXPLAINED.get(code, 'refused')} ({CODES[code]})" if code else "refused"
        name = "key_refused" if code == 3 else "property" if code == 14 else "refused"
        raise self._http.refuse(answer, why, name)


def prepare(session: Session) -> Callable[[], None]:
    """Check the key and read the feed; what is returned sends."""
    options, target = session.options, session.target
    indexes = target.need_indexes()
    base = session.endpoint("bing", ENDPOINT)
    given = options.properties.get("bing")
    site = origin_of(urlsplit(target.site)) if given is None else given
    host = host_of(check_page(site, what="--property bing"))
    key = find_key(
        session.keyring,
        engine="bing",
        variables=[VARIABLE],
        file=session.key_file("bing"),
        form=r"[A-Za-z0-9._~-]{8,512}",
        form_in_words="8 to 512 letters, digits or any of - . _ ~",
        where_to_get="Bing Webmaster Tools, settings, API access",
    )
    http = session.open(session.http("bing", base))
    bing = Bing(http, base, key, site)
    urls: Callable[[], None] | None = None
    if options.changes or options.urls:
        spool = session.open(Spool())
        fill_spool(
            session, spool, "bing",
            allowed=lambda found, _path: found == host, why=f"of another host than {host}",
        )  # fmt: skip
        journal = session.open(
            Journal(target.state, "bing", base, spool.digest, read_only=session.dry_run)
        )

        def urls() -> None:
            _submit_urls(session, bing, spool, journal, host)

    def submit(index: str) -> str:
        bing.call(bing.submit_feed(index))
        return ""

    def send() -> None:
        if not session.submit_each("bing", indexes, bing.submit_feed, submit):
            return
        if urls is not None:
            urls()

    return send


def _quota(value: Any) -> int:
    if isinstance(value, dict):
        found = [value.get("DailyQuota"), value.get("MonthlyQuota")]
        numbers = [n for n in found if isinstance(n, int) and not isinstance(n, bool)]
        if len(numbers) == 2:
            return max(0, min(numbers))
    raise AnnounceError("it did not tell the quota of URLs", code="bing.answer")


def _submit_urls(session: Session, bing: Bing, spool: Spool, journal: Journal, host: str) -> None:
    """Send as many URLs as the quota allows; the next run of the same feed sends the others."""
    fresh: Iterator[str] = (url for _host, url in spool.rows() if not journal.accepted(url))
    if session.dry_run:
        session.show(bing.quota().text())
        requests = 0
        while batch := list(islice(fresh, BATCH)):
            session.show(bing.submit_urls(batch).text())
            requests += 1
        detail = f"{count(requests, 'request')}, if the quota allows"
        session.add(Outcome("bing", host, "planned", spool.count, detail=detail))
        return
    sent = requests = 0
    error: AnnounceError | None = None
    quota = 0
    try:
        quota = _quota(bing.call(bing.quota()))
        while batch := list(islice(fresh, min(BATCH, quota - sent))):
            bing.call(bing.submit_urls(batch))
            with undisturbed():  # or the journal and the report would not agree
                journal.record(batch)
                sent += len(batch)
                requests += 1
    except AnnounceError as found:
        error = found
    except (KeyboardInterrupt, Stopped):
        error = AnnounceError(
            "interrupted; the same command continues where it stopped", code="bing.interrupted"
        )
        raise
    finally:
        for _rest in fresh:
            pass  # counts what was accepted before
        accepted = sent + journal.skipped
        left = spool.count - accepted
        if left == 0:
            journal.finish()
        elif error is None:
            error = AnnounceError(
                f"the quota allows {count(quota, 'URL')} now; the same command sends the other"
                f" {left:,} when there is more",
                code="bing.quota",
            )
        session.add(
            Outcome(
                "bing", host, "accepted" if left == 0 else "partly" if accepted else "refused",
                spool.count, accepted, journal.skipped, requests,
                str(error) if error else count(requests, "request"),
                error.code if error else None,
            )
        )  # fmt: skip

"""Bing's Webmaster API; Yahoo uses Bing's index.

The query of every request contains the key: no URL of this module may be shown unmasked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from urllib.parse import quote

from ..errors import AnnounceError
from ..signals import undisturbed
from ..transport.retry import retry_after
from ..wording import count
from .address import check_page
from .client import Answer, Cancelled, EngineClient, Request, Retry, json_request
from .journal import AnnounceJournal
from .report import EngineOutcome
from .secrets import find_key
from .session import Session, interrupted
from .spool import Spool, open_spool

ENDPOINT = "https://ssl.bing.com/webmaster/api.svc/json"
VARIABLE = "URLSET_BING_KEY"

#: URLs of one SubmitUrlBatch
BATCH = 500
#: seconds to wait when throttled without Retry-After
THROTTLED = 60.0

#: the names of ErrorCode, by number
CODES = (
    "None", "InternalError", "UnknownError", "InvalidApiKey", "ThrottleUser", "ThrottleHost",
    "UserBlocked", "InvalidUrl", "InvalidParameter", "TooManySites", "UserNotFound", "NotFound",
    "AlreadyExists", "NotAllowed", "NotAuthorized", "UnexpectedState", "Deprecated",
)  # fmt: skip
_INVALID_KEY, _THROTTLED, _NOT_AUTHORIZED = 3, (4, 5), 14
_EXPLAINED = {
    _INVALID_KEY: "the API key is wrong",
    7: "the URL is invalid for this site",
    13: "not allowed for this site",
    _NOT_AUTHORIZED: "the site does not belong to this account: add and verify it, or give"
    " --property bing=URL exactly as Bing lists it",
}


class Bing:
    """The three methods that are used."""

    def __init__(self, client: EngineClient, base: str, key: str, site: str) -> None:
        self._client, self._base, self._site = client, base, site
        self._key = quote(key, safe="")

    def submit_feed(self, feed: str) -> Request:
        return self._post("SubmitFeed", {"siteUrl": self._site, "feedUrl": feed})

    def submit_urls(self, urls: list[str]) -> Request:
        return self._post("SubmitUrlBatch", {"siteUrl": self._site, "urlList": urls})

    def quota(self) -> Request:
        query = f"siteUrl={quote(self._site, safe='')}&apikey={self._key}"
        return Request("GET", f"{self._base}/GetUrlSubmissionQuota?{query}")

    def call(self, request: Request) -> Any:
        """The value of ``d`` in the answer."""
        answer = self._client.call(request, self._judge)
        value = answer.json()
        if "d" not in value:
            raise self._client.refusal(answer, "an answer without the d of a success", "answer")
        return value["d"]

    def _post(self, method: str, value: dict[str, Any]) -> Request:
        return json_request("POST", f"{self._base}/{method}?apikey={self._key}", value, {})

    def _judge(self, answer: Answer) -> Retry | None:
        code = answer.json().get("ErrorCode")
        if not isinstance(code, int) or not 0 <= code < len(CODES):
            code = 0
        if answer.status == 200 and code == 0:
            return None
        if code in _THROTTLED:
            wait = retry_after(answer.headers, THROTTLED)
            return Retry(f"too many requests ({CODES[code]})", wait)
        why = f"{_EXPLAINED.get(code, 'refused')} ({CODES[code]})" if code else "refused"
        names = {_INVALID_KEY: "key_refused", _NOT_AUTHORIZED: "property"}
        raise self._client.refusal(answer, why, names.get(code, "refused"))


def prepare(session: Session) -> Callable[[], None]:
    """Checks the key and reads the URLs; returns the function that sends."""
    options, target = session.options, session.target
    indexes = target.need_indexes()
    base = session.endpoint("bing", ENDPOINT)
    given = options.properties.get("bing")
    site = check_page(target.site, what="site").origin if given is None else given
    host = check_page(site, what="--property bing").authority
    key = find_key(
        session.keyring,
        engine="bing",
        variable=VARIABLE,
        file=session.key_file("bing"),
        form=r"[A-Za-z0-9._~-]{8,512}",
        form_in_words="8 to 512 letters, digits or any of - . _ ~",
        where_to_get="Bing Webmaster Tools, settings, API access",
    )
    client = session.open(session.client("bing", base))
    bing = Bing(client, base, key, site)
    spool = journal = None
    if options.changes or options.urls:
        spool = open_spool(
            session, "bing",
            allowed=lambda found, _path: found == host, why=f"of another host than {host}",
        )  # fmt: skip
        journal = session.open(
            AnnounceJournal(target.state, "bing", base, spool.digest, read_only=session.dry_run)
        )

    def submit(index: str) -> None:
        bing.call(bing.submit_feed(index))

    def send() -> None:
        submitted = session.submit_each("bing", indexes, bing.submit_feed, submit)
        if submitted and spool is not None and journal is not None:
            _submit_urls(session, bing, spool, journal, host)

    return send


def _quota(value: Any) -> int:
    if isinstance(value, dict):
        found = [value.get("DailyQuota"), value.get("MonthlyQuota")]
        numbers = [n for n in found if isinstance(n, int) and not isinstance(n, bool)]
        if len(numbers) == 2:
            return max(0, min(numbers))
    raise AnnounceError("an answer without the quota of URLs", code="bing.answer")


def _submit_urls(
    session: Session, bing: Bing, spool: Spool, journal: AnnounceJournal, host: str
) -> None:
    """Sends as many URLs as the quota allows; the next run of the same list sends the others."""
    fresh: Iterator[str] = (url for _host, url in spool.rows() if not journal.accepted(url))
    if session.dry_run:
        session.show(bing.quota().text())
        requests = 0
        while batch := list(islice(fresh, BATCH)):
            session.show(bing.submit_urls(batch).text())
            requests += 1
        detail = f"{count(requests, 'request')}, if the quota allows"
        session.add(EngineOutcome("bing", host, "planned", spool.count, detail=detail))
        return
    sent = requests = 0
    error: AnnounceError | None = None
    quota = 0
    try:
        quota = _quota(bing.call(bing.quota()))
        while batch := list(islice(fresh, min(BATCH, quota - sent))):
            bing.call(bing.submit_urls(batch))
            with undisturbed():  # so that the journal and the report agree
                journal.record(batch)
                sent += len(batch)
                requests += 1
    except AnnounceError as found:
        error = found
    except (KeyboardInterrupt, Cancelled):
        error = interrupted("bing")
        raise
    finally:
        for _rest in fresh:
            pass  # the journal counts the URLs that were accepted before
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
            EngineOutcome(
                "bing", host, "accepted" if left == 0 else "partly" if accepted else "refused",
                spool.count, accepted, journal.skipped, requests,
                str(error) if error else count(requests, "request"),
                error.code if error else None,
            )
        )  # fmt: skip

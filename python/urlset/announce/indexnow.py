"""IndexNow: URLs that were added, changed or removed (PROTOCOL section 4)."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ..build.threads import Pool
from ..errors import AnnounceError, ConfigError, PublishError
from ..signals import undisturbed
from ..wording import count
from .address import check_page, host_of
from .http import JSON, Again, Answer, Http, Request, Stopped, retry_after
from .journal import Journal
from .options import AnnounceOptions
from .report import Outcome, Result
from .secrets import find_key
from .session import Session
from .spool import Spool, fill_spool
from .target import Target

ENDPOINT = "https://api.indexnow.org/indexnow"
VARIABLE = "URLSET_INDEXNOW_KEY"
KEY_FILE = "indexnow.key"

#: URLs of one request
BATCH = 10_000
#: requests under way at a time
WORKERS = 4
#: seconds before the first retry while a fresh key is still being checked; the backoff grows past
FRESH_KEY = 5.0
#: without knowing how many URLs are live, at most this many are sent without ``all``
UNKNOWN_LIVE = BATCH
#: hosts that have a line of their own in the report
LINES = 50


@dataclass(slots=True)
class _Tally:
    """What became of the URLs of one host."""

    host: str
    total: int = 0
    accepted: int = 0
    skipped: int = 0
    requests: int = 0
    error: AnnounceError | None = field(default=None)

    def outcome(self, dry_run: bool) -> Outcome:
        detail = count(self.requests, "request")
        if self.skipped:
            before = f"{self.skipped:,} accepted before and not sent again"
            detail = f"{detail}, {before}" if self.requests else before
        if dry_run:
            return Outcome(
                "indexnow", self.host, "planned", self.total, self.skipped, self.skipped,
                detail=detail,
            )  # fmt: skip
        code = None
        result: Result
        if self.error is not None:
            detail, code = str(self.error), self.error.code
        if self.accepted == self.total:
            result = "accepted"
        elif code in ("indexnow.throttled", "indexnow.unanswered", "indexnow.redirect"):
            result = "failed"
        else:
            result = "refused"
        if self.accepted != self.total and self.accepted:
            result = "partly"
        return Outcome(
            "indexnow",
            self.host,
            result,
            self.total,
            self.accepted,
            self.skipped,
            self.requests,
            detail,
            code,
        )


def body(host: str, key: str, location: str, urls: list[str]) -> bytes:
    """The body of a POST, as the protocol writes it."""
    value = {"host": host, "key": key, "keyLocation": location, "urlList": urls}
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def judge(http: Http, answer: Answer) -> Again | None:
    """What the answer to a POST means."""
    if answer.status in (200, 202):
        return None
    if answer.status == 403:
        if b"SiteVerificationNotCompleted" in answer.body:
            asked = retry_after(answer)
            return Again(
                "the key is new and still being checked (HTTP 403)",
                FRESH_KEY if asked is None else asked,
            )
        raise http.refuse(
            answer,
            "the key was refused: its file was not found on the site, or holds another key",
            "key_refused",
        )
    if answer.status == 400:
        raise http.refuse(answer, "the request was called malformed", "bad_request")
    if answer.status == 422:
        raise http.refuse(
            answer,
            "URLs that are not of the host or not under the key's folder, or a malformed key",
            "not_of_host",
        )
    raise http.refuse(answer, "refused", "refused")


class _Sender:
    """Sends batches in parallel and settles them one by one, in the thread of the caller."""

    def __init__(
        self, session: Session, http: Http, journal: Journal, spool: Spool, key: str
    ) -> None:
        self._session, self._http, self._journal, self._key = session, http, journal, key
        self._spool = spool
        self._tallies: dict[str, _Tally] = {}
        self._failed: AnnounceError | None = None

    def location(self, host: str) -> str:
        options, target = self._session.options, self._session.target
        if options.key_location is not None:
            return options.key_location
        scheme = urlsplit(target.site).scheme if host == target.host else "https"
        return f"{scheme}://{host}/{self._key}.txt"

    def tallies(self) -> list[_Tally]:
        return list(self._tallies.values())

    def run(self) -> None:
        """Send all; what an interrupt leaves is in the journal and in the tallies."""
        under_way: dict[Future[int], tuple[str, list[str]]] = {}
        with Pool(WORKERS, thread_name_prefix="indexnow") as pool:
            try:
                for host, urls in self._batches():
                    while len(under_way) >= WORKERS:
                        self._settle(under_way, wait(under_way, return_when=FIRST_COMPLETED).done)
                    tally = self._tallies[host]
                    if tally.error is None and self._failed is None:
                        with undisturbed():  # or what is sent is not known to be under way
                            under_way[pool.submit(self._send, host, urls)] = (host, urls)
                while under_way:
                    self._settle(under_way, wait(under_way, return_when=FIRST_COMPLETED).done)
            except BaseException:
                # an interrupt: what is under way gets a moment, so that the journal is true
                self._session.stop.set()
                self._settle(under_way, wait(under_way).done)
                raise
            finally:
                self._close()

    def _close(self) -> None:
        """Say why what was not sent was not."""
        reason = self._failed
        if self._session.stop.is_set():
            reason = AnnounceError(
                "interrupted; the same command continues where it stopped",
                code="indexnow.interrupted",
            )
            for host, count in self._spool.hosts():
                self._tallies.setdefault(host, _Tally(host)).total = count
        for tally in self._tallies.values():
            if tally.error is None and tally.accepted < tally.total:
                tally.error = reason

    def _batches(self) -> Iterator[tuple[str, list[str]]]:
        host, urls = "", list[str]()
        tally = _Tally(host)
        for host, url in self._spool.rows():
            if host != tally.host:
                if urls:
                    yield tally.host, urls
                    urls = []
                tally = self._tallies[host] = _Tally(host)
            tally.total += 1
            if self._journal.accepted(url):
                tally.accepted += 1
                tally.skipped += 1
                continue
            urls.append(url)
            if len(urls) == BATCH:
                yield host, urls
                urls = []
        if urls:
            yield host, urls

    def request(self, host: str, urls: list[str]) -> Request:
        content = body(host, self._key, self.location(host), urls)
        return Request("POST", self._http.base, {"Content-Type": JSON}, content)

    def _send(self, host: str, urls: list[str]) -> int:
        http = self._http
        answer = http.call(self.request(host, urls), lambda found: judge(http, found))
        return answer.status

    def _settle(
        self, under_way: dict[Future[int], tuple[str, list[str]]], done: set[Future[int]]
    ) -> None:
        for future in done:
            with undisturbed():  # or what was accepted would not be in the journal
                self._judge(future, *under_way.pop(future))

    def _judge(self, future: Future[int], host: str, urls: list[str]) -> None:
        tally = self._tallies[host]
        tally.requests += 1
        try:
            future.result()
        except Stopped:
            return
        except AnnounceError as error:
            tally.error = tally.error or error
            if error.code in ("indexnow.throttled", "indexnow.unanswered", "indexnow.redirect"):
                self._failed = self._failed or error
            return
        self._journal.record(urls)
        tally.accepted += len(urls)
        self._session.notify(f"indexnow: {count(tally.accepted, 'URL')} of {host} accepted")

    def plan(self) -> None:
        """A dry run: show the requests."""
        for host, urls in self._batches():
            self._session.show(self.request(host, urls).text())
            self._tallies[host].requests += 1


def _guard(session: Session, spool: Spool) -> None:
    """Refuse what looks like the whole site (PROTOCOL section 4, etiquette)."""
    live = session.target.urls
    if session.options.all:
        return
    if live is None:
        if spool.live > UNKNOWN_LIVE:
            raise AnnounceError(
                f"{count(spool.live, 'URL')}, and how many are live is not known: if this is not"
                " the whole site, or it has just moved, give --all",
                code="indexnow.full_set",
            )
        if spool.live:
            session.warn(
                "indexnow: how many URLs are live is not known, so it was not checked whether"
                " this is the whole site"
            )
    elif spool.live * 2 > live:
        raise AnnounceError(
            f"{spool.live:,} of {count(live, 'live URL')} is more than half: IndexNow is for what"
            " changed, and a first build is found through its sitemap; after a move give --all",
            code="indexnow.full_set",
        )


def prepare(session: Session) -> Callable[[], None]:
    """Check all that can be checked here; what is returned sends."""
    options, target = session.options, session.target
    endpoint = session.endpoint("indexnow", ENDPOINT)
    key = _find(session, session.key_file("indexnow") or _own_key_file(session))
    spool = session.open(Spool())
    allowed, why = _scope(options, target)
    fill_spool(session, spool, "indexnow", allowed=allowed, why=why)
    _guard(session, spool)
    journal = session.open(
        Journal(target.state, "indexnow", endpoint, spool.digest, read_only=session.dry_run)
    )
    http = session.open(session.http("indexnow", endpoint))
    sender = _Sender(session, http, journal, spool, key)

    def send() -> None:
        if session.dry_run:
            sender.plan()
        else:
            try:
                sender.run()
            except BaseException:
                _report(session, sender.tallies())
                raise
            if all(tally.accepted == tally.total for tally in sender.tallies()):
                journal.finish()
        _report(session, sender.tallies())
        if spool.count == 0 and not spool.illegal.count and not spool.foreign.count:
            session.add(
                Outcome(
                    "indexnow", target.host, "planned" if session.dry_run else "accepted", 0,
                    detail="no changed URLs: nothing to send",
                )
            )  # fmt: skip

    return send


def _report(session: Session, tallies: list[_Tally]) -> None:
    """A line for each host; of very many hosts the bad ones first, the rest in one line."""
    found = [tally.outcome(session.dry_run) for tally in tallies]
    found.sort(key=lambda o: o.result in ("accepted", "planned"))
    for outcome in found[:LINES]:
        session.add(outcome)
    if rest := found[LINES:]:
        worst = rest[0]
        session.add(
            Outcome(
                "indexnow",
                f"{len(rest):,} more hosts",
                worst.result,
                sum(o.total for o in rest),
                sum(o.accepted for o in rest),
                sum(o.skipped for o in rest),
                sum(o.requests for o in rest),
                worst.detail if worst.code else "",
                worst.code,
            )
        )


def _scope(options: AnnounceOptions, target: Target) -> tuple[Callable[[str, str], bool], str]:
    """For which URLs the key may be used, and what to say of the others (section 4).

    Raises:
        ConfigError: ``indexnow.unknown_site``: nobody but the data tells the host.
    """
    own = target.host
    if options.key_location is None:
        if target.derived and options.allowed_hosts == frozenset():
            raise ConfigError(
                f"only addresses inside of the index tell that the site is {own}: give"
                " --sitemap-url, for engines will fetch the key from that host",
                code="indexnow.unknown_site",
            )
        return (
            lambda host, _path: options.allows(host, own),
            f"of another host than {own}, and engines would fetch the key from it;"
            " --hosts any, or a list, allows that",
        )
    location = check_page(options.key_location, what="--key-location")
    mine, folder = host_of(location), location.path.rsplit("/", 1)[0] + "/"
    return (
        lambda host, path: host == mine and path.startswith(folder),
        f"not under {mine}{folder}, where the key of --key-location is valid",
    )


def _find(session: Session, file: Path | None) -> str:
    return find_key(
        session.keyring,
        engine="indexnow",
        variables=[VARIABLE],
        file=file,
        form=r"[A-Za-z0-9-]{8,128}",
        form_in_words="8 to 128 letters, digits or hyphens",
        where_to_get="--init-key makes one",
    )


def _own_key_file(session: Session) -> Path | None:
    """The key that ``init_key`` made, unless the environment names another."""
    path = session.target.state / KEY_FILE
    return path if not os.environ.get(VARIABLE, "").strip() and path.exists() else None


def init_key(session: Session) -> None:
    """Make a key, keep it in the state folder, and write the file that proves it to the site.

    A key that is there already is kept, and only a missing proof is written.

    Raises:
        ConfigError: those of a key file.
        PublishError: ``indexnow.key_unwritable``.
    """
    target = session.target
    secret = session.key_file("indexnow") or target.state / KEY_FILE
    folder = target.folder or Path()
    old = secret.exists()
    key = _find(session, secret) if old else session.keyring.add(secrets.token_hex(16))
    proof = folder / f"{key}.txt"
    detail = (
        f"{'this key was there already' if old else 'a new key'}; upload {proof}, named after the"
        f" key, so that it is served at {target.site}{proof.name}, then announce"
    )
    if session.dry_run:
        session.show(("" if old else f"write {secret} (mode 600)\n") + f"write {proof}\n")
        session.add(Outcome("indexnow", str(secret), "planned", detail=detail))
        return
    try:
        secret.parent.mkdir(parents=True, exist_ok=True)
        if not old:
            _write(secret, key + "\n", 0o600)
        with contextlib.suppress(FileExistsError):
            _write(proof, key, 0o666)
    except OSError as error:
        raise PublishError(
            f"the key cannot be written to {secret} and {folder}: {error.strerror}",
            code="indexnow.key_unwritable",
        ) from None
    session.add(Outcome("indexnow", str(secret), "accepted", 1, 1, detail=detail))


def _write(path: Path, text: str, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())

"""IndexNow: URLs that were added, changed or removed (indexnow.org)."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path

from .. import system
from ..errors import AnnounceError, ConfigError, PublishError
from ..pool import Pool
from ..signals import undisturbed
from ..transport.retry import retry_after
from ..wording import count
from .address import check_page
from .client import Answer, Cancelled, EngineClient, Request, Retry, json_request
from .journal import AnnounceJournal
from .options import AnnounceOptions
from .report import EngineOutcome, Result
from .secrets import find_key
from .session import Session, interrupted, is_undecided
from .spool import Spool, open_spool
from .target import Target

ENDPOINT = "https://api.indexnow.org/indexnow"
VARIABLE = "URLSET_INDEXNOW_KEY"
KEY_FILE = "indexnow.key"

#: URLs of one request
BATCH = 10_000
#: requests at the same time
WORKERS = 4
#: seconds before the first retry while the engine checks a new key; the backoff exceeds it later
NEW_KEY_WAIT = 5.0
#: URLs that are sent without ``all`` if the number of live URLs is unknown
MAX_UNKNOWN = BATCH
#: hosts with a separate line in the report
MAX_LINES = 50
#: bytes of a new key, and the modes of its file and of its public copy
_KEY_BYTES, _SECRET, _PUBLIC = 16, 0o600, 0o666


@dataclass(slots=True)
class _Tally:
    """The result for the URLs of one host."""

    host: str
    total: int = 0
    accepted: int = 0
    skipped: int = 0
    requests: int = 0
    error: AnnounceError | None = None

    def outcome(self, dry_run: bool) -> EngineOutcome:
        detail = count(self.requests, "request")
        if self.skipped:
            before = f"{self.skipped:,} accepted before and not sent again"
            detail = f"{detail}, {before}" if self.requests else before
        result: Result = "accepted"
        code = None
        requests = self.requests
        if dry_run:
            result, requests = "planned", 0
        elif self.error is not None:
            detail, code = str(self.error), self.error.code
        if not dry_run and self.accepted != self.total:
            result = "partly" if self.accepted else "refused"
            if self.error is not None and not self.accepted and is_undecided(self.error):
                result = "failed"
        return EngineOutcome(
            "indexnow", self.host, result, self.total, self.accepted, self.skipped, requests,
            detail, code,
        )  # fmt: skip


def judge(client: EngineClient, answer: Answer) -> Retry | None:
    """Interprets the response to a POST."""
    if answer.status in (200, 202):
        return None
    if answer.status == 403:
        if b"SiteVerificationNotCompleted" in answer.body:
            wait = retry_after(answer.headers, NEW_KEY_WAIT)
            return Retry("the key is new and still being checked (HTTP 403)", wait)
        raise client.refusal(
            answer,
            "the key was refused: the site has no file for it, or the file contains another key",
            "key_refused",
        )
    if answer.status == 400:
        raise client.refusal(answer, "refused as malformed", "bad_request")
    if answer.status == 422:
        raise client.refusal(
            answer,
            "URLs of another host or outside the folder of the key, or a malformed key",
            "not_of_host",
        )
    raise client.refusal(answer, "refused", "refused")


class _Sender:
    """Sends batches in parallel; the calling thread records their results one by one."""

    def __init__(
        self,
        session: Session,
        client: EngineClient,
        journal: AnnounceJournal,
        spool: Spool,
        key: str,
    ) -> None:
        self._session, self._client, self._journal, self._key = session, client, journal, key
        self._spool = spool
        self._tallies: dict[str, _Tally] = {}
        self._failed: AnnounceError | None = None

    def location(self, host: str) -> str:
        options, target = self._session.options, self._session.target
        if options.key_location is not None:
            return options.key_location
        scheme = target.site.partition(":")[0] if host == target.host else "https"
        return f"{scheme}://{host}/{self._key}.txt"

    def tallies(self) -> list[_Tally]:
        return list(self._tallies.values())

    def run(self) -> None:
        """Sends all; after an interrupt, journal and tallies are correct."""
        sent: dict[Future[None], tuple[str, list[str]]] = {}
        with Pool(WORKERS, thread_name_prefix="indexnow") as pool:
            try:
                for host, urls in self._batches():
                    while len(sent) >= WORKERS:
                        self._settle(sent, wait(sent, return_when=FIRST_COMPLETED).done)
                    tally = self._tallies[host]
                    if tally.error is None and self._failed is None:
                        with undisturbed():  # a request that is sent is always in the dict
                            sent[pool.submit(self._send, host, urls)] = (host, urls)
                while sent:
                    self._settle(sent, wait(sent, return_when=FIRST_COMPLETED).done)
            except BaseException:
                # after an interrupt, current requests get GRACE, so that the journal is correct
                self._session.stop.set()
                self._settle(sent, wait(sent).done)
                raise
            finally:
                self._close()

    def _close(self) -> None:
        """Sets the reason for which URLs were not sent."""
        reason = self._failed
        if self._session.stop.is_set():
            reason = interrupted("indexnow")
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
        value = {
            "host": host, "key": self._key, "keyLocation": self.location(host), "urlList": urls,
        }  # fmt: skip
        return json_request("POST", self._client.base, value, {})

    def _send(self, host: str, urls: list[str]) -> None:
        client = self._client
        client.call(self.request(host, urls), lambda answer: judge(client, answer))

    def _settle(
        self, sent: dict[Future[None], tuple[str, list[str]]], done: set[Future[None]]
    ) -> None:
        for future in done:
            with undisturbed():  # accepted URLs are always in the journal
                self._record(future, *sent.pop(future))

    def _record(self, future: Future[None], host: str, urls: list[str]) -> None:
        tally = self._tallies[host]
        tally.requests += 1
        try:
            future.result()
        except Cancelled:
            return
        except AnnounceError as error:
            tally.error = tally.error or error
            if is_undecided(error):
                self._failed = self._failed or error
            return
        self._journal.record(urls)
        tally.accepted += len(urls)
        self._session.notify(f"indexnow: {count(tally.accepted, 'URL')} of {host} accepted")

    def plan(self) -> None:
        """Shows the requests of a dry run."""
        for host, urls in self._batches():
            self._session.show(self.request(host, urls).text())
            self._tallies[host].requests += 1


def _guard(session: Session, spool: Spool) -> None:
    """Refuses a list that is probably the whole site: IndexNow is for changes."""
    live = session.target.urls
    if session.options.all:
        return
    if live is None:
        if spool.live > MAX_UNKNOWN:
            raise AnnounceError(
                f"{count(spool.live, 'URL')}, and the number of live URLs is unknown: if this is"
                " not the whole site, or it has just moved, give --all",
                code="indexnow.full_set",
            )
        if spool.live:
            session.warn(
                "indexnow: the number of live URLs is unknown, so nothing checked whether this is"
                " the whole site"
            )
    elif spool.live * 2 > live:
        raise AnnounceError(
            f"{spool.live:,} of {count(live, 'live URL')} is more than half: IndexNow is for what"
            " changed, and a first build is found through its sitemap; after a move give --all",
            code="indexnow.full_set",
        )


def prepare(session: Session) -> Callable[[], None]:
    """Makes all local checks; returns the function that sends."""
    options, target = session.options, session.target
    endpoint = session.endpoint("indexnow", ENDPOINT)
    key = _find(session, session.key_file("indexnow") or _own_key_file(session))
    allowed, why = _scope(options, target)
    spool = open_spool(session, "indexnow", allowed=allowed, why=why)
    _guard(session, spool)
    journal = session.open(
        AnnounceJournal(target.state, "indexnow", endpoint, spool.digest, read_only=session.dry_run)
    )
    client = session.open(session.client("indexnow", endpoint))
    sender = _Sender(session, client, journal, spool, key)

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
                EngineOutcome(
                    "indexnow", target.host, "planned" if session.dry_run else "accepted", 0,
                    detail="no changed URLs: nothing to send",
                )
            )  # fmt: skip

    return send


def _report(session: Session, tallies: list[_Tally]) -> None:
    """A line for each host, those with errors first; one line for the hosts above MAX_LINES."""
    found = [tally.outcome(session.dry_run) for tally in tallies]
    found.sort(key=lambda o: o.result in ("accepted", "planned"))
    for outcome in found[:MAX_LINES]:
        session.add(outcome)
    if rest := found[MAX_LINES:]:
        worst = rest[0]
        session.add(
            replace(
                worst,
                what=f"{len(rest):,} more hosts",
                total=sum(o.total for o in rest),
                accepted=sum(o.accepted for o in rest),
                skipped=sum(o.skipped for o in rest),
                requests=sum(o.requests for o in rest),
                detail=worst.detail if worst.code else "",
            )
        )


def _scope(options: AnnounceOptions, target: Target) -> tuple[Callable[[str, str], bool], str]:
    """A test for the URLs of the key by host and path, and the detail of the others.

    Raises:
        ConfigError: ``indexnow.unknown_site``: only the data names the host.
    """
    own = target.host
    if options.key_location is None:
        if target.derived and options.allowed_hosts == frozenset():
            raise ConfigError(
                f"only the URLs in the index name the host {own}: give --sitemap-url, because"
                " engines fetch the key from the host",
                code="indexnow.unknown_site",
            )
        return (
            lambda host, _path: options.allows(host, own),
            f"of another host than {own}, from which engines would fetch the key;"
            " --hosts any, or a list, allows that",
        )
    location = check_page(options.key_location, what="--key-location")
    mine, folder = location.authority, location.path.rsplit("/", 1)[0] + "/"
    return (
        lambda host, path: host == mine and path.startswith(folder),
        f"not under {mine}{folder}, where the key of --key-location is valid",
    )


def _find(session: Session, file: Path | None) -> str:
    return find_key(
        session.keyring,
        engine="indexnow",
        variable=VARIABLE,
        file=file,
        form=r"[A-Za-z0-9-]{8,128}",
        form_in_words="8 to 128 letters, digits or hyphens",
        where_to_get="--init-key creates one",
    )


def _own_key_file(session: Session) -> Path | None:
    """The key that ``init_key`` created, unless the environment has another."""
    path = session.target.state / KEY_FILE
    return path if not os.environ.get(VARIABLE, "").strip() and path.exists() else None


def init_key(session: Session) -> None:
    """Creates a key in the state folder, and its public copy, which proves it, in the site.

    An existing key stays, and only a missing copy is written.

    Raises:
        ConfigError: those of a key file.
        PublishError: ``indexnow.key_unwritable``.
    """
    target = session.target
    secret = session.key_file("indexnow") or target.state / KEY_FILE
    folder = target.folder or Path()
    old = secret.exists()
    key = _find(session, secret) if old else session.keyring.add(secrets.token_hex(_KEY_BYTES))
    proof = folder / f"{key}.txt"
    detail = (
        f"{'the existing key' if old else 'a new key'}; upload {proof}, named after the"
        f" key, so that it is served at {target.site}{proof.name}, then announce"
    )
    if session.dry_run:
        session.show(("" if old else f"write {secret} (mode 600)\n") + f"write {proof}\n")
        session.add(EngineOutcome("indexnow", str(secret), "planned", detail=detail))
        return
    try:
        secret.parent.mkdir(parents=True, exist_ok=True)
        if not old:
            _write(secret, key + "\n", _SECRET)
        with contextlib.suppress(FileExistsError):
            _write(proof, key, _PUBLIC)
    except OSError as error:
        raise PublishError(
            f"the key cannot be written to {secret} and {folder}: {error.strerror}",
            code="indexnow.key_unwritable",
        ) from None
    session.add(EngineOutcome("indexnow", str(secret), "accepted", 1, 1, detail=detail))


def _write(path: Path, text: str, mode: int) -> None:
    with os.fdopen(os.open(path, system.NEW, mode), "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())

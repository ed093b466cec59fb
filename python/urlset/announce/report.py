"""The report of ``announce``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Result = Literal["accepted", "partly", "refused", "failed", "planned"]


@dataclass(frozen=True, slots=True)
class EngineOutcome:
    """One line of the summary: one engine, and one sitemap, file or host.

    Attributes:
        engine: ``robots``, ``indexnow``, ``google``, ``bing`` or ``yandex``.
        what: the URL of a sitemap, the file, or the host whose URLs were sent.
        result: ``accepted``; ``partly``: some of it; ``refused``: by the engine, or not sent
            because a rule forbids it; ``failed``: no verdict of the engine; ``planned``: a dry
            run.
        total: number of sitemaps or URLs.
        accepted: how many of them the engine accepted, in this run or (``skipped``) before it.
        skipped: how many were accepted before and not sent again.
        requests: number of requests, without retries.
        detail: one line for a person.
        code: stable, such as ``indexnow.key_refused``; ``None`` without a problem.
    """

    engine: str
    what: str
    result: Result
    total: int = 1
    accepted: int = 0
    skipped: int = 0
    requests: int = 0
    detail: str = ""
    code: str | None = None


@dataclass(frozen=True, slots=True)
class SitemapStatus:
    """The status of one sitemap in Search Console.

    Attributes:
        path: its URL.
        ours: whether it is an index of the target.
        known: ``False`` if it was never submitted.
        type: as Google names it.
        pending: Google has not processed it yet.
        last_submitted, last_downloaded: times as Google writes them.
        warnings, errors: numbers of problems that Google found.
        submitted: URLs by type, such as ``{"web": 1000}``.
    """

    path: str
    ours: bool
    known: bool = True
    type: str | None = None
    pending: bool = False
    last_submitted: str | None = None
    last_downloaded: str | None = None
    warnings: int = 0
    errors: int = 0
    submitted: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class AnnounceReport:
    """The result of :func:`urlset.announce`.

    Attributes:
        outcomes: one for each engine and each sitemap, file or host.
        statuses: filled by ``status=True``.
        warnings: one line each.
        dry_run: nothing was sent or written.
        seconds: wall clock.
        environment_failed: an error of this machine, such as a file that cannot be written.
    """

    outcomes: list[EngineOutcome] = field(default_factory=list)
    statuses: list[SitemapStatus] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    dry_run: bool = False
    seconds: float = 0.0
    environment_failed: bool = False

    @property
    def exit_status(self) -> int:
        """The exit status of the command: 0 only if everything was accepted."""
        return 3 if self.environment_failed else 0 if self.ok else 1

    @property
    def ok(self) -> bool:
        """Whether everything was accepted (in a dry run: would be sent)."""
        return all(o.result in ("accepted", "planned") for o in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, as ``--json`` writes it."""
        return {
            "ok": self.ok,
            "dry_run": self.dry_run,
            "seconds": round(self.seconds, 3),
            "outcomes": [asdict(o) for o in self.outcomes],
            "statuses": [asdict(s) for s in self.statuses],
            "warnings": list(self.warnings),
        }

    def table(self) -> str:
        """The summary for people; it can contain control characters: see ``wording.one_line``."""
        rows = [("ENGINE", "ACCEPTED", "RESULT", "WHAT", "NOTE")]
        for o in self.outcomes:
            accepted = f"{o.accepted:,} of {o.total:,}" if o.total else "-"
            note = "" if o.code is not None else o.detail
            rows.append((o.engine, accepted, o.result, o.what, note))
        return columns(rows)

    def problems(self) -> list[str]:
        """One line for each reason for which something was not accepted."""
        found: dict[tuple[str, str, str], list[str]] = {}
        for o in self.outcomes:
            if o.code is not None:
                found.setdefault((o.engine, o.detail, o.code), []).append(o.what)
        return [
            f"{engine}: {what[0]}{f' and {len(what) - 1:,} more' if len(what) > 1 else ''}:"
            f" {detail} [{code}]"
            for (engine, detail, code), what in found.items()
        ]

    def status_table(self) -> str:
        """The result of ``--status`` for people."""
        rows = [("SITEMAP", "ERRORS", "WARNINGS", "LAST DOWNLOADED", "URLS", "NOTE")]
        for s in self.statuses:
            notes = [] if s.ours else ["not of this target"]
            notes += ["never submitted"] if not s.known else []
            notes += ["pending"] if s.pending else []
            rows.append(
                (
                    s.path,
                    f"{s.errors:,}" if s.known else "-",
                    f"{s.warnings:,}" if s.known else "-",
                    s.last_downloaded or "never",
                    f"{sum(s.submitted.values()):,}" if s.submitted else "-",
                    ", ".join(notes),
                )
            )
        return columns(rows)


def columns(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows as lines with aligned columns."""
    table = [tuple(" ".join(cell.split()) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)

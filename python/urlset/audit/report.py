"""The result of ``audit``: findings, and estimates for the whole set and each stratum."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from .. import _core

#: the name of the estimate for pages with at least one finding that is an error or a warning
BAD = "bad"
#: the name of the estimate for pages that could not be judged
UNJUDGED = "unjudged"


class Code(NamedTuple):
    """A kind of finding.

    Attributes:
        severity: ``error``: search engines do not index the URL as it is listed; ``warning``: the
            page failed, which may be temporary; ``note``: worth a look; ``unjudged``: nothing is
            known about the page.
        verb: the finding after a share: ``2.1 % of 4,200,000 URLs redirect``.
        help: what to do.
        drop: the drop list contains such URLs.
    """

    severity: str
    verb: str
    help: str
    drop: bool = False


CODES = {
    "redirect": Code("error", "redirect", "list the target instead", drop=True),
    "not_found": Code("error", "are not found (404)", "remove the URL", drop=True),
    "gone": Code("error", "are gone (410)", "remove the URL", drop=True),
    "noindex": Code("error", "have noindex", "remove the URL, or the noindex", drop=True),
    "canonical": Code(
        "error", "have another canonical", "list the canonical URL instead", drop=True
    ),
    "client_error": Code(
        "error", "are refused (4xx)", "open the page to everyone, or remove the URL"
    ),
    "disallowed": Code(
        "error", "are disallowed by robots.txt", "remove the URL, or the rule of robots.txt"
    ),
    "soft_404": Code(
        "error", "look like an error page", "answer 404 for missing pages, and remove the URL"
    ),
    "server_error": Code("warning", "fail (5xx)", "find the cause in the log of the server"),
    "timeout": Code("warning", "do not answer in time", "find out why the server is slow"),
    "unreachable": Code("warning", "cannot be reached", "check the name, the network and TLS"),
    "unreadable": Code(
        "warning", "answer unreadably", "correct Content-Length, Content-Encoding or the framing"
    ),
    "content_type": Code("note", "are not HTML", "check that search engines index such files"),
    "lastmod": Code("note", "have another date than lastmod", "correct the source of lastmod"),
    "rate_limited": Code("unjudged", "are rate limited (429)", "audit with a lower --rate"),
    "off_site": Code("unjudged", "are on other hosts", "allow the hosts with --hosts"),
    "private": Code(
        "unjudged", "have private addresses", "allow them with --allow-private if they are yours"
    ),
    "robots_failed": Code(
        "unjudged", "have an unreadable robots.txt", "correct it: crawlers stop, too"
    ),
    "robots_refused": Code(
        "unjudged", "may not be fetched by urlset", "allow urlset in robots.txt: other crawlers may"
    ),
    "malformed": Code("unjudged", "are not valid URLs", "run urlset verify"),
}  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """An estimated share of URLs.

    Attributes:
        code: a key of :data:`CODES`, ``bad`` (at least one error or warning) or ``unjudged``.
        count: pages of the sample that have it.
        share: from 0 to 1; for the whole set weighted by the size of the strata.
        low: the lower end of the 95 % interval.
        high: the upper end. An interval of pages that were all taken has no width.
    """

    code: str
    count: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """A page with a finding.

    Attributes:
        code: a key of :data:`CODES`.
        loc: the URL as listed.
        stratum: the name of its stratum.
        status: the HTTP status of the URL itself, before redirects; None without an answer.
        target: where it redirects to, or its canonical URL.
        detail: one line: the header, the pattern, the error.
        seconds: until the answer was complete.
    """

    code: str
    loc: str
    stratum: str
    status: int | None = None
    target: str | None = None
    detail: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Stratum:
    """A part of the set that is sampled and estimated separately.

    Attributes:
        name: a shard, or a value of ``by``.
        urls: its number of URLs.
        sampled: URLs that were chosen.
        judged: URLs that were fetched and judged; the estimates are based on these.
        estimates: ``bad`` first, then each code that occurs; empty if no page was judged.
    """

    name: str
    urls: int
    sampled: int
    judged: int
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True)
class AuditReport:
    """The result of ``audit``.

    Attributes:
        target: as it was named.
        by: what the strata are: ``shard``, ``path``, ``host``, ``none``, or a column.
        seed: of the sample.
        urls: URLs of the set.
        sampled: URLs that were chosen.
        judged: URLs that were fetched and judged.
        complete: False if the audit was interrupted: estimates rest on the pages judged by then.
        covered: URLs in strata with a judged page, to which the estimates apply.
        estimates: for the whole set: ``bad`` first, ``unjudged`` if it occurs, then each code
            that occurs, largest share first.
        strata: in the order of their names; ``bad`` shares differ between them.
        counts: pages of the sample by code, unjudged ones included.
        statuses: pages by HTTP status.
        content_types: pages by content type, the most frequent ones.
        samples: for each code the first pages found.
        page_seconds: ``median`` and ``p95`` of the time of one page.
        ok: ``max_bad`` was not given, or is not exceeded.
        max_bad: the limit, from 0 to 1.
        requests: sent, with redirects and robots.txt.
        seconds: elapsed.
    """

    target: str
    by: str
    seed: int
    urls: int
    sampled: int
    judged: int
    complete: bool
    covered: int
    estimates: tuple[Estimate, ...]
    strata: tuple[Stratum, ...]
    counts: dict[str, int]
    statuses: dict[str, int]
    content_types: dict[str, int]
    samples: tuple[Finding, ...]
    page_seconds: dict[str, float]
    ok: bool
    max_bad: float | None
    requests: int
    seconds: float

    def estimate(self, code: str) -> Estimate | None:
        """The estimate of a code for the whole set; None if it does not occur."""
        return next((one for one in self.estimates if one.code == code), None)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data: the output of ``--json``."""
        return {"version": _core.__version__, **asdict(self)}

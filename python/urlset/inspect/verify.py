"""Check sitemaps of any producer, as crawlers read them."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import ConfigError
from ..hosts import host_list
from .lookup import find
from .options import MIN_MEMORY, VerifyOptions
from .targets import Found

if TYPE_CHECKING:
    from typing import Unpack

    from ..keywords import VerifyKeywords

_RANK = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Problem:
    """One finding.

    Attributes:
        code: stable, such as ``loc.relative``.
        severity: ``error`` (against the protocol or its schema), ``warning`` or ``note``.
        file: the file, relative to the target, or its URL.
        line: from 1; 0 for a finding about the whole file.
        offset: byte offset before compression.
        url: the URL with the problem, if there is one.
        message: what is wrong.
        help: what to do.
    """

    code: str
    severity: str
    file: str
    line: int
    offset: int
    url: str | None
    message: str
    help: str


@dataclass
class File:
    """One verified file.

    Attributes:
        name: relative to the target, or its URL.
        kind: ``urlset``, ``index``, ``text``, ``feed`` or ``unknown``.
        urls: the number of its entries.
        bytes: its size before compression.
        compressed_bytes: the size of the file; None if it is not compressed.
    """

    name: str
    kind: str
    urls: int
    bytes: int
    compressed_bytes: int | None


@dataclass
class VerifyReport:
    """The result of ``verify``.

    Attributes:
        ok: no error, and under ``strict`` no warning.
        problems: for each file and code the first ones, errors first.
        counts: the number of problems by code, listed or not.
        files: the verified files.
        urls: the number of entries in all sitemaps.
        bytes: the size of all files before compression.
        seconds: the elapsed time.
        ages: the ages of the lastmods of all entries, as ``_core.age_steps`` separates them; not in
            :meth:`to_dict`.
    """

    ok: bool = True
    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    files: list[File] = field(default_factory=list)
    urls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    ages: list[int] = field(default_factory=list, repr=False)

    def total(self, severity: str) -> int:
        """The number of findings of a severity."""
        severities = _severities()
        return sum(n for code, n in self.counts.items() if severities[code][0] == severity)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data: the output of ``--json``."""
        totals = {f"{severity}s": self.total(severity) for severity in _RANK}
        values = asdict(self)
        del values["ages"]  # for the page
        return {"version": _core.__version__, **totals, **values}


def verify(target: str | os.PathLike[str], **options: Unpack[VerifyKeywords]) -> VerifyReport:
    """Check a sitemap, an index with its sitemaps, a folder of them, or an http(s) URL.

    Args:
        target: a file, a folder or a URL, of any producer, plain or gzip, XML or text.
        options: those of ``urlset verify --help``, with underscores; ``duplicates=False`` for
            ``--no-duplicates``, ``memory`` in bytes, ``hosts`` also as a list. ``strict`` changes
            ``ok`` in the report.

    Raises:
        InputError: the target does not exist, or contains no sitemap.
        ConfigError: an option is out of range.
        PublishError: ``output.report``: the page cannot be written.
    """
    start = time.monotonic()
    chosen = VerifyOptions(**options)
    threads, hosts = chosen.threads, chosen.hosts
    too_few_threads = threads is not None and threads < 1
    if chosen.memory < MIN_MEMORY or chosen.most < 1 or too_few_threads:
        raise ConfigError(
            "memory must be at least 1 MiB, most and threads at least 1", code="verify.options"
        )
    if chosen.report is not None:
        from ..html.document import check_target  # most calls write no page

        check_target(chosen.report, (target,), "nothing was checked")
    allowed = None if hosts is None else host_list(hosts)
    with find(target, allow_private=chosen.allow_private) as found:
        if hosts is not None:
            for rules in found.rules:
                rules.hosts = allowed
        report = verify_found(found, chosen)
    if chosen.strict:
        report.ok = report.ok and not report.total("warning")
    report.seconds = round(time.monotonic() - start, 3)
    if chosen.report is not None:
        from ..html.document import write_page
        from ..html.verify import verify_page

        write_page(chosen.report, verify_page(report, os.fspath(target), strict=chosen.strict))
    return report


def verify_found(found: Found, checks: VerifyOptions | None = None) -> VerifyReport:
    """Check the files that :func:`.lookup.find` found, and add the problems that it found."""
    checks = checks or VerifyOptions()
    report = VerifyReport()
    severities = _severities()
    files = _core.verify_files(
        found.items, found.rules, checks.threads, checks.memory, checks.duplicates,
        checks.reciprocity, checks.most,
    )  # fmt: skip
    for item, read in zip(found.items, files, strict=True):
        size = read.size if read.gzip else None
        report.files.append(File(item.name, read.kind, read.urls, read.bytes, size))
        if read.kind != "index":
            report.urls += read.urls
            report.ages = [sum(pair) for pair in zip_longest(report.ages, read.ages, fillvalue=0)]
        report.bytes += read.bytes
        for code, count in read.counts.items():
            report.counts[code] = report.counts.get(code, 0) + count
        report.problems += [
            Problem(f.code, f.severity, item.name, f.line, f.offset, f.url, f.message, f.help)
            for f in read.findings
        ]
    listed: dict[tuple[str, str], int] = {}
    for defect in found.problems:
        code, file = defect.code, defect.file
        severity, help_ = severities[code]
        report.counts[code] = report.counts.get(code, 0) + 1
        listed[code, file] = listed.get((code, file), 0) + 1
        if listed[code, file] <= checks.most:
            report.problems.append(Problem(severity=severity, help=help_, **defect._asdict()))
    report.problems.sort(key=lambda p: (_RANK[p.severity], p.code, p.file, p.offset))
    report.counts = dict(sorted(report.counts.items()))
    report.ok = report.total("error") == 0
    return report


def _severities() -> dict[str, tuple[str, str]]:
    return {code: (severity, help_) for code, severity, help_ in _core.finding_codes()}

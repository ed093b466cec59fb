"""Check sitemaps of any producer, as crawlers read them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import ConfigError, Error
from .options import MEMORY, VerifyOptions
from .targets import Found, Item, Rules, find

if TYPE_CHECKING:
    from typing import Unpack

    from ..keywords import VerifyKeywords

_RANK = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Problem:
    """One finding.

    Attributes:
        code: stable, such as ``loc.relative``; docs/verify.md has the table.
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
    """One verified file: its kind (``urlset index text feed unknown``) and its sizes in bytes."""

    name: str
    kind: str
    urls: int
    bytes: int
    compressed_bytes: int | None


@dataclass
class Report:
    """What ``verify`` found.

    Attributes:
        ok: no error, and under ``strict`` no warning.
        problems: for each file and code the first ones, errors first.
        counts: the number of problems by code, listed or not.
        files: the verified files.
        urls: the number of entries in all sitemaps.
        bytes: the size of all files before compression.
        seconds: the elapsed time.
    """

    ok: bool = True
    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    files: list[File] = field(default_factory=list)
    urls: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def total(self, severity: str) -> int:
        """The number of findings of a severity."""
        severities = _severities()
        return sum(n for code, n in self.counts.items() if severities[code][0] == severity)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data: the output of ``--json``."""
        totals = {f"{severity}s": self.total(severity) for severity in _RANK}
        return {"version": _core.__version__, **totals, **asdict(self)}


@dataclass(frozen=True)
class Checks:
    """The options of a check, for one file or many.

    Attributes:
        duplicates: report URLs that are listed twice, within and across files.
        reciprocity: report alternates (hreflang) that do not link back.
        memory: bytes for the hashes of all URLs; above that they go to disk.
        threads: 1 or more; by default one per core.
        most: the number of findings to list for each code and file; all are counted.
    """

    duplicates: bool = True
    reciprocity: bool = False
    memory: int = MEMORY
    threads: int | None = None
    most: int = 100


def verify(target: str | os.PathLike[str], **options: Unpack[VerifyKeywords]) -> Report:
    """Check a sitemap, an index with all it lists, a folder of them, or an http(s) URL.

    Args:
        target: a file, a folder or a URL, of any producer, plain or gzip, XML or text.
        options: those of ``urlset verify --help``, with underscores; ``duplicates=False`` for
            ``--no-duplicates``, ``memory`` in bytes, ``hosts`` also as a list. ``strict`` changes
            ``ok`` in the report.

    Raises:
        InputError: the target does not exist, or contains no sitemap.
        ConfigError: an option is out of range.
    """
    start = time.monotonic()
    chosen = VerifyOptions(**options)
    memory, most, threads, hosts = chosen.memory, chosen.most, chosen.threads, chosen.hosts
    if memory < 1 << 20 or most < 1 or (threads is not None and threads < 1):
        raise ConfigError(
            "memory must be at least 1 MiB, most and threads at least 1", code="verify.options"
        )
    allowed = None if hosts is None else host_list(hosts)
    with find(target, allow_private=chosen.allow_private) as found:
        if hosts is not None:
            for rules in found.rules:
                rules.hosts = allowed
        checks = Checks(chosen.duplicates, chosen.reciprocity, memory, threads, most)
        report = verify_found(found, checks)
    if chosen.strict:
        report.ok = report.ok and not report.total("warning")
    report.seconds = round(time.monotonic() - start, 3)
    return report


def verify_files(
    items: Sequence[Item], manifest: dict[str, Any] | None = None, **options: Any
) -> Report:
    """Check local files, as a build does with the files that it staged.

    Args:
        manifest: its hosts and added sitemaps are allowed in the files.
        options: those of :class:`Checks`.
    """
    found = Found(list(items), rules=[Rules.of(manifest or {})])
    return verify_found(found, Checks(**options))


def host_list(hosts: str | Sequence[str]) -> list[str] | None:
    """Hosts in the form of the core: ``None`` for ``same``, an empty list for ``any``.

    Raises:
        ConfigError: ``verify.options`` for text that is not a host.
    """
    names = hosts.split(",") if isinstance(hosts, str) else list(hosts)
    if names in (["same"], ["any"]):
        return None if names == ["same"] else []
    found = []
    for name in names:
        try:
            address = _core.address(f"https://{name.strip()}/")
        except Error:
            address = ""
        host = address.removeprefix("https://").removesuffix("/")
        if not host or set(host) & set("/?#@"):
            message = f"hosts: {name!r} is not a host; write same, any, or hosts such as"
            message += " m.shop.example,shop.example:8080"
            raise ConfigError(message, code="verify.options")
        # without a port, both schemes are allowed on their default port; with :443 only https
        found.append(f"{host}:443" if name.strip().endswith(":443") else host)
    return found


def verify_found(found: Found, checks: Checks | None = None) -> Report:
    """Check the files that :func:`.targets.find` found, and add the problems that it found."""
    checks = checks or Checks()
    report = Report()
    severities = _severities()
    files = _core.verify_files(found.items, found.rules, checks)
    for item, read in zip(found.items, files, strict=True):
        size = read.size if read.gzip else None
        report.files.append(File(item.name, read.kind, read.urls, read.bytes, size))
        if read.kind != "index":
            report.urls += read.urls
        report.bytes += read.bytes
        for code, count in read.counts.items():
            report.counts[code] = report.counts.get(code, 0) + count
        report.problems += [
            Problem(f.code, f.severity, item.name, f.line, f.offset, f.url, f.message, f.help)
            for f in read.findings
        ]
    listed: dict[tuple[str, str], int] = {}
    for code, file, line, offset, url, message in found.problems:
        severity, help_ = severities[code]
        report.counts[code] = report.counts.get(code, 0) + 1
        listed[code, file] = listed.get((code, file), 0) + 1
        if listed[code, file] <= checks.most:
            problem = Problem(code, severity, file, line, offset, url, message, help_)
            report.problems.append(problem)
    report.problems.sort(key=lambda p: (_RANK[p.severity], p.code, p.file, p.offset))
    report.counts = dict(sorted(report.counts.items()))
    report.ok = report.total("error") == 0
    return report


def _severities() -> dict[str, tuple[str, str]]:
    return {code: (severity, help_) for code, severity, help_ in _core.finding_codes()}

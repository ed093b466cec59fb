"""``urlset.audit``."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, InputError, PublishError
from ..outfile import is_store, must_be_local
from ..rows import format_of, write
from ..transport.target import check_writable, must_differ, target_of
from .options import AuditOptions
from .report import CODES, AuditReport, Finding
from .sample import Sample, choose

if TYPE_CHECKING:
    from typing import Unpack

    from ..keywords import AuditKeywords
    from .crawl import Crawl, Page
    from .journal import Journal
    from .tally import Tally

#: called with the pages judged and those of the sample
OnProgress = Callable[[int, int], None]


def audit(
    target: str | os.PathLike[str],
    *,
    on_progress: OnProgress | None = None,
    on_stop: Callable[[KeyboardInterrupt], None] | None = None,
    **options: Unpack[AuditKeywords],
) -> AuditReport:
    """Fetch a sample of the pages of a set, judge them, and estimate the shares in the set.

    Needs the extra ``audit``: ``pip install 'urlset[audit]'``.

    Args:
        target: sitemaps as for :func:`urlset.read`, or a table of URLs: a ``.csv``, ``.parquet``,
            ``.jsonl`` or ``.arrow`` file.
        on_progress: called after each page, from another thread.
        on_stop: called with the KeyboardInterrupt that ended the audit early.
        options: those of ``urlset audit --help``, with underscores.

    Returns:
        The report. After a KeyboardInterrupt it rests on the pages judged by then, and
        ``complete`` is False.

    Raises:
        ConfigError: wrong options; ``audit.extra``: the extra is not installed.
        InputError: the target cannot be read, or lists no URL.
        PublishError: an output cannot be written.
    """
    started = time.monotonic()
    try:
        import aiohttp  # noqa: F401 - an extra
        import lxml  # noqa: F401 - the same
        import protego  # noqa: F401 - the same
    except ImportError as error:
        raise ConfigError(
            f"audit needs the package {error.name}: pip install 'urlset[audit]'",
            code="audit.extra",
        ) from None
    chosen = AuditOptions(**options).checked()
    _check_outputs(chosen, target)
    if chosen.report is not None:
        from ..html.document import check_target  # most audits write no page

        check_target(chosen.report, (target,), "nothing was fetched")
    from .crawl import Crawl, Limits
    from .journal import Journal
    from .page import Rules
    from .population import allowed_hosts, population
    from .tally import Tally

    rules = Rules(chosen.bot.lower(), chosen.soft_404, chosen.check_lastmod).checked()
    with population(target, chosen) as found:
        sizes, frequent = found.sizes()
        if not sizes:
            raise InputError(f"{target}: lists no URL", code="audit.empty", input=str(target))
        sample = choose(found, sizes, chosen.sample_size, chosen.seed)
        hosts = allowed_hosts(chosen.hosts, found, frequent)
        by = found.by
    limits = Limits(
        chosen.rate, chosen.concurrency, chosen.timeout, chosen.max_wait, hosts,
        chosen.allow_private,
    )  # fmt: skip
    resume = None if chosen.resume is None else Path(chosen.resume)
    tally, lock, stopped = Tally(sample), threading.Lock(), False
    with closing(Journal(resume, rules)) as journal:
        # a page whose judgement failed is fetched again: its records do not count
        failed = Counter(page.loc for page in journal if is_failure(page) or not tally.add(page))
        pages = {loc: sample.lastmods.get(loc) for loc in sample.places if loc not in tally.seen}

        def record(page: Page) -> None:
            with lock:
                if stopped:  # the crawl did not end in time
                    return
                journal.add(page)
                tally.add(page)
            if on_progress is not None:
                on_progress(len(tally.seen), len(sample.places))

        crawl = Crawl(pages, limits, rules, record)
        try:
            crawl.run()
        except KeyboardInterrupt as stop:
            with lock:
                stopped = True
            if on_stop is not None:
                on_stop(stop)
        report = _report(str(target), by, chosen, sample, tally, crawl, started)
        _write_outputs(chosen, journal, tally, failed)
    if chosen.report is not None:
        from ..html.audit import audit_page
        from ..html.document import write_page

        write_page(chosen.report, audit_page(report))
    return report


def _report(
    target: str, by: str, options: AuditOptions, sample: Sample, tally: Tally, crawl: Crawl,
    started: float,
) -> AuditReport:  # fmt: skip
    sampled = sum(map(len, sample.places.values()))
    limit = options.max_bad_share
    samples: list[Finding] = [one for found in tally.samples.values() for one in found]
    return AuditReport(
        target=target,
        by=by,
        seed=options.seed,
        urls=sum(sample.sizes),
        sampled=sampled,
        judged=tally.judged,
        complete=tally.done == sampled,
        covered=tally.covered(),
        estimates=tally.estimates(),
        strata=tally.strata(),
        counts=dict(sorted(tally.counts.items())),
        statuses=tally.statuses(),
        content_types=tally.content_types(),
        samples=tuple(samples),
        page_seconds=tally.page_seconds(),
        ok=limit is None or tally.not_good() <= limit + 1e-12,  # 0.7 / 100 < 7 / 1000
        max_bad=limit,
        requests=crawl.requests,
        seconds=round(time.monotonic() - started, 3),
    )


def _check_outputs(options: AuditOptions, target: object) -> None:
    """Finds files that cannot be written before hours are spent on the audit."""
    names = ("output", "drop_list", "report", "resume")
    must_differ({name: getattr(options, name) for name in names}, (target,))
    if options.output is not None:
        format_of(os.fspath(options.output))
    for name in ("output", "drop_list", "resume"):
        path = getattr(options, name)
        if path is None or os.fspath(path) == "-":
            continue
        if name == "resume" or not is_store(path):
            must_be_local(name, path)
        try:
            check_writable(target_of(path), replaced=name != "resume")
        except OSError as error:
            raise PublishError(
                f"{name}: {path}: {error.strerror}; nothing was fetched", code=f"output.{name}"
            ) from None


def is_failure(page: Page) -> bool:
    """Whether another attempt may judge a page."""
    return any(
        fact.code == "unreachable" or CODES[fact.code].severity == "unjudged" for fact in page.facts
    )


def _write_outputs(
    options: AuditOptions, journal: Journal, tally: Tally, failed: Counter[str]
) -> None:
    """
    Args:
        failed: records at the beginning of the journal that do not count, by URL.
    """
    from .output import FindingRows, write_drop_list

    def pages() -> Iterator[Page]:
        left = failed.copy()
        for page in journal:
            if left[page.loc] > 0:
                left[page.loc] -= 1
            elif page.loc in tally.seen:
                yield page

    if options.output is not None:
        write(FindingRows(pages, tally.sample), os.fspath(options.output))
    if options.drop_list is not None:
        write_drop_list(os.fspath(options.drop_list), pages())

"""``urlset.build`` and ``urlset.Job``: the only modules of a job that know all its stages.

::

    plan      options checked, destination opened, live manifest read       (plan.py)
    write     inputs through the core to staged shards, any number of times (write.py)
    commit    guards, manifest, indexes, publication                        (commit.py)
    abort     staged files are removed; the live set does not change

``urlset.build`` is a job with one part. It locks the destination for its whole time. A job with
several parts locks it only for ``plan`` and ``commit``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import ConfigError, ConflictError, Error, PublishError, RejectLimitError
from ..outfile import random_id
from ..report import Report, warnings_of
from ..system import peak_memory
from ..transport.target import Target
from .commit import Commit
from .part import Part
from .plan import Plan, make_plan, make_plan_of_parts
from .source import Input, Source, open_inputs
from .source.objects import refuse_pages
from .stamps import Stamps
from .write import OnProgress, Writer, close_all

if TYPE_CHECKING:
    from typing import Unpack

    from obstore.store import ObjectStore

    from ..destination.interface import Publication
    from ..keywords import BuildKeywords

__all__ = ["Build", "Job", "OnProgress", "Part", "build"]


def build(
    source: Source | Sequence[Source] = (),
    *,
    site: str | None = None,
    out: str | os.PathLike[str] | ObjectStore | None = None,
    config: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
    **options: Unpack[BuildKeywords],
) -> Report:
    """Build sitemaps and their index, and publish them to a folder.

    If anything fails, the live set does not change.

    Args:
        source: a path (CSV, Parquet, Arrow IPC, JSON Lines, a list of URLs; a glob; a folder;
            ``-``), a URI, an object with ``__arrow_c_stream__``, an iterator of pyarrow record
            batches, or a sequence of these, read one after the other. A list of strings is a
            list of paths and URIs. To publish URLs that are in a Python list, pass
            ``pyarrow.table({"loc": urls})``.
        site: the site of all URLs, ``https://www.shop.example``.
        out: the folder to publish to; or a prefix in an object store, ``s3://bucket/prefix``, or
            a store object of obstore.
        config: a ``urlset.toml``; arguments override its options.
        on_progress: called about ten times a second with the progress and the inputs.
        options: those of the command line, with underscores; see ``urlset build --help``.

    Returns:
        The report; its fields are those of ``--json``.

    Raises:
        ConfigError: wrong options, a missing or ambiguous column.
        InputError: an input is missing, unreadable or damaged.
        RejectLimitError: more rows were rejected than ``max_rejects`` allows.
        DataError: no valid row, duplicates under ``fail``, a set that shrank too far.
        PublishError: the output cannot be written, or another build is publishing there.
        KeyboardInterrupt: at once, also while an input opens or waits.
    """
    run = Build(Report(version=_core.__version__))
    run.run(_sources(source, options.get("format")), {"site": site, "out": out, **options},
            config, on_progress)  # fmt: skip
    return run.report


class Build:
    """One build; its report contains as much as is known, also if the build fails.

    Args:
        written: by option, the files that the caller will write: none may be an input.
    """

    def __init__(self, report: Report, written: Mapping[str, Target] | None = None) -> None:
        self.report = report
        self._written = written or {}
        self._started = time.monotonic()
        # of each set, those that were not read yet
        self._inputs: list[list[Input]] = []
        self._commit: Commit | None = None

    def run(
        self,
        sources: Sequence[Any],
        given: dict[str, Any],
        config: str | os.PathLike[str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Builds and publishes, fills in the report, and writes the page."""
        try:
            self._build(sources, given, config, on_progress)
        except Error:
            with suppress(PublishError):  # the first error is the one to report
                self._write_page()
            raise
        try:
            self._write_page()
        except PublishError as error:
            self.report.error = {"code": error.code, "message": str(error)}
            raise

    def _write_page(self) -> None:
        if self._commit is not None:
            self._commit.write_page()

    def _build(
        self,
        sources: Sequence[Any],
        given: dict[str, Any],
        config: str | os.PathLike[str] | None,
        on_progress: OnProgress | None,
    ) -> None:
        try:
            plan = make_plan(sources, given, config, self._written)
            # before the destination is opened: a wrong input name creates nothing
            for table in plan.sets:
                self._inputs.append(open_inputs(table.input, table.options))
            with plan.publication() as publication:
                self._run(plan, publication, on_progress)
        except Error as error:
            self.report.error = {"code": error.code, "message": str(error)}
            raise
        except KeyboardInterrupt:
            if self.report.published:
                self._stopped("stopped, but all was published")
            elif self.report.error is None and self._inputs:
                self._stopped("stopped; nothing was published")
            raise
        finally:
            close_all(self._inputs)
            _measure(self.report, self._started)

    def _stopped(self, message: str) -> None:
        self.report.error = {"code": "interrupted", "message": message}

    def _run(self, plan: Plan, publication: Publication, on_progress: OnProgress | None) -> None:
        report = self.report
        skipped = [name for inputs in self._inputs for one in inputs for name in one.skipped]
        report.warnings += warnings_of(_found(plan, publication))
        plan.check_targets(publication)
        plan = plan.with_live(publication)
        report.warnings += warnings_of(dict(plan.notes))
        started = time.monotonic()
        commit = self._commit = Commit(plan, publication, report)
        with Stamps(plan.options, publication) as stamps:
            part = self._write(Writer(plan, publication, stamps), commit, on_progress)
        try:
            commit.run([part], skipped, started, stamps)
        except KeyboardInterrupt:
            if publication.is_pending():
                self._stopped("stopped while publishing: the next build completes it")
            raise

    def _write(self, writer: Writer, commit: Commit, on_progress: OnProgress | None) -> Part:
        try:
            return writer.write(self._inputs, on_progress)
        except BaseException as error:
            report = self.report
            commit.add(writer.outcomes, failed=True)
            commit.keep_rejects([path.name for path in writer.rejects], complete=False)
            if isinstance(error, RejectLimitError) and report.rejects["path"] is not None:
                # the core does not know where the file goes
                message = f"{error}; the reject file is {report.rejects['path']}"
                raise RejectLimitError(message, code=error.code) from None
            raise


class Job:
    """A build with several parts: many tasks write, one commit makes the whole set live.

    Creating a job plans it: the options are checked and the live set is read. A job can be pickled,
    and relative paths become absolute; :meth:`write` runs in any process that reaches the
    destination, any number of times.

    Args:
        site: the site of all URLs, ``https://www.shop.example``.
        out: the folder to publish to; or a prefix in an object store, ``s3://bucket/prefix``, or
            a store object of obstore.
        config: a ``urlset.toml`` without ``[[set]]`` tables; arguments override its options.
        ordered: the rows of each part ascend by their final loc, in the byte order of UTF-8, and
            no two parts overlap; ``write`` and ``commit`` check it. The parts are then listed in
            the order of their first locs.
        options: as for :func:`urlset.build`. Not with several parts: ``alternate_group``;
            ``duplicates`` other than ``keep``, and ``sort``, unless the rows are ordered;
            ``alternate_rows``, if they are.

    Raises:
        ConfigError: wrong options; ``job.option``: one that needs all rows in one place.
        PublishError: the output cannot be written, or another build is publishing there.
    """

    def __init__(
        self,
        *,
        site: str | None = None,
        out: str | os.PathLike[str] | ObjectStore | None = None,
        config: str | os.PathLike[str] | None = None,
        ordered: bool = False,
        **options: Unpack[BuildKeywords],
    ) -> None:
        given = {"site": site, "out": out, **options}
        plan = make_plan_of_parts(given, config, ordered=ordered).with_absolute_targets()
        job = random_id()
        with plan.publication() as publication:
            plan.check_targets(publication)
            plan = replace(plan, job=job).with_live(publication)
            publication.begin_parts(job)
            notes = {**_found(plan, publication), **plan.notes}
        self._plan = replace(plan, destination=plan.destination.absolute(), notes=notes)

    @property
    def id(self) -> str:
        """Identifies the job; its parts contain it."""
        return self._plan.job or ""

    def write(self, source: Source | Iterable[Any], *, name: str | None = None) -> Part:
        """Write one part: its shards are staged, and nothing is live.

        A part that is written twice is harmless: commit one of the two.

        Args:
            source: as for :func:`urlset.build`; without any record batch the part is empty.
            name: of the source, in errors and in the reject file; by default what it is.

        Raises:
            ConfigError: a missing or ambiguous column.
            DataError: ``rows.order``: the rows are not ordered; duplicates under ``fail``.
            InputError: the input is missing, unreadable or damaged.
            PublishError: the staging cannot be written; ``job.closed``: the job was committed or
                aborted.
        """
        plan = self._plan
        if name is None and isinstance(source, Iterator):
            name = "the rows"
        sources = _sources(_unless_empty(source), plan.options.format)
        inputs = [open_inputs(sources, plan.options) if sources else []]
        if name is not None:
            inputs = [[replace(one, name=name) for one in inputs[0]]]
        try:
            with plan.destination.staging(plan.name, self.id) as staging:
                return Writer(plan, staging).write(inputs)
        finally:
            close_all(inputs)

    def commit(self, parts: Iterable[Part]) -> Report:
        """Make the parts live together, in the order given, or in that of their locs if ordered.

        A commit that fails changes nothing that is live and can be repeated, except after a
        :class:`~urlset.ConflictError`.

        Raises:
            ConfigError: ``job.part``: a part of another job, or a part that is given twice.
            ConflictError: ``publish.conflict``: another build published since this job was planned.
            DataError: as for :func:`urlset.build`, over all parts; ``rows.order``: ordered parts
                overlap.
            PublishError: the output cannot be written; ``job.closed``: the job was committed or
                aborted.
        """
        started = time.monotonic()
        parts = self._checked(parts)
        plan = self._plan
        report = Report(version=_core.__version__)
        with plan.publication() as publication:
            if publication.version != plan.version:
                raise ConflictError(
                    f"{plan.destination}: another build published since this job was planned;"
                    " nothing was published; plan a new job",
                    code="publish.conflict",
                )
            report.warnings += warnings_of(dict(plan.notes))
            commit = Commit(plan, publication, report)
            try:
                commit.run(parts, [], started)
            except Error as error:
                report.error = {"code": error.code, "message": str(error)}
                _measure(report, started)
                with suppress(PublishError):  # the first error is the one to report
                    commit.write_page()
                raise
        if plan.options.dry_run:
            self.abort()
        _measure(report, started)
        commit.write_page()
        return report

    def abort(self, parts: Iterable[Part | None] = ()) -> None:
        """Remove the staged files of the parts. The live set does not change.

        Args:
            parts: ignored, because the whole staging is removed; engines pass all that they have.

        Raises:
            PublishError: the staging cannot be removed.
        """
        self._plan.destination.abort(self._plan.name, self.id)

    def _checked(self, parts: Iterable[Part]) -> list[Part]:
        checked: dict[str, Part] = {}
        for part in parts:
            if not isinstance(part, Part):
                raise ConfigError(
                    f"commit takes parts, not {type(part).__name__}: pass"
                    " urlset.Part.from_json(text) for the JSON of a part",
                    code="job.part",
                )
            if part.job != self.id:
                raise ConfigError(f"part {part.id}: is of another job", code="job.part")
            if part.id in checked:
                raise ConfigError(f"part {part.id}: is given twice", code="job.part")
            # one set, and of ordered rows the locs
            if len(part.outcomes) != 1 or any(
                bool(one.firsts) != (self._plan.ordered and bool(one.shards))
                for one in part.outcomes
            ):
                raise ConfigError(
                    f"part {part.id}: is not one that write returned", code="job.part"
                )
            checked[part.id] = part
        return list(checked.values())


def _sources(source: Any, options_format: str | None) -> tuple[Any, ...]:
    """One source, or each of a sequence."""
    if not isinstance(source, Sequence) or (
        isinstance(source, (str, bytes, bytearray)) or hasattr(source, "__arrow_c_stream__")
    ):
        return (source,)
    refuse_pages(source, options_format)
    return tuple(source)


def _unless_empty(source: Any) -> Any:
    """The source; an empty sequence instead of an iterator without batches."""
    if not isinstance(source, Iterator) or hasattr(source, "__arrow_c_stream__"):
        return source
    first = next(source, None)
    return () if first is None else chain([first], source)


def _found(plan: Plan, publication: Publication) -> dict[str, int]:
    """What the destination repaired or found waiting, by warning code."""
    found = dict(publication.notes)
    if plan.options.changes is None or plan.options.dry_run:
        found["changes.waiting"] = len(publication.feeds)
    return {code: number for code, number in found.items() if number}


def _measure(report: Report, started: float) -> None:
    report.seconds = round(time.monotonic() - started, 3)
    report.peak_rss = peak_memory()

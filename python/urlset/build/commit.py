"""The commit of a job: guards, manifest, indexes, publication. Only it changes the live set."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import pairwise, zip_longest
from typing import Any
from urllib.parse import urlsplit

from .. import _core
from ..destination.interface import Publication
from ..destination.manifest import (
    MAX_HISTORY,
    BuildRecord,
    IndexRecord,
    Manifest,
    ShardRecord,
    UrlChanges,
    content_named,
)
from ..errors import DataError, PublishError, RejectLimitError
from ..hosts import host_list
from ..options import parse_percent
from ..report import (
    IndexFile,
    Report,
    Shard,
    Warning,
    engine_warnings,
    explain_site_path,
    message_of,
    skipped_warnings,
    warnings_of,
)
from ..transport.target import target_of
from ..wording import count
from .details import Details, SetTotals
from .index import Sitemap, index_name, render_indexes
from .names import check_files, splits_index
from .part import COUNTS, Outcome, Part
from .plan import Plan
from .rejects import check_rejects, keep_rejects
from .stamps import Stamps

#: 29 of 100 are 29%, although 0.29 * 100 is less than 29 in floating point
ROUNDING = 1e-12


class Commit:
    """Publishes the parts of a job, and fills in its report.

    Args:
        plan: of the job.
        publication: open, with the staged files of the parts.
        report: receives all known results, also if the commit fails.

    Attributes:
        details: what the page shows besides the report.
    """

    def __init__(self, plan: Plan, publication: Publication, report: Report) -> None:
        self._plan, self._publication, self._report = plan, publication, report
        self._options = plan.options
        #: the shards of each value with a separate index, by stem and host
        self._own: dict[tuple[str, str | None], list[Shard]] = {}
        #: the shards of the shared index, with their hosts
        self._shared: list[Shard] = []
        self._hosts: dict[str, str] = {}
        self._stems: set[str] = set()
        #: of ordered rows, the first loc of each shard, and the shard that begins each part
        self._firsts: dict[str, str] = {}
        self._edges: set[str] = set()
        previous = publication.manifest()
        history = previous.history if previous is not None else ()
        self.details = Details(self._options.site, self._options.dry_run, history)

    def add(self, outcomes: Iterable[Outcome], *, failed: bool = False) -> None:
        """Adds the outcomes of a part to the report."""
        report = self._report
        for table, outcome in zip(self._plan.sets, outcomes, strict=False):
            for key in COUNTS:
                setattr(report, key, getattr(report, key) + getattr(outcome, key))
            _add_counts(report.rejects["by_code"], outcome.rejects_by_code)
            notes = {warning.code: warning.count for warning in report.warnings}
            _add_counts(notes, outcome.notes)
            report.warnings = warnings_of(notes)
            report.shards += outcome.shards
            self._add_groups(outcome, has_index=not failed and splits_index(table.options))
            if self._options.report is not None:
                self._add_details(table.options.name, outcome)
            for field, column in outcome.mapping:
                report.mapping.setdefault(field, column)
        explain_site_path(report, self._options.site)

    def _add_groups(self, outcome: Outcome, *, has_index: bool) -> None:
        start = 0
        for group in outcome.groups:
            shards = outcome.shards[start : start + group.shards]
            start += group.shards
            self._stems.add(group.stem)
            if group.host is not None:
                self._hosts.update((shard.path, group.host) for shard in shards)
            if has_index:
                self._own.setdefault((group.stem, group.host), []).extend(shards)
            else:
                self._shared += shards
        self._shared += outcome.shards[start:]

    def _in_order(self, parts: Sequence[Part]) -> list[Part]:
        """The parts of ordered rows by their locs.

        Raises:
            DataError: ``rows.order``: two parts overlap.
        """
        ranges = []
        for number, part in enumerate(parts):
            [outcome] = part.outcomes
            if outcome.last is not None:
                paths = [shard.path for shard in outcome.shards]
                first, edge = min(zip(outcome.firsts, paths, strict=True))
                self._firsts.update(zip(paths, outcome.firsts, strict=True))
                self._edges.add(edge)
                ranges.append((first, outcome.last, number))
        ranges.sort()
        for (_, last, number), (first, _, other) in pairwise(ranges):
            if first <= last:
                raise DataError(
                    f"parts {number} and {other} overlap: one ends with {last}, the other begins"
                    f" with {first}; nothing was published; ranges of locs must not overlap:"
                    " make prepare the last step before the write",
                    code="rows.order",
                )
        numbers = {number: None for _, _, number in ranges} | dict.fromkeys(range(len(parts)))
        return [parts[number] for number in numbers]

    def _add_details(self, name: str, outcome: Outcome) -> None:
        details = self.details
        ages = outcome.ages or (0,) * len(details.ages)
        details.ages = [sum(pair) for pair in zip_longest(details.ages, ages, fillvalue=0)]
        known = {one.name: one for one in details.sets}
        start = 0
        for stem, shards in [(group.stem, group.shards) for group in outcome.groups] or [
            (name, len(outcome.shards))
        ]:
            if stem not in known:
                known[stem] = SetTotals(stem)
                details.sets.append(known[stem])
            known[stem].add(outcome.shards[start : start + shards])
            start += shards

    def keep_rejects(self, names: Sequence[str], *, complete: bool) -> None:
        """Moves the reject file to its place, also if the build failed.

        Args:
            complete: all sets were built, so the file must contain every rejected row; otherwise
                it contains more rows than the report counts.
        """
        rejects = self._options.rejects
        target = target_of(rejects) if rejects is not None else None
        has_page = self._options.report is not None
        kept = keep_rejects(names, target, self._publication, examples=has_page)
        report = self._report
        if kept is None:
            if complete:
                check_rejects({}, report.rejects["by_code"])
            return
        report.rejects["path"], counts, self.details.examples = kept
        if complete:
            check_rejects(counts, report.rejects["by_code"])
        else:
            report.rejects["by_code"] = counts
            report.rejected = sum(counts.values())

    def run(
        self,
        parts: Sequence[Part],
        skipped: list[str],
        started: float,
        stamps: Stamps | None = None,
    ) -> None:
        """Publishes the parts; their order is that of the sitemaps in the index.

        Args:
            skipped: files in the folders of inputs that are not data.
            started: when the first part was begun, by :func:`time.monotonic`.
            stamps: what ``lastmod_from`` keeps from build to build.

        Raises:
            DataError: a guard refuses the data; nothing was published.
            PublishError: the output cannot be written.
        """
        report, publication = self._report, self._publication
        previous = publication.manifest()
        for part in self._in_order(parts) if self._plan.ordered else parts:
            self.add(part.outcomes)
        self.keep_rejects([name for part in parts for name in part.rejects], complete=True)
        self._check_counts(parts)
        self._check(previous)
        manifest = self._manifest(previous)
        if stamps is not None and stamps.changes is not None:
            report.lastmod = stamps.summary()
            report.warnings += stamps.warnings()
            manifest = manifest._replace(lastmod=stamps.file())
        changed = dict.fromkeys(shard.path for shard in report.shards if shard.changed)
        manifest, indexes = self._stage_indexes(manifest)
        report.warnings += engine_warnings(self._options, report)
        report.warnings += skipped_warnings(skipped)
        report.timings["build"] = round(time.monotonic() - started, 4)
        if self._options.verify_staged:
            self._verify(manifest, {*changed, *indexes})
        if self._options.dry_run:
            return
        feeds, changes = None, None
        if self._options.changes is not None:
            from .changes import stage_feed  # at start-up every millisecond counts

            target = target_of(self._options.changes)
            feeds, changes = stage_feed(publication, previous, manifest, changed, target)
        started = time.monotonic()
        moves = [*changed, *indexes]
        history = self._history(len(changed), changes)
        if stamps is not None:
            stamps.stage()
        is_new = True
        try:
            is_new = publication.publish(moves, manifest._replace(history=history), feeds)
        finally:
            report.published = publication.published
            self.details.unchanged = not is_new
            if report.published and is_new:
                self.details.history = history
        report.published = True
        report.warnings += warnings_of(dict(publication.leftovers))
        if self._options.changes is not None:
            self._deliver()
        report.timings["publish"] = round(time.monotonic() - started, 4)

    def _history(self, written: int, changes: UrlChanges | None) -> tuple[BuildRecord, ...]:
        """The last builds and this one."""
        report = self._report
        build = BuildRecord(
            at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            rows=report.rows,
            urls=report.urls,
            rejected=report.rejected,
            shards=len(report.shards),
            written=written,
            bytes=sum(shard.bytes for shard in report.shards),
            compressed_bytes=sum(shard.compressed_bytes for shard in report.shards),
            seconds=report.timings["build"],
            changes=changes,
        )
        return (*self.details.history, build)[-MAX_HISTORY:]

    def _deliver(self) -> None:
        """Delivers the change feeds, those of previous builds too."""
        from .changes import deliver_feeds

        earlier = deliver_feeds(self._publication)
        if earlier:
            message = f"{message_of('changes.delivered')}: {', '.join(earlier)}"
            self._report.warnings.append(Warning("changes.delivered", len(earlier), message))

    def write_page(self) -> None:
        """Writes the page of the option ``report``, if there is one.

        Raises:
            PublishError: ``output.report``.
        """
        target = self._options.report
        if target is None:
            return
        from ..html.build import build_page  # most builds have no page
        from ..html.document import write_page

        live = "; the new set is live" if self._report.published else ""
        write_page(target, build_page(self._report, self.details), undone=live)

    def _check_counts(self, parts: Sequence[Part]) -> None:
        """Checks that every row has one outcome, over all parts."""
        for part in parts:
            if not all(outcome.is_balanced() for outcome in part.outcomes):
                raise PublishError(
                    f"part {part.id}: its rows do not add up to its URLs and rejects; nothing was"
                    " published; please report this",
                    code="internal.fates",
                )
        if len(parts) > 1 and len(self._stems) > self._options.max_groups:
            raise DataError(
                f"split by {self._options.split_by!r}: there are more than"
                f" {self._options.max_groups:,} values (--max-groups); is it the right column?",
                code="split.too_many",
            )

    def _check(self, previous: Manifest | None) -> None:
        """Checks the guards against the data before anything is published."""
        report, options = self._report, self._options
        if _core.exceeds_rejects(json.dumps(options.core_json()), report.rejected, report.rows):
            codes = ", ".join(f"{code} {n}" for code, n in report.rejects["by_code"].items())
            raise RejectLimitError(
                f"{report.rejected:,} of {count(report.rows, 'row')} rejected, more than"
                f" {options.max_rejects} ({codes}); see {report.rejects['path']}; fix the data or"
                " allow more (--max-rejects)",
                code="rejects.limit",
            )
        if report.urls == 0:
            why = "there are no rows" if report.rows == 0 else "no row is left to write"
            raise DataError(
                f"{why}: an empty sitemap is illegal, so nothing was published"
                f" ({count(report.rows, 'row')}, {report.rejected:,} rejected,"
                f" {report.filtered:,} filtered)",
                code="rows.none",
            )
        live = previous.urls if previous is not None else 0
        shrink = parse_percent("max_shrink", options.max_shrink)
        if report.urls < live * (1 - shrink) * (1 - ROUNDING):
            raise DataError(
                f"{count(report.urls, 'URL')} instead of the {live:,} that are live, more than"
                f" {options.max_shrink} fewer: is the input complete? (--max-shrink 100%"
                " publishes all the same)",
                code="publish.shrank",
            )

    def _manifest(self, previous: Manifest | None) -> Manifest:
        """The manifest of this build, without its indexes."""
        options, plan = self._options, self._plan
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        before = {shard.path: shard for shard in previous.shards} if previous is not None else {}
        self._publication.expect(shard.path for shard in self._report.shards)
        # the same rows twice give one shard with a content name: the path is listed once
        records = {
            shard.path: self._record(shard, before.get(shard.path), now)
            for shard in self._report.shards
        }
        return Manifest(
            urlset=_core.__version__,
            name=plan.name,
            sets=plan.set_names,
            site=options.site,
            sitemap_url=options.folder_url(),
            config=plan.fingerprint,
            layout=options.layout,
            hosts=_hosts(plan),
            added=tuple(_core.address(url) for url in options.add_sitemap),
            keeps_duplicates=any(table.options.duplicates == "keep" for table in plan.sets),
            folder=self._publication.folder,
            urls=self._report.urls,
            shards=tuple(records.values()),
            indexes=(),
            retired=_retired(plan, previous, set(records)),
            # a build without the option keeps the stamps for the next one with it
            lastmod=previous.lastmod if previous is not None else None,
        )

    def _record(self, shard: Shard, before: ShardRecord | None, now: str) -> ShardRecord:
        stored = self._publication.stored(shard.path, staged=shard.changed)
        if stored is None:
            raise _vanished(shard.path)
        if stored.size != shard.compressed_bytes:
            raise PublishError(
                f"{shard.path} has {count(stored.size, 'byte')} of {shard.compressed_bytes:,}"
                " written; nothing was published; run the build again",
                code="output.damaged",
            )
        is_kept = before is not None and before.digest == shard.digest
        return ShardRecord(
            path=shard.path,
            urls=shard.urls,
            bytes=shard.bytes,
            compressed_bytes=shard.compressed_bytes,
            digest=shard.digest,
            lastmod=shard.lastmod,
            changed_at=before.changed_at if before is not None and is_kept else now,
            mtime_ns=stored.mtime_ns,
            host=self._hosts.get(shard.path),
            e_tag=stored.e_tag,
            first=self._firsts.get(shard.path),
            edge=shard.path in self._edges,
        )

    def _stage_indexes(self, manifest: Manifest) -> tuple[Manifest, list[str]]:
        """Stages the indexes that differ from the live ones.

        Returns:
            The manifest with all indexes; the staged ones, the first index last: it is the one
            that crawlers ask for.
        """
        options, report = self._options, self._report
        base = options.folder_url()
        shards = [(shard.path, shard.digest) for shard in report.shards]
        if not options.preset.index:  # the manifest then makes the build live
            check_files(shards, [])
            first = report.shards[0].path
            report.url = address(base, first, self._hosts.get(first))
            return manifest, []
        records = {record.path: record for record in manifest.shards}
        by_change = options.index_lastmod == "changed"
        limit = min(options.max_sitemaps, options.preset.max_sitemaps)
        overhead, first_index = self._publication.index_overhead, index_name(self._plan.name, 1)
        indexes: list[tuple[str, str | None, list[Shard]]] = []
        if self._shared or options.add_sitemap:
            indexes.append((self._plan.name, None, self._shared))
        indexes += [(stem, host, own) for (stem, host), own in self._own.items()]
        staged: dict[str, str] = {}
        named: list[IndexFile] = []
        for stem, host, listed in indexes:
            sitemaps = []
            for path in dict.fromkeys(shard.path for shard in listed):
                lastmod = records[path].changed_at if by_change else records[path].lastmod
                sitemaps.append(Sitemap(address(base, path, host), lastmod))
            if host is None and stem == self._plan.name:
                sitemaps += [Sitemap(_core.address(url)) for url in options.add_sitemap]
            for index, text in render_indexes(
                stem, sitemaps, max_sitemaps=limit, max_bytes=options.preset.max_bytes - overhead
            ):
                size = index.bytes + (overhead if index.path == first_index else 0)
                named.append(replace(index, bytes=size, url=address(base, index.path, host)))
                if not self._publication.is_live(index.path, text):
                    staged[index.path] = text
        report.indexes += named
        check_files(shards, [index.path for index in named])
        report.url = named[0].url
        self._publication.stage(staged)
        listing = tuple(IndexRecord(**asdict(index)) for index in named)
        return manifest._replace(indexes=listing), list(staged)[::-1]

    def _verify(self, manifest: Manifest, staged: set[str]) -> None:
        """Checks the whole set, staged or live."""
        from .check import StagedFile, check_staged

        started = time.monotonic()
        files, base = [], self._options.folder_url()
        listing = [(index.path, index.url, False) for index in manifest.indexes]
        for shard in manifest.shards:
            listing.append((shard.path, address(base, shard.path, shard.host), True))
        for name, url, is_listed in listing:
            path = self._publication.local(name, staged=name in staged)
            if path is None:
                raise _vanished(name)
            files.append(StagedFile(path, name, url, is_listed))
        check_staged(files, manifest)
        self._report.timings["verify"] = round(time.monotonic() - started, 4)


def _vanished(name: str) -> PublishError:
    return PublishError(
        f"{name} vanished while the build ran; run it again", code="publish.vanished"
    )


def address(base: str, path: str, host: str | None) -> str:
    """The URL of a file of the set.

    Args:
        base: of the output folder, as :meth:`urlset.options.Options.folder_url` has it.
        host: the host of its folder.
    """
    if host is not None and "{host}" in base:
        # the host serves OUT/HOST/
        return base.replace("{host}", host) + path.partition("/")[2]
    return base + path


def _add_counts(total: dict[str, int], counts: Any) -> None:
    for code, number in counts.items():
        total[code] = total.get(code, 0) + number


def _hosts(plan: Plan) -> tuple[str, ...] | None:
    """The hosts that URLs may have besides that of the site; none for any host."""
    hosts: set[str] = set()
    for table in plan.sets:
        if table.options.hosts == "any":
            return ()
        if table.options.hosts != "same":
            own = urlsplit(table.options.site).netloc
            hosts.update(host_list(f"{table.options.hosts},{own}") or ())
    return tuple(sorted(hosts)) or None


def _retired(plan: Plan, previous: Manifest | None, new: set[str]) -> tuple[str, ...]:
    """Shards of the previous generation that are kept for one more build.

    Crawlers still have old indexes. Only shards with content names can be kept. A build that
    changes nothing is not a generation.
    """
    if previous is None or not (plan.options.layout == "stable" or plan.content_named):
        return ()
    old = {shard.path for shard in previous.shards if content_named(shard.path)}
    if old == new:
        return tuple(sorted(previous.retired))
    return tuple(sorted(old - new))

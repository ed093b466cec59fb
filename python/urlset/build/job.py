"""``urlset.build``: wires source, core, index and publication."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .. import _core
from ..destination.folder import Folder, inside
from ..destination.outfile import check_writable, must_be_local
from ..destination.publish import LIVE, Publication
from ..destination.state import DEFAULT_NAME, REJECTS, VERSION, check_state_name, files_of
from ..errors import DataError, Error, PublishError, RejectLimitError
from ..option_table import options_of, replaced
from ..options import Options, parse_percent
from ..report import (
    Report,
    Shard,
    Warning,
    engine_warnings,
    explain_site_path,
    message_of,
    skipped_warnings,
    warnings_of,
)
from ..toml import SetTable, load, make_sets
from ..wording import count
from .changes import deliver_feeds, stage_feed
from .gzip import encoder
from .index import Sitemap, render_indexes
from .names import check_files, check_targets, must_not_be_of_a_set, splits_index, taken, taken_by
from .source import Feed, Source, feeds, must_not_be_read
from .source.objects import refuse_pages

if TYPE_CHECKING:
    from typing import Unpack

    from ..keywords import BuildKeywords

#: called about ten times a second while rows are read
OnProgress = Callable[["_core.Progress", list[Feed]], None]


#: 29 of 100 are 29%, though 0.29 * 100 is less than 29 in floating point
ROUNDING = 1e-12


def build(
    source: Source | Sequence[Source] = (),
    *,
    site: str | None = None,
    out: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
    **options: Unpack[BuildKeywords],
) -> Report:
    """Build sitemaps and their index, and publish them to a folder.

    Nothing of what is live changes unless all goes well.

    Args:
        source: a path (CSV, Parquet, Arrow IPC, JSON Lines, a list of URLs; a glob; a folder;
            ``-``), a URI, an object with ``__arrow_c_stream__``, an iterator of pyarrow record
            batches, or a sequence of these, taken one after the other. A list of strings is a
            list of paths and URIs. To publish URLs that are in a Python list, pass
            ``pyarrow.table({"loc": urls})``.
        site: the site that all URLs belong to, ``https://www.shop.example``.
        out: the folder to publish to.
        config: a ``urlset.toml``; what is given here goes before what stands there.
        on_progress: called about ten times a second with the progress and the inputs.
        options: those of the command line, with underscores; see ``urlset build --help``.

    Returns:
        What was done; its fields are those of ``--json``.

    Raises:
        ConfigError: wrong options, a missing or ambiguous column.
        InputError: an input is missing, unreadable or damaged.
        RejectLimitError: more rows were rejected than ``max_rejects`` allows.
        DataError: no valid row, duplicates under ``fail``, a set that shrank too far.
        PublishError: the output cannot be written, or another build holds the folder.
        KeyboardInterrupt: at once, also while an input opens or waits.
    """
    run = Build(Report(version=_core.__version__))
    given: dict[str, Any] = {"site": site, "out": out, **options}
    sources: tuple[Any, ...] = (source,)
    if isinstance(source, Sequence) and not (
        isinstance(source, (str, bytes, bytearray)) or hasattr(source, "__arrow_c_stream__")
    ):
        sources = tuple(source)
        refuse_pages(sources, options.get("format"))
    run.run(sources, given, config, on_progress)
    return run.report


class Build:
    """One build; its report tells as much as is known, also when it fails.

    Args:
        written: by option what the caller will write: none of it may be an input.
    """

    def __init__(self, report: Report, written: Mapping[str, Path] | None = None) -> None:
        self.report = report
        self._written = written or {}
        self._started = time.monotonic()
        self._seen = _core.Seen()
        # of each set, those that are not closed yet
        self._inputs: list[list[Feed]] = []
        # what the shards are split into: the stem of their names, the host, the shards
        self._groups: list[tuple[str | None, str | None, list[Shard]]] = []
        # where the core writes the rejects of each set, in the order of the sets
        self._rejects: list[Path] = []
        # stems that the values of a further set cannot have
        self._taken: list[str] = []
        # the sets are the ``[[set]]`` tables of a urlset.toml
        self._tables = False

    def run(
        self,
        sources: Sequence[Any],
        given: dict[str, Any],
        config: str | os.PathLike[str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Does all, and fills in the report."""
        try:
            sets = self._sets(sources, given, config)
            self._run(sets, on_progress)
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
            for feed in chain.from_iterable(self._inputs):
                # the error that came first is the one to tell
                with suppress(Error):
                    feed.close()
            self.report.seconds = round(time.monotonic() - self._started, 3)
            usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            self.report.peak_rss = usage if sys.platform == "darwin" else usage * 1024

    def _stopped(self, message: str) -> None:
        self.report.error = {"code": "interrupted", "message": message}

    def _sets(self, sources: Sequence[Any], given: dict[str, Any], config: Any) -> list[SetTable]:
        """What is to be built: the sets of a ``urlset.toml``, or one."""
        options = Options()
        data: dict[str, Any] = {}
        tables: list[dict[str, Any]] = []
        inputs: tuple[str, ...] = ()
        where = "urlset.build"
        if config is not None:
            data, tables, inputs = load(Path(config))
            where = os.fspath(config)
        # before anything else that may be wrong: the caller writes it of a failure, too
        read = [*sources, *inputs, *(one for table in tables for one in table["input"])]
        for name, target in self._written.items():
            must_be_local(name, target)
            must_not_be_read(name, target, read)
            out, state = (given.get(key) or data.get(key) for key in ("out", "state"))
            if isinstance(out, (str, os.PathLike)) and isinstance(
                state, (str, os.PathLike, NoneType)
            ):
                must_not_be_of_a_set(name, target, out, state)
        if data:
            options = replaced(options, data, where=where)
        given = {key: value for key, value in given.items() if value is not None}
        options = replaced(options, given, where="options").checked()
        if tables and not sources:
            sets = make_sets(options, tables, where=where)
            self._tables = True
            for table in sets:
                table.options.checked()
            return sets
        return [SetTable(tuple(sources) or inputs, options)]

    def _run(self, sets: list[SetTable], on_progress: OnProgress | None) -> None:
        options = sets[0].options
        out = Path(options.out)
        state = Path(options.state) if options.state is not None else None
        name, names = self._name(sets)
        check_state_name(name)
        for key in ("changes", "rejects"):
            target = getattr(options, key)
            if target is not None:
                must_not_be_read(key, Path(target), [one for table in sets for one in table.input])
        self._check_written(options, out, state)
        # inputs are looked at first: nothing is created for a name that was mistyped
        inputs = self._inputs
        for table in sets:
            inputs.append(feeds(table.input, table.options))
        skipped = [file for feeds_ in inputs for feed in feeds_ for file in feed.skipped]
        with Publication(out, state, name=name, sets=names) as publication:
            manifest = publication.manifest()
            recovered = {"publish.recovered": int(publication.recovered)}
            recovered["changes.recovered"] = publication.put_aside
            if options.changes is None or options.dry_run:
                recovered["changes.waiting"] = len(publication.feeds)
            self.report.warnings += warnings_of({c: n for c, n in recovered.items() if n})
            targets = {"changes": options.changes, "rejects": options.rejects}
            check_targets(targets, out, publication.state, files_of(manifest or {}))
            live = self._live(manifest, publication, _fingerprint(sets))
            started = time.monotonic()
            self._taken = taken([table.options for table in sets], _index_of_sets(sets))
            try:
                for table, feed in zip(sets, inputs, strict=True):
                    self._build_set(table, feed, publication, live, on_progress)
            except BaseException:
                self._keep_rejects(options, publication, False)
                raise
            self._keep_rejects(options, publication, True)
            self._check(options, manifest)
            new = self._manifest(sets, publication, manifest)
            moves = list(dict.fromkeys(shard.path for shard in self.report.shards if shard.changed))
            moves += self._stage_indexes(sets, publication, new)
            self.report.warnings += engine_warnings(options, self.report)
            self.report.warnings += skipped_warnings(skipped)
            self.report.timings["build"] = round(time.monotonic() - started, 4)
            if options.verify_staged:
                self._verify(options, publication, new)
            if options.dry_run:
                return
            undelivered = None
            if options.changes is not None:
                changed = {shard.path for shard in self.report.shards if shard.changed}
                target = Path(options.changes)
                undelivered = stage_feed(publication, manifest, new, changed, target)
            started = time.monotonic()
            try:
                publication.publish(moves, new, undelivered)
            except KeyboardInterrupt:
                if publication.pending():
                    self._stopped("stopped while publishing: the next build completes it")
                raise
            finally:
                self.report.published = publication.phase == LIVE
            self.report.published = True
            if publication.left:
                self.report.warnings += warnings_of({"publish.left": publication.left})
            if options.changes is not None:
                self._deliver(publication)
            self.report.timings["publish"] = round(time.monotonic() - started, 4)

    def _name(self, sets: list[SetTable]) -> tuple[str, tuple[str, ...]]:
        """The name that the state is kept under, and those of the ``[[set]]`` tables."""
        name = sets[0].options.name if len(sets) == 1 else _index_of_sets(sets)
        return name, tuple(table.options.name for table in sets) if self._tables else ()

    def _check_written(self, options: Options, out: Path, state: Path | None) -> None:
        """Finds what cannot be written before hours are spent on it."""
        there = (out, state if state is not None else out / ".urlset")
        targets = {name: getattr(options, name) for name in ("changes", "rejects")}
        for name, target in (*self._written.items(), *targets.items()):
            if target is None:
                continue
            try:
                check_writable(Path(target), will_exist=there, replaced=name in targets)
            except OSError as error:
                raise PublishError(
                    f"{name}: {error.filename or target}: {error.strerror}; nothing was read, and"
                    " what was live still is",
                    code=f"output.{name}",
                ) from None

    def _deliver(self, publication: Publication) -> None:
        """The change feeds, of former builds too, to where the user wants them."""
        earlier = deliver_feeds(publication)
        if earlier:
            message = f"{message_of('changes.delivered')}: {', '.join(earlier)}"
            self.report.warnings.append(Warning("changes.delivered", len(earlier), message))

    def _build_set(
        self,
        table: SetTable,
        inputs: list[Feed],
        publication: Publication,
        live: dict[str, dict[str, Any]],
        on_progress: OnProgress | None,
    ) -> None:
        progress = _core.Progress()
        tick = (lambda: on_progress(progress, inputs)) if on_progress is not None else None
        rejects = publication.state / f"rejects-{len(self._rejects)}.new"
        self._rejects.append(rejects)
        options = table.options
        try:
            text = _core.build(
                json.dumps(options.core_json() | {"taken": self._taken}),
                [(feed.name, feed.format, feed.handle, feed.gaps) for feed in inputs],
                publication.staging,
                rejects,
                progress,
                self._seen,
                encoder=encoder(options.level) if options.gzip else None,
                live=json.dumps(live),
                tick=tick,
            )
        except Error as error:
            known = getattr(error, "outcome", None)
            if known is not None:  # which rows were rejected, where they were too many
                self._add(json.loads(known), by_group=False)
            else:
                self.report.rows += progress.rows
            raise
        finally:
            while inputs:
                inputs.pop(0).close()
        self._add(json.loads(text), by_group=splits_index(options))
        explain_site_path(self.report, options.site)

    def _add(self, outcome: dict[str, Any], *, by_group: bool) -> None:
        """Adds the outcome of a set to the report."""
        report = self.report
        for key in ("rows", "urls", "rejected", "filtered", "duplicates", "expanded"):
            setattr(report, key, getattr(report, key) + outcome[key])
        by_code = report.rejects["by_code"]
        for code, number in outcome["rejects_by_code"].items():
            by_code[code] = by_code.get(code, 0) + number
        notes = {warning.code: warning.count for warning in report.warnings}
        for code, number in outcome["notes"].items():
            notes[code] = notes.get(code, 0) + number
        report.warnings = warnings_of(notes)
        shards = [Shard(**shard) for shard in outcome["shards"]]
        report.shards += shards
        for part in outcome["sets"]:
            own, shards = shards[: part["shards"]], shards[part["shards"] :]
            self._groups.append((part["stem"] if by_group else None, part["host"], own))
            self._taken += taken_by([part["stem"]])
        self._groups.append((None, None, shards))
        for chosen in outcome["mapping"]:
            report.mapping.setdefault(chosen["field"], chosen["from"])

    def _keep_rejects(self, options: Options, publication: Publication, whole: bool) -> None:
        """Puts the rejects where they belong, also when the build fails.

        Args:
            whole: all sets were built, so every rejected row must be there; otherwise the file
                knows more than the report.
        """
        target = Path(options.rejects or publication.state / REJECTS)
        parts = [part for part in self._rejects if part.exists()]
        if not parts:
            if options.rejects is None:
                with publication.writing(target):
                    publication.files.clear(REJECTS)  # those of a former build would mislead
            return
        from .rejects import check, keep

        if options.rejects is None and not publication.files.is_file(REJECTS):
            with publication.writing(target):  # a link or a pipe in the state folder is not written
                publication.files.clear(REJECTS)
        counts = keep(parts, target)
        self.report.rejects["path"] = str(target)
        if whole:
            check(counts, self.report.rejects["by_code"])
        else:
            self.report.rejects["by_code"] = counts
            self.report.rejected = sum(counts.values())

    def _check(self, options: Options, manifest: dict[str, Any] | None) -> None:
        """What the data must fulfil before anything is published."""
        report = self.report
        config = json.dumps(options.core_json())
        if _core.exceeds_rejects(config, report.rejected, report.rows):
            codes = ", ".join(f"{code} {n}" for code, n in report.rejects["by_code"].items())
            raise RejectLimitError(
                f"{report.rejected:,} of {count(report.rows, 'row')} rejected, more than"
                f" {options.max_rejects} ({codes}); see {report.rejects['path']}; mend the data or"
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
        former = int((manifest or {}).get("urls", 0))
        shrink = parse_percent("max_shrink", options.max_shrink)
        if report.urls < former * (1 - shrink) * (1 - ROUNDING):
            raise DataError(
                f"{count(report.urls, 'URL')} in place of {former:,} that are live, more than"
                f" {options.max_shrink} fewer: is the input whole? (--max-shrink 100%"
                " publishes all the same)",
                code="publish.shrank",
            )

    def _verify(self, options: Options, publication: Publication, manifest: dict[str, Any]) -> None:
        """Reads the whole set, staged or live, with the parser of ``urlset verify``."""
        from ..inspect.targets import Item
        from ..inspect.verify import verify_files

        started = time.monotonic()
        staged = {shard.path for shard in self.report.shards if shard.changed}
        items = []
        indexes = {index["path"] for index in manifest["indexes"]}
        for entry in manifest["indexes"] + manifest["shards"]:
            path = entry["path"]
            place = inside(publication.staging, path)
            if path not in staged and not place.exists():
                place = inside(publication.out, path)
            url = entry.get("url") or address(options, path, entry.get("host"))
            items.append(Item(place, path, url, path not in indexes))
        found = verify_files(items, manifest, duplicates=False)
        self.report.timings["verify"] = round(time.monotonic() - started, 4)
        wrong = [p for p in found.problems if p.severity == "error"]
        if wrong:
            problem = wrong[0]
            raise PublishError(
                f"{problem.file}: {problem.message} [{problem.code}]; nothing was published; this"
                " is a defect of urlset or of the disk, please report it",
                code="verify.staged",
            )
        # equal shards share a file, which is listed once and read once
        written = {entry["path"]: entry["urls"] for entry in manifest["shards"]}
        read = {file.name: file.urls for file in found.files if file.name in written}
        for path, urls in written.items():
            if read.get(path) != urls:
                raise PublishError(
                    f"{path}: {count(read.get(path, 0), 'URL')} read back of {urls:,} written;"
                    " nothing was published; please report this",
                    code="verify.staged",
                )

    def _stage_indexes(
        self, sets: list[SetTable], publication: Publication, manifest: dict[str, Any]
    ) -> list[str]:
        """Stages the indexes that are not live as they are, and adds all to the manifest.

        Returns:
            The staged ones, the first index last: it is what crawlers ask for.
        """
        options = sets[0].options
        shards_made = [(shard.path, shard.digest) for shard in self.report.shards]
        if not options.preset.index:  # the manifest is then what makes the build live
            check_files(shards_made, [])
            self.report.url = address(options, self.report.shards[0].path, self._groups[0][1])
            return []
        name = options.name if len(sets) == 1 else _index_of_sets(sets)
        entries = {entry["path"]: entry for entry in manifest["shards"]}
        when = "changed_at" if options.index_lastmod == "changed" else "lastmod"
        most = min(options.max_sitemaps, options.preset.max_sitemaps)
        # those that share an index, then those with one of their own
        shared = [shard for stem, _, shards in self._groups if stem is None for shard in shards]
        plans: list[tuple[str, str | None, list[Shard]]]
        plans = [(name, None, shared)] if shared or options.add_sitemap else []
        plans += [(stem, host, shards) for stem, host, shards in self._groups if stem is not None]
        fresh: dict[str, str] = {}
        for stem, host, shards in plans:
            paths = dict.fromkeys(shard.path for shard in shards)
            sitemaps = [Sitemap(address(options, p, host), entries[p][when]) for p in paths]
            if host is None and stem == name:
                sitemaps += [Sitemap(_core.address(url)) for url in options.add_sitemap]
            for index, text in render_indexes(
                stem, sitemaps, max_sitemaps=most, max_bytes=options.preset.max_bytes
            ):
                named = replace(index, url=address(options, index.path, host))
                self.report.indexes.append(named)
                manifest["indexes"].append(asdict(named))
                if not publication.is_live(index.path, text):
                    fresh[index.path] = text
        check_files(shards_made, [index.path for index in self.report.indexes])
        self.report.url = self.report.indexes[0].url
        publication.stage(fresh)
        return list(fresh)[::-1]

    def _manifest(
        self, sets: list[SetTable], publication: Publication, former: dict[str, Any] | None
    ) -> dict[str, Any]:
        """The manifest of this build, its indexes still to come."""
        options = sets[0].options
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        before = {entry["path"]: entry for entry in (former or {}).get("shards", ())}
        hosts = {shard.path: host for _, host, shards in self._groups for shard in shards if host}
        shards: dict[str, dict[str, Any]] = {}
        for shard in self.report.shards:
            entry = before.get(shard.path, {})
            kept = entry.get("digest") == shard.digest
            folder = publication.staged_files if shard.changed else publication.live_files
            # the same rows twice give one stable shard: the path is listed once
            shards[shard.path] = {
                "path": shard.path,
                "urls": shard.urls,
                "bytes": shard.bytes,
                "compressed_bytes": shard.compressed_bytes,
                "digest": shard.digest,
                "lastmod": shard.lastmod,
                "changed_at": entry["changed_at"] if kept else now,
                "mtime_ns": _mtime(folder, shard.path, shard.compressed_bytes),
                **({"host": hosts[shard.path]} if shard.path in hosts else {}),
            }
        name, names = self._name(sets)
        return {
            "manifest": VERSION,
            "urlset": _core.__version__,
            "name": name,
            **({"sets": list(names)} if names else {}),
            "site": options.site,
            "sitemap_url": options.folder_url(),
            "config": _fingerprint(sets),
            "layout": options.layout,
            **_allowed(sets),
            "folder": publication.folder,
            "urls": self.report.urls,
            "shards": list(shards.values()),
            "indexes": [],
            "retired": _retired(options, former, set(shards)),
        }

    def _live(
        self, manifest: dict[str, Any] | None, publication: Publication, fingerprint: str
    ) -> dict[str, dict[str, Any]]:
        """The live shards that the build may leave as they are.

        Under another configuration (another level of compression, say) or another urlset all is
        written anew, and so is what was changed by hand.
        """
        if manifest is None:
            return {}
        if (manifest.get("config"), manifest.get("urlset")) != (fingerprint, _core.__version__):
            self.report.warnings += warnings_of({"manifest.config": 1})
            return {}
        live = {}
        edited = 0
        for entry in manifest.get("shards", ()):
            if not publication.untouched(entry):
                edited += 1
                continue
            live[entry["path"]] = {
                "digest": entry["digest"],
                "compressed_bytes": entry["compressed_bytes"],
            }
        if edited:
            self.report.warnings += warnings_of({"manifest.edited": edited})
        return live


def _mtime(folder: Folder, path: str, size: int) -> int:
    """The time of a shard that is staged or stays live, in nanoseconds.

    Raises:
        PublishError: it is gone, or does not have the size that was written.
    """
    found = folder.stat(path)
    if found is None:
        raise PublishError(
            f"{path} vanished while the build ran; run it again", code="publish.vanished"
        )
    if found.st_size != size:
        raise PublishError(
            f"{path} has {count(found.st_size, 'byte')} of {size:,} written; nothing was"
            " published; run the build again",
            code="output.damaged",
        )
    return found.st_mtime_ns


def _allowed(sets: list[SetTable]) -> dict[str, Any]:
    """What the options let into the set though it is unusual; ``verify`` goes by it."""
    from ..inspect.verify import host_list

    said: dict[str, Any] = {}
    hosts: set[str] = set()
    for table in sets:
        if table.options.hosts == "any":
            said["hosts"] = "any"
        elif table.options.hosts != "same":
            own = urlsplit(table.options.site).netloc
            hosts |= set(host_list(f"{table.options.hosts},{own}") or ())
    if hosts:
        said.setdefault("hosts", sorted(hosts))
    added = [_core.address(url) for table in sets[:1] for url in table.options.add_sitemap]
    if added:
        said["added"] = added
    if any(table.options.duplicates == "keep" for table in sets):
        said["duplicates"] = "keep"
    return said


def _retired(options: Options, former: dict[str, Any] | None, new: set[str]) -> list[str]:
    """Stable shards of the former generation, kept one build longer: crawlers hold old indexes.

    A build that changes nothing is no generation.
    """
    if former is None or options.layout != "stable" or former.get("layout") != "stable":
        return []
    shards = {entry["path"] for entry in former["shards"]}
    if shards == new:
        return sorted(former.get("retired", ()))
    return sorted(shards - new)


def address(options: Options, path: str, host: str | None) -> str:
    """The address of a file of the output folder; ``host`` is that of its folder."""
    base = options.folder_url()
    if host is not None and "{host}" in base:
        # OUT/HOST/ is what that host serves
        return base.replace("{host}", host) + path.partition("/")[2]
    return base + path


def _index_of_sets(sets: list[SetTable]) -> str:
    """The name of the index over several sets: ``sitemap``, which no set may then be called."""
    names = {table.options.name for table in sets}
    name = DEFAULT_NAME
    while name in names:
        name += "-all"
    return name


def _fingerprint(sets: list[SetTable]) -> str:
    """Tells two configurations apart that would write other bytes for the same rows."""
    idle = {
        "out", "state", "threads", "rejects", "max_rejects", "max_shrink", "dry_run", "changes",
        "verify_staged",
    }  # fmt: skip
    texts = []
    for table in sets:
        values = {
            one.name: getattr(table.options, one.name)
            for one in options_of(Options)
            if one.name not in idle
        }
        texts.append(json.dumps(values, sort_keys=True, default=str))
    return _core.digest("\n".join(texts))

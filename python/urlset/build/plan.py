"""The plan of a job: checked options, the destination, the live set. It can be pickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any

from .. import _core
from ..destination import open_destination
from ..destination.interface import Destination, Publication
from ..destination.manifest import Manifest, content_named
from ..destination.objects import ABSENT
from ..destination.state import DEFAULT_NAME, check_state_name
from ..errors import ConfigError, PublishError
from ..option_table import options_of, replaced
from ..options import Options
from ..outfile import must_be_local
from ..toml import SetTable, load, make_sets
from ..transport.target import StoreTarget, Target, absolute, check_writable, must_differ, target_of
from .source import must_not_be_read, read_exclusion

#: options that change no byte of the output
NO_BYTES = frozenset({
    "out", "state", "threads", "rejects", "max_rejects", "max_shrink", "dry_run", "changes",
    "report", "verify_staged", "exclude", "header", "cache_control", "content_encoding",
    "conditional",
    # the content of a shard decides whether it is written again
    "lastmod_from", "lastmod_ignore", "lastmod_restart", "forget", "now",
})  # fmt: skip
#: options that name a file that a build writes besides the set
TARGETS = ("changes", "rejects", "report")


#: options that need all rows in one place, and what to do instead
ONE_PART_ONLY = {
    "duplicates": "a task cannot see the URLs of other tasks: prepare the rows with"
    " urlset.spark.prepare or urlset.ray.prepare, as the last step before the write, or remove"
    " duplicates in the engine",
    "sort": "a task sorts only its own rows: prepare the rows with urlset.spark.prepare or"
    " urlset.ray.prepare, as the last step before the write, or sort in the engine",
    "alternate_group": "the rows of a group may be in different parts: join them in the engine and"
    " use alternate",
    "lastmod_from": "a task cannot see the stamps of the last build: use urlset.build, or map a"
    " column with lastmod",
}
#: the same if the rows are ordered
ORDERED_ONLY = {
    "lastmod_from": ONE_PART_ONLY["lastmod_from"],
    "alternate_group": ONE_PART_ONLY["alternate_group"],
    "alternate_rows": "the URLs of a row would be in the ranges of different parts: write a row for"
    " each URL in the engine",
}


@dataclass(frozen=True)
class Plan:
    """The plan of a job.

    Attributes:
        sets: one set, or the ``[[set]]`` tables.
        has_tables: the sets are ``[[set]]`` tables.
        destination: the place of publication.
        settings: the configuration of the core for each set, fixed here so that every part of a
            job has the same clock.
        ordered: the rows of each part ascend by loc, and the parts do not overlap.
        job: the id of a job with several parts; None for a build in one process.
        version: the version of the live manifest.
        live: the live shards that the build does not write again, as the core packs them: every
            task of a job receives them.
        notes: the number of problems of the live set, by warning code.
    """

    sets: tuple[SetTable, ...]
    has_tables: bool
    destination: Destination
    settings: tuple[dict[str, Any], ...]
    ordered: bool = False
    job: str | None = None
    version: str = ABSENT
    live: bytes = b""
    notes: Mapping[str, int] = field(default_factory=dict)

    @property
    def options(self) -> Options:
        """The options of the whole build."""
        return self.sets[0].options

    @property
    def name(self) -> str:
        """The name of the state, and the stem of the index over all sets."""
        return self.options.name if len(self.sets) == 1 else index_of_sets(self.sets)

    @property
    def set_names(self) -> tuple[str, ...]:
        """The names of the ``[[set]]`` tables."""
        return tuple(table.options.name for table in self.sets) if self.has_tables else ()

    @property
    def content_named(self) -> bool:
        """Whether shards get content names in every layout."""
        return self.job is not None or self.destination.name_salt is not None

    @property
    def fingerprint(self) -> str:
        """A digest of the options that change output bytes."""
        return _fingerprint(self.sets)

    def publication(self) -> AbstractContextManager[Publication]:
        """The publication of this job, a context manager that locks."""
        return self.destination.publication(self.name, self.set_names, job=self.job)

    def with_live(self, publication: Publication) -> Plan:
        """The plan with the current live set."""
        manifest = publication.manifest()
        live, notes = _live(manifest, publication, self)
        return replace(self, version=publication.version, live=live, notes=notes)

    def with_absolute_targets(self) -> Plan:
        """The plan for processes with another working directory."""
        sets = []
        for table in self.sets:
            named = {name: getattr(table.options, name) for name in TARGETS}
            paths: dict[str, Any] = {
                name: str(absolute(target_of(one))) for name, one in named.items() if one
            }
            sets.append(replace(table, options=replace(table.options, **paths)))
        return replace(self, sets=tuple(sets))

    def check_targets(self, publication: Publication) -> None:
        """Checks that no other file that the build writes replaces one of the live set or state.

        Raises:
            ConfigError: ``config.{option}``.
        """
        manifest = publication.manifest()
        for option in TARGETS:
            target = getattr(self.options, option)
            files = manifest.files() if manifest is not None else ()
            if target is not None and publication.owns(target_of(target), files):
                raise ConfigError(
                    f"{option}: {str(target)!r} is a file of the set or of its state; write"
                    " it elsewhere",
                    code=f"config.{option}",
                )


def make_plan(
    sources: Sequence[Any],
    given: Mapping[str, Any],
    config: str | os.PathLike[str] | None,
    written: Mapping[str, Target],
) -> Plan:
    """Reads and checks the options.

    Args:
        sources: the inputs of the build; without any, those of ``config``.
        given: the options; they override those of ``config``.
        config: the path of a ``urlset.toml``.
        written: by option, the files that the caller writes: none may be an input.

    Raises:
        ConfigError: an option is wrong, or a file would replace another one.
    """
    options = Options()
    data: dict[str, Any] = {}
    tables: list[dict[str, Any]] = []
    inputs: tuple[str, ...] = ()
    where = "urlset.build"
    if config is not None:
        data, tables, inputs = load(Path(config))
        where = os.fspath(config)
    # before all other checks, since the caller writes these files also if one of them fails
    read = [*sources, *inputs, *(one for table in tables for one in table["input"])]
    exclude = given.get("exclude") or data.get("exclude")
    read += [exclude] if exclude is not None else []
    for name, target in written.items():
        if isinstance(target, Path):
            must_be_local(name, target)
        must_not_be_read(name, target, read)
        out, state = (given.get(key) or data.get(key) for key in ("out", "state"))
        if isinstance(out, (str, os.PathLike)) and isinstance(state, (str, os.PathLike, NoneType)):
            _must_not_be_of_a_set(name, target, open_destination(out, state))
    if data:
        options = replaced(options, data, where=where)
    given = {key: value for key, value in given.items() if value is not None}
    options = replaced(options, given, where="options").checked()
    has_tables = bool(tables) and not sources
    if has_tables:
        sets = tuple(make_sets(options, tables, where=where))
        for table in sets:
            table.options.checked()
            if table.options.lastmod_from:
                raise ConfigError(
                    "lastmod_from: not with [[set]] tables; build each set by itself, with its own"
                    " --name",
                    code="config.lastmod_from",
                )
    else:
        sets = (SetTable(tuple(sources) or inputs, options),)
    destination = open_destination(options.out, options.state, options)
    fixed = {"name_salt": destination.name_salt, "exclude": read_exclusion(options)}
    settings = tuple(table.options.core_json() | fixed for table in sets)
    plan = Plan(sets, has_tables, destination, settings)
    check_state_name(plan.name)
    for key in TARGETS:
        target = getattr(plan.options, key)
        if target is not None:
            excluded = [] if options.exclude is None else [options.exclude]
            read = [*excluded, *(one for table in sets for one in table.input)]
            must_not_be_read(key, target_of(target), read)
    names = {name: str(target) for name, target in written.items()}
    must_differ(names | {key: getattr(plan.options, key) for key in TARGETS})
    _check_writable(plan, written)
    return plan


def make_plan_of_parts(
    given: Mapping[str, Any], config: str | os.PathLike[str] | None, *, ordered: bool
) -> Plan:
    """The plan of a job with several parts.

    Raises:
        ConfigError: wrong options; ``job.option``: one that needs all rows in one place.
    """
    plan = make_plan((), given, config, {})
    if plan.has_tables:
        raise ConfigError(
            "set: a job with several parts builds one set; plan a job for each", code="job.option"
        )
    refused = ORDERED_ONLY if ordered else ONE_PART_ONLY
    for one in options_of(Options):
        if one.name in refused and getattr(plan.options, one.name) != one.default:
            raise ConfigError(
                f"{one.key}: not in a job with several parts: {refused[one.name]}",
                code="job.option",
            )
    settings = tuple(each | {"ordered": ordered} for each in plan.settings)
    return replace(plan, settings=settings, ordered=ordered)


def _must_not_be_of_a_set(option: str, target: Target, destination: Destination) -> None:
    """This is checked before any state is read, and also for the sets of other names."""
    if destination.reserves(target):
        raise ConfigError(
            f"{option}: {str(target)!r} has the name of a sitemap or of a file of the state;"
            " write it elsewhere",
            code=f"config.{option}",
        )


def _check_writable(plan: Plan, written: Mapping[str, Target]) -> None:
    """Finds files that cannot be written before hours are spent on the build."""
    targets = {name: getattr(plan.options, name) for name in TARGETS}
    for name, target in (*written.items(), *targets.items()):
        if target is None:
            continue
        try:
            check_writable(
                target if isinstance(target, StoreTarget) else target_of(target),
                will_exist=plan.destination.local_folders(),
                replaced=name in targets,
            )
        except OSError as error:
            raise PublishError(
                f"{name}: {error.filename or target}: {error.strerror}; nothing was read, and the"
                " previous set is still live",
                code=f"output.{name}",
            ) from None


def _live(
    manifest: Manifest | None, publication: Publication, plan: Plan
) -> tuple[bytes, dict[str, int]]:
    """The live shards that the build does not write again, and their problems, by code.

    Under another configuration (another compression level, for example) or another urlset every
    shard is written again, and so is a shard that was edited by hand.
    """
    if manifest is None:
        return b"", {}
    if (manifest.config, manifest.urlset) != (plan.fingerprint, _core.__version__):
        return b"", {"manifest.config": 1}
    live = [shard for shard in manifest.shards if publication.is_untouched(shard)]
    edited = len(manifest.shards) - len(live)
    packed = _core.pack_live(
        [
            (shard.path, shard.digest, shard.compressed_bytes)
            for shard in live
            # a numbered name that the core gives in a part is not the final one
            if plan.job is None or content_named(shard.path)
        ]
    )
    return packed, {"manifest.edited": edited} if edited else {}


def index_of_sets(sets: Sequence[SetTable]) -> str:
    """The stem of the index over several sets: ``sitemap``, unless a set has this name."""
    names = {table.options.name for table in sets}
    name = DEFAULT_NAME
    while name in names:
        name += "-all"
    return name


def _fingerprint(sets: Sequence[SetTable]) -> str:
    texts = []
    for table in sets:
        values = {
            one.name: getattr(table.options, one.name)
            for one in options_of(Options)
            if one.name not in NO_BYTES
        }
        texts.append(json.dumps(values, sort_keys=True, default=str))
    return _core.digest("\n".join(texts))

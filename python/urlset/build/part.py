"""The result of writing one part of a job: small, JSON-serialisable, the same on every machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any

from ..errors import ConfigError
from ..report import Shard

#: the outcomes of rows that a report and a part count
COUNTS = ("rows", "urls", "rejected", "filtered", "duplicates", "expanded")
#: the entries of a shard
_OF_SHARD = {one.name for one in fields(Shard)}
#: the name of a shard that the core numbered
_NUMBERED = r"(?s)(?P<stem>.+)-[0-9]{5,}(?P<suffix>\.(?:xml|txt)(?:\.gz)?)"
#: what a part contains; one that was edited must not damage the manifest or the index
_MAX = (1 << 63) - 1
_MAX_LOC = 2_047
_ID = r"[0-9a-f]{32}"
_REJECTS = rf"rejects-(?:part-)?{_ID}-[0-9]{{1,9}}\.new"
_HOST = r"[^\x00-\x20/<>&\"']+"
_PATH = (
    r"(?:[^./\x00][^/\x00]*/)?[^./\x00][^/\x00]*-[0-9a-f]{16}-[0-9a-f]{16}\.(?:xml|txt)(?:\.gz)?"
)
_DATE = (
    r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}"
    r"(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:[0-9]{2}))?)?)?"
)


@dataclass(frozen=True, slots=True)
class Group:
    """The shards of one value of ``split_by``.

    Attributes:
        stem: the first part of the names of its files.
        host: the host of its URLs, in a set that is split by host.
        shards: the number of its shards, which follow each other.
    """

    stem: str
    host: str | None
    shards: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcomes of the rows of one set.

    Attributes:
        rows: the number of rows read; ``expanded`` is the number of URLs beyond the first of a row.
        rejects_by_code: the number of rejected rows by code.
        notes: the number of warnings by code.
        shards: in the order of the rows.
        groups: the values of ``split_by``; their shards come first.
        mapping: the column of each field.
        firsts: the first loc of each shard, if the rows are ordered.
        last: the last loc of all, if the rows are ordered.
        ages: the ages of the lastmods, as ``_core.age_steps`` separates them; zeros if they were
            not counted.
    """

    rows: int
    urls: int
    rejected: int
    filtered: int
    duplicates: int
    expanded: int
    rejects_by_code: Mapping[str, int]
    notes: Mapping[str, int]
    shards: tuple[Shard, ...]
    groups: tuple[Group, ...]
    mapping: tuple[tuple[str, str], ...]
    firsts: tuple[str, ...] = ()
    last: str | None = None
    ages: tuple[int, ...] = ()

    @classmethod
    def of_core(cls, outcome: Mapping[str, Any]) -> Outcome:
        """The outcome that the core returned."""
        return cls(
            **{key: outcome[key] for key in COUNTS},
            rejects_by_code=outcome["rejects_by_code"],
            notes=outcome["notes"],
            shards=tuple(Shard(**shard) for shard in outcome["shards"]),
            groups=tuple(Group(**group) for group in outcome["sets"]),
            mapping=tuple((chosen["field"], chosen["from"]) for chosen in outcome["mapping"]),
            firsts=tuple(outcome.get("firsts", ())),
            last=outcome.get("last"),
            ages=tuple(outcome["ages"]),
        )

    @classmethod
    def unfinished(cls, rows: int) -> Outcome:
        """The outcome of a failed build, of which only the number of rows is known."""
        return cls(rows, 0, 0, 0, 0, 0, {}, {}, (), (), ())

    def named(self, names: Mapping[str, str]) -> Outcome:
        """The same outcome with other names of shards."""
        shards = (replace(shard, path=names.get(shard.path, shard.path)) for shard in self.shards)
        return replace(self, shards=tuple(shards))

    def sized(self, sizes: Mapping[str, int]) -> Outcome:
        """The same outcome with the sizes that the stored files have."""
        shards = (
            replace(shard, compressed_bytes=sizes.get(shard.path, shard.compressed_bytes))
            for shard in self.shards
        )
        return replace(self, shards=tuple(shards))

    def is_balanced(self) -> bool:
        """Whether every row has one outcome and every URL is in a shard."""
        after = self.urls + self.rejected + self.filtered + self.duplicates
        return (
            self.rows + self.expanded == after
            and self.urls == sum(shard.urls for shard in self.shards)
            and self.rejected == sum(self.rejects_by_code.values())
        )


def content_name(shard: Shard) -> str:
    """The name of a shard in a job with several parts, where no task knows its number."""
    match = re.fullmatch(_NUMBERED, shard.path)
    if match is None:
        return shard.path  # the stable layout has content names
    half = len(shard.digest) // 2
    return f"{match['stem']}-{shard.digest[:half]}-{shard.digest[half:]}{match['suffix']}"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a job that was written, but is not live. :meth:`urlset.Job.commit` takes it.

    Attributes:
        job: the id of its job.
        id: of this part; a part that is written again has another id.
        outcomes: those of the rows, by set.
        rejects: the names of the reject files.
    """

    job: str
    id: str
    outcomes: tuple[Outcome, ...]
    rejects: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of rows read."""
        return sum(outcome.rows for outcome in self.outcomes)

    @property
    def urls(self) -> int:
        """The number of URLs written."""
        return sum(outcome.urls for outcome in self.outcomes)

    @property
    def rejected(self) -> int:
        """The number of rows rejected."""
        return sum(outcome.rejected for outcome in self.outcomes)

    def to_json(self) -> str:
        """The part as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Part:
        """The part that :meth:`to_json` wrote.

        Raises:
            ConfigError: ``job.part``: it is not one.
        """
        try:
            content = json.loads(text)
            if re.search(r"(?i)\\ud[89a-f]", text):
                json.dumps(content, ensure_ascii=False).encode()  # a lone surrogate is not text
            job, own, rejects = (content[key] for key in ("job", "id", "rejects"))
            if not all(re.fullmatch(_ID, one) for one in (job, own)) or not isinstance(
                rejects, list
            ):
                raise ValueError("part")
            if not all(re.fullmatch(_REJECTS, name) for name in rejects):
                raise ValueError("rejects")
            return cls(job, own, tuple(map(_outcome, content["outcomes"])), tuple(rejects))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ConfigError("this is not a part of a job", code="job.part") from None


def _outcome(content: dict[str, Any]) -> Outcome:
    outcome = Outcome(
        **{
            **content,
            "shards": tuple(map(_shard, content["shards"])),
            "groups": tuple(Group(**group) for group in content["groups"]),
            "mapping": tuple((field, column) for field, column in content["mapping"]),
            "firsts": tuple(content["firsts"]),
            "ages": tuple(content.get("ages", ())),
        }
    )
    counts = [getattr(outcome, key) for key in COUNTS]
    for by_code in (outcome.rejects_by_code, outcome.notes):
        _check(isinstance(by_code, dict))
        counts += by_code.values()
    start = 0
    for group in outcome.groups:
        counts.append(group.shards)
        _check(group.host is None or re.fullmatch(_HOST, group.host))
        own = outcome.shards[start : start + group.shards]
        _check(all(shard.path.startswith(f"{group.stem}-") for shard in own))
        start += group.shards
    _check(start <= len(outcome.shards))
    _check(all(type(number) is int and 0 <= number <= _MAX for number in (*counts, *outcome.ages)))
    _check(all(isinstance(name, str) for pair in outcome.mapping for name in pair))
    if outcome.last is not None:
        _check(len(outcome.firsts) == len(outcome.shards) > 0)
        _check(all(0 < len(loc) <= _MAX_LOC and loc <= outcome.last for loc in outcome.firsts))
    else:
        _check(not outcome.firsts)
    return outcome


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return re.compile(_PATH), re.compile(_ID), re.compile(_DATE)


def _shard(content: dict[str, Any]) -> Shard:
    _check(content.keys() == _OF_SHARD)
    # the constructor of a frozen class takes five times as long, for each of 200,000 shards
    shard = object.__new__(Shard)
    shard.__dict__.update(content)
    path, digest, date = _patterns()
    _check(
        type(shard.urls) is type(shard.bytes) is type(shard.compressed_bytes) is int
        and 0 < shard.urls <= _MAX
        and 0 < shard.bytes <= _MAX
        and 0 < shard.compressed_bytes <= _MAX
        and type(shard.changed) is bool
        and path.fullmatch(shard.path)
        and digest.fullmatch(shard.digest)
        and (shard.lastmod is None or date.fullmatch(shard.lastmod))
    )
    return shard


def _check(is_right: object) -> None:
    if not is_right:
        raise ValueError("part")

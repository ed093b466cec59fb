"""The URLs that are audited: of sitemaps, or of a table, in batches that are read twice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from ..errors import ConfigError, InputError
from ..hosts import host_list
from ..inspect.lookup import find, is_url
from ..inspect.read import must_be_whole, thread_count
from ..inspect.targets import Found
from ..outfile import is_store
from ..rows import FORMATS, Rows
from .options import AuditOptions
from .page import host_of

if TYPE_CHECKING:
    import pyarrow as pa

#: strata that are read
MAX_STRATA = 50_000
#: values of ``by`` that are not columns, and how each follows from loc (RE2)
DERIVED = {
    "path": r"^[a-zA-Z]+://[^/?#]*(/[^/?#]*/?)?.*$",
    "host": r"^[a-zA-Z]+://(?:[^/?#@]*@)?([^/?#]*).*$",
}
#: the stratum of URLs without a value
NO_VALUE = "(none)"


class Batch(NamedTuple):
    """URLs, the name of the stratum of each, and the lastmod of each as text, if it is checked."""

    locs: pa.Array
    strata: pa.Array
    lastmods: pa.Array | None


class Population:
    """The URLs of a target.

    Attributes:
        by: what the strata are.
        hosts: hosts that may be fetched from, in the form of the core: empty for any host; None if
            the target does not say.
    """

    def __init__(
        self, batches: Callable[[], Iterator[Batch]], by: str, hosts: frozenset[str] | None
    ) -> None:
        self._batches, self.by, self.hosts = batches, by, hosts

    def __iter__(self) -> Iterator[Batch]:
        return self._batches()

    def sizes(self) -> tuple[dict[str, int], str | None]:
        """The number of URLs in each stratum, and the most frequent host.

        Raises:
            ConfigError: ``audit.strata``: too many strata.
            InputError: a file cannot be read.
        """
        import pyarrow.compute as pc

        sizes: Counter[str] = Counter()
        hosts: Counter[str] = Counter()
        for batch in self:
            for found, values in ((sizes, batch.strata), (hosts, derived(batch.locs, "host"))):
                for pair in pc.value_counts(values).to_pylist():
                    found[pair["values"]] += pair["counts"]
            if len(sizes) > MAX_STRATA:
                raise ConfigError(
                    f"by: {self.by} has more than {MAX_STRATA:,} values; choose one with fewer",
                    code="audit.strata",
                )
            if len(hosts) > MAX_STRATA:  # the frequent ones are enough
                hosts = Counter(dict(hosts.most_common(MAX_STRATA // 2)))
        most = hosts.most_common(1)
        return dict(sorted(sizes.items())), host_of(f"https://{most[0][0]}/") if most else None


def derived(locs: Any, what: str) -> Any:
    """The first part of the path, or the host, of each URL."""
    import pyarrow.compute as pc

    found = pc.replace_substring_regex(locs, pattern=DERIVED[what], replacement=r"\1")
    found = pc.utf8_lower(found) if what == "host" else pc.if_else(pc.equal(found, ""), "/", found)
    return pc.if_else(pc.match_substring_regex(locs, pattern=DERIVED[what]), found, NO_VALUE)


@contextmanager
def population(target: str | os.PathLike[str], options: AuditOptions) -> Iterator[Population]:
    """The URLs of sitemaps, as :func:`urlset.read` finds them, or of a table.

    Raises:
        InputError: the target does not exist or cannot be read.
        ConfigError: ``audit.column``: there is no such column.
    """
    text = os.fspath(target)
    if Path(text).suffix.lower() in (*FORMATS, ".ndjson") and not is_url(text):
        yield _of_table(text, options)
        return
    with ExitStack() as stack:
        found = stack.enter_context(find(target, allow_private=options.allow_private))
        must_be_whole(found, options.lenient)
        files = [(item.path, item.name) for item in found.items]
        count = thread_count(None)
        rows = Rows(_core.read_stream(files, count, options.lenient, stack), stack, count)
        by = options.by or "shard"
        _check_column(by, "shard", {field.name: field.type for field in rows.schema})

        def batches() -> Iterator[Batch]:
            for batch in rows:
                lastmods = batch["lastmod_text"] if options.check_lastmod else None
                yield Batch(batch["loc"], _strata(batch, batch["loc"], by), lastmods)

        yield Population(batches, by, _hosts_of(found, text))


def _of_table(path: str, options: AuditOptions) -> Population:
    """A table in a file; rows without a URL are left out."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    if is_store(path):
        raise ConfigError(
            f"{path}: a table is read from a local file; copy it first", code="audit.table"
        )
    kind = {".parquet": "parquet", ".arrow": "ipc", ".csv": "csv"}.get(Path(path).suffix.lower())
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file", code="target.missing", input=path)
    by = options.by or "none"

    def damaged(error: Exception) -> InputError:
        what = str(error).partition("\n")[0]
        return InputError(f"{path}: cannot be read: {what}", code="audit.table", input=path)

    try:
        table = ds.dataset(path, format=kind or "json")
        kinds = {field.name: field.type for field in table.schema}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(error) from None
    if options.loc not in kinds:
        raise ConfigError(
            f"{path}: there is no column {options.loc!r} with the URL (--loc COL); there are"
            f" {', '.join(list(kinds)[:20])}",
            code="audit.column",
        )
    _check_column(by, "none", kinds)
    wanted = {options.loc, *({by} & kinds.keys())}
    dated = options.check_lastmod and "lastmod" in kinds
    wanted |= {"lastmod"} if dated else set()

    def batches() -> Iterator[Batch]:
        try:
            for batch in table.to_batches(columns=sorted(wanted)):
                columns = {name: _text(batch[name]) for name in batch.schema.names}
                locs = pc.utf8_trim_whitespace(columns[options.loc])
                present = pc.greater(pc.utf8_length(locs), 0)
                rows, locs = pa.record_batch(columns).filter(present), locs.filter(present)
                yield Batch(locs, _strata(rows, locs, by), rows["lastmod"] if dated else None)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise damaged(error) from None

    return Population(batches, by, None)


def _check_column(by: str, default: str, kinds: dict[str, Any]) -> None:
    """Raises ConfigError unless strata can be made of ``by``."""
    if by in (default, "none", *DERIVED):
        return
    if by not in kinds or _is_nested(kinds[by]):
        names = [name for name, kind in kinds.items() if not _is_nested(kind)]
        listed = ", ".join(dict.fromkeys((default, "path", "host", "none", *names[:20])))
        raise ConfigError(f"by: there is no column {by!r}; write one of {listed}",
                          code="audit.column")  # fmt: skip


def _is_nested(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(kind))


def _strata(batch: Any, locs: Any, by: str) -> Any:
    """The stratum of each row as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if by in batch.schema.names:
        return pc.fill_null(_text(batch[by]), NO_VALUE)
    if by in DERIVED:
        return derived(locs, by)
    return pa.array(["all"] * batch.num_rows, pa.string())


def _text(column: Any) -> Any:
    import pyarrow as pa

    return column if column.type == pa.string() else column.cast(pa.string())


def _hosts_of(found: Found, target: str) -> frozenset[str] | None:
    """The hosts of the sets that were found; None if nothing says which they are."""
    hosts: set[str] = set()
    for item in found.items:
        rules = found.rules[item.rules]
        if rules.hosts is not None and not rules.hosts:
            return frozenset()
        hosts.update(rules.hosts or ())
        # the files may be on another host than the pages
        hosts.add(host_of(rules.site or item.url or ""))
    if is_url(target):
        hosts.add(host_of(target))
    return frozenset(hosts - {""}) or None


def allowed_hosts(given: Any, population: Population, frequent: str | None) -> frozenset[str]:
    """The hosts that may be fetched from; empty for any.

    Args:
        given: the option.
        frequent: the host of most URLs, for a target that does not say what its hosts are.

    Raises:
        ConfigError: ``verify.options``: text that is not a host.
    """
    if given is not None and given != "same":
        listed = host_list(given)
        return frozenset(listed or ())
    if population.hosts is not None:
        return population.hosts
    return frozenset({frequent} if frequent else ())

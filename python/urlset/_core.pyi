"""The Rust core; rust/python documents the attributes of its classes."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Final, Literal, Protocol, final

from _typeshed import SupportsWrite

__all__ = [
    "MAX_BYTES",
    "MAX_URLS",
    "Child",
    "Extension",
    "ExtensionOption",
    "FileReport",
    "Finding",
    "Listing",
    "Progress",
    "Reading",
    "Seen",
    "Stream",
    "Url",
    "__version__",
    "address",
    "age_steps",
    "build",
    "choose",
    "column_names",
    "count_rejects",
    "diff_stream",
    "digest",
    "exceeds_rejects",
    "exclude",
    "extensions",
    "find_live",
    "finding_codes",
    "is_prose",
    "limits",
    "loc_columns",
    "locs",
    "look",
    "pack_live",
    "peek",
    "preview",
    "read_index",
    "read_stream",
    "recognise",
    "split_url",
    "url_fault",
    "verify_files",
    "write_differences",
]

__version__: str

# configuration: limits and names that are defined in the core
MAX_URLS: int
MAX_BYTES: int

def limits() -> dict[str, tuple[int, int]]: ...
def column_names() -> dict[str, list[str]]: ...
def exceeds_rejects(config_json: str, rejected: int, rows: int) -> bool: ...

@final
class Progress:
    """How far a build has come."""

    def __new__(cls) -> Progress: ...
    rows: Final[int]
    urls: Final[int]
    shards: Final[int]
    bytes: Final[int]

@final
class Seen:
    """Which URLs the sets of one build have had so far."""

    def __new__(cls) -> Seen: ...

class _ShardSink(Protocol):
    def put(self, name: str, data: Any, digest: str, /) -> None: ...
    def finish(self) -> None: ...

def build(
    config_json: str,
    sources: Sequence[tuple[str, str, Any, Sequence[tuple[int, int]]]],
    sink: str | PathLike[str] | _ShardSink,
    rejects: str | PathLike[str],
    progress: Progress,
    seen: Seen,
    *,
    encoder: Callable[[], Any] | int | None = None,
    live: bytes | None = None,
    tick: Callable[[], object] | None = None,
    lastmod: tuple[tuple[int, str, str] | None, str | PathLike[str]] | None = None,
) -> str: ...
def choose(config_json: str, names: Sequence[str], kinds: str) -> tuple[list[str], str]: ...
def loc_columns(config_json: str, names: Sequence[str], kinds: str) -> list[str]: ...
def locs(
    config_json: str, name: str, object: Any, bounds: Sequence[str], without: int
) -> list[bytes]: ...
def count_rejects(path: str | PathLike[str]) -> dict[str, tuple[int, list[int]]]: ...
def address(url: str) -> str: ...
def digest(data: str | bytes) -> str: ...
def pack_live(shards: Sequence[tuple[str, str, int]]) -> bytes: ...
def find_live(live: bytes, path: str) -> tuple[str, int] | None: ...
def look(config_json: str, path: str, format: str, begun: Any = None) -> list[str]: ...
def is_prose(head: bytes, whole: bool, encoding: str | None) -> bool: ...
def recognise(head: bytes, whole: bool, encoding: str | None) -> str: ...
def exclude(config_json: str, name: str, format: str, object: Any) -> str: ...
def preview(config_json: str, name: str, format: str, object: Any, limit: int) -> str: ...

@final
class ExtensionOption:
    """An option of ``build`` that belongs to an extension.

    ``kind`` is ``columns`` (a list), ``pairs`` (a list of ``KEY=COLUMN``), ``column``, ``text``,
    ``flag``, or ``age`` (``keep``, ``omit`` or ``drop`` old values). Only the options of the first
    three kinds name columns; a text sitemap cannot have them.
    """

    name: Final[str]
    kind: Final[Literal["columns", "pairs", "column", "text", "flag", "age"]]
    metavar: Final[str | None]
    help: Final[str]

@final
class Extension:
    """An extension of the sitemap format, as its descriptor in the core describes it."""

    name: Final[str]
    prefix: Final[str]
    options: Final[list[ExtensionOption]]
    warnings: Final[list[tuple[str, str]]]
    column_words: Final[list[str]]

def extensions() -> list[Extension]: ...

# verify
class _Target(Protocol):
    """A file to verify; ``rules`` is an index of the rules."""

    @property
    def path(self) -> PathLike[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str | None: ...
    @property
    def listed(self) -> bool: ...
    @property
    def rules(self) -> int: ...

class _Rules(Protocol):
    """What a set of files may contain although it is unusual."""

    @property
    def hosts(self) -> Sequence[str] | None: ...
    @property
    def added(self) -> Sequence[str]: ...
    @property
    def keeps_duplicates(self) -> bool: ...

@final
class FileReport:
    """What was found in one file."""

    kind: Final[str]
    urls: Final[int]
    bytes: Final[int]
    size: Final[int]
    gzip: Final[bool]
    children: Final[list[Child]]
    findings: Final[list[Finding]]
    counts: Final[dict[str, int]]
    ages: Final[list[int]]

def verify_files(
    targets: Sequence[_Target],
    rules: Sequence[_Rules],
    threads: int | None,
    memory: int,
    duplicates: bool,
    reciprocity: bool,
    most: int,
) -> list[FileReport]: ...
def age_steps() -> list[int]: ...
def finding_codes() -> list[tuple[str, str, str]]: ...

@final
class Child:
    """An entry of an index."""

    loc: Final[str]
    lastmod: Final[str | None]
    line: Final[int]
    offset: Final[int]

@final
class Finding:
    """One finding; the attributes are those of ``urlset.inspect.verify.Problem``."""

    code: Final[str]
    severity: Final[str]
    line: Final[int]
    offset: Final[int]
    url: Final[str | None]
    message: Final[str]
    help: Final[str]

@final
class Listing:
    """The kind of a file and, for an index, its entries."""

    kind: Final[str]
    entries: Final[int]
    children: Final[list[Child]]
    findings: Final[list[Finding]]
    first_break: Final[Finding | None]

def peek(path: PathLike[str]) -> Listing: ...
def read_index(path: PathLike[str]) -> Listing: ...

# URLs
@final
class Url:
    """The parts of an absolute http or https URL."""

    scheme: Final[str]
    userinfo: Final[str | None]
    host: Final[str]
    port: Final[int | None]
    path: Final[str]
    query: Final[str | None]
    fragment: Final[str | None]
    authority: Final[str]
    origin: Final[str]

def split_url(text: str) -> Url | None: ...
def url_fault(text: str) -> str | None: ...

@final
class Stream:
    """Rows that can be read any number of times, each time from the files."""

    def open(self) -> Reading: ...
    def __arrow_c_schema__(self) -> object: ...
    def write_parquet(self, file: SupportsWrite[bytes], threads: int) -> int: ...
    def counts(self) -> tuple[int, int, int, int] | None: ...
    def close(self) -> None: ...

@final
class Reading:
    """One pass over the rows."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def check(self) -> None: ...
    def wait(self) -> None: ...

def read_stream(
    files: Sequence[tuple[PathLike[str], str]], threads: int, lenient: bool, keep: object
) -> Stream: ...
def diff_stream(
    old: Sequence[tuple[PathLike[str], str, str | None]],
    new: Sequence[tuple[PathLike[str], str, str | None]],
    threads: int,
    memory: int,
    lenient: bool,
    keep: object,
) -> Stream: ...
def write_differences(
    old: PathLike[str], new: PathLike[str], cut_old: PathLike[str], cut_new: PathLike[str]
) -> tuple[bool, bool] | None: ...

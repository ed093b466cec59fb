"""The Rust core."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, final

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
    "build",
    "choose",
    "column_names",
    "count_rejects",
    "diff_stream",
    "digest",
    "exceeds_rejects",
    "extensions",
    "finding_codes",
    "is_prose",
    "limits",
    "look",
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
    @property
    def rows(self) -> int: ...
    @property
    def urls(self) -> int: ...
    @property
    def shards(self) -> int: ...
    @property
    def bytes(self) -> int: ...

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
    live: str = "{}",
    tick: Callable[[], object] | None = None,
) -> str: ...
def choose(config_json: str, names: Sequence[str], kinds: str) -> tuple[list[str], str]: ...
def count_rejects(path: str | PathLike[str]) -> dict[str, int]: ...
def address(url: str) -> str: ...
def digest(data: str | bytes) -> str: ...
def look(config_json: str, path: str, format: str, begun: Any = None) -> list[str]: ...
def is_prose(head: bytes, whole: bool, encoding: str | None) -> bool: ...
def recognise(head: bytes, whole: bool, encoding: str | None) -> str: ...
def preview(config_json: str, name: str, format: str, object: Any, limit: int) -> str: ...

@final
class ExtensionOption:
    """An option of ``build`` that belongs to an extension.

    ``kind`` is ``columns`` (a list), ``pairs`` (a list of ``KEY=COLUMN``), ``column``, ``text``,
    ``flag``, or ``age`` (``keep``, ``omit`` or ``drop`` old values). Only the options of the first
    three kinds name columns; a text sitemap cannot have them.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["columns", "pairs", "column", "text", "flag", "age"]: ...
    @property
    def metavar(self) -> str | None: ...
    @property
    def help(self) -> str: ...

@final
class Extension:
    """An extension of the sitemap format, as its descriptor in the core describes it."""

    @property
    def name(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def options(self) -> list[ExtensionOption]: ...
    @property
    def warnings(self) -> list[tuple[str, str]]: ...
    @property
    def column_words(self) -> list[str]: ...

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
    def kept_duplicates(self) -> bool: ...

class _Checks(Protocol):
    """The options of a check."""

    @property
    def threads(self) -> int | None: ...
    @property
    def memory(self) -> int: ...
    @property
    def duplicates(self) -> bool: ...
    @property
    def reciprocity(self) -> bool: ...
    @property
    def most(self) -> int: ...

@final
class FileReport:
    """What was found in one file.

    Attributes:
        kind: ``urlset index text feed unknown``.
        urls: entries, invalid ones included.
        bytes: size before compression.
        size: size on disk.
        gzip: whether the file is compressed.
        children: the entries of an index.
        findings: the listed findings.
        counts: the number of all findings by code.
    """

    @property
    def kind(self) -> str: ...
    @property
    def urls(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def gzip(self) -> bool: ...
    @property
    def children(self) -> list[Child]: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def counts(self) -> dict[str, int]: ...

def verify_files(
    targets: Sequence[_Target], rules: Sequence[_Rules], checks: _Checks
) -> list[FileReport]: ...
def finding_codes() -> list[tuple[str, str, str]]: ...

@final
class Child:
    """An entry of an index."""

    @property
    def loc(self) -> str: ...
    @property
    def lastmod(self) -> str | None: ...
    @property
    def line(self) -> int: ...
    @property
    def offset(self) -> int: ...

@final
class Finding:
    """One finding; the attributes are those of ``urlset.inspect.verify.Problem``."""

    @property
    def code(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def url(self) -> str | None: ...
    @property
    def message(self) -> str: ...
    @property
    def help(self) -> str: ...

@final
class Listing:
    """The kind of a file and, for an index, its entries.

    Attributes:
        kind: ``urlset index text feed unknown``, or ``other``: XML, but not a sitemap.
        entries: the number of entries that were read, invalid ones included.
        children: the entries of an index, at most 50,000; empty for any other file.
        findings: the first finding of each code, in the order of the file.
        first_break: the first finding that makes the file unreliable.
    """

    @property
    def kind(self) -> str: ...
    @property
    def entries(self) -> int: ...
    @property
    def children(self) -> list[Child]: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def first_break(self) -> Finding | None: ...

def peek(path: PathLike[str]) -> Listing: ...
def read_index(path: PathLike[str]) -> Listing: ...

# URLs
@final
class Url:
    """The parts of an absolute http or https URL.

    Attributes:
        scheme: ``http`` or ``https``.
        userinfo: the part before ``@``.
        host: in lower case; an IPv6 address with its brackets.
        port: None for the default port of the scheme.
        path, query, fragment: as written, without their ``?`` and ``#``.
        authority: host, and port if it is not the default: ``www.shop.example:8080``.
        origin: scheme and authority: ``https://www.shop.example``.
    """

    @property
    def scheme(self) -> str: ...
    @property
    def userinfo(self) -> str | None: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int | None: ...
    @property
    def path(self) -> str: ...
    @property
    def query(self) -> str | None: ...
    @property
    def fragment(self) -> str | None: ...
    @property
    def authority(self) -> str: ...
    @property
    def origin(self) -> str: ...

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

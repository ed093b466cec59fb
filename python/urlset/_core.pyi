"""The Rust core."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, final

from _typeshed import SupportsWrite

__all__ = [
    "MAX_BYTES",
    "MAX_URLS",
    "Extension",
    "ExtensionOption",
    "Progress",
    "Reading",
    "Seen",
    "Stream",
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
    "read_stream",
    "recognise",
    "trim",
    "verify_files",
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

def build(
    config_json: str,
    sources: Sequence[tuple[str, str, Any, Sequence[tuple[int, int]]]],
    folder: str | PathLike[str],
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
def digest(text: str) -> str: ...
def look(config_json: str, path: str, format: str, begun: Any = None) -> list[str]: ...
def is_prose(head: bytes, whole: bool, encoding: str | None) -> bool: ...
def recognise(head: bytes, whole: bool, encoding: str | None) -> str: ...
def preview(config_json: str, name: str, format: str, object: Any, most: int) -> str: ...

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

# reading back: verify, read, diff
def verify_files(
    targets: Sequence[tuple[PathLike[str], str, str | None, bool, int]],
    *,
    threads: int | None,
    memory: int,
    duplicates: bool,
    reciprocity: bool,
    most: int,
    rules: Sequence[tuple[Sequence[str] | None, Sequence[str], bool]],
) -> str: ...
def finding_codes() -> list[tuple[str, str, str]]: ...
def peek(path: PathLike[str]) -> tuple[str, list[tuple[str, str | None, int, int]]]: ...

@final
@final
class Stream:
    """Rows that can be read any number of times, each time anew."""

    def open(self) -> Reading: ...
    def __arrow_c_schema__(self) -> object: ...
    def write_parquet(self, file: SupportsWrite[bytes], threads: int) -> int: ...
    def counts(self) -> tuple[int, int, int, int] | None: ...
    def close(self) -> None: ...

@final
class Reading:
    """The rows, read once."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
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
def trim(
    old: PathLike[str], new: PathLike[str], cut_old: PathLike[str], cut_new: PathLike[str]
) -> tuple[bool, bool] | None: ...

__version__: str

# reading back: verify, read, diff
from collections.abc import Sequence
from os import PathLike
from typing import final

def verify_files(
    targets: Sequence[tuple[PathLike[str], str, str | None, bool]],
    *,
    threads: int | None,
    memory: int,
    duplicates: bool,
    reciprocity: bool,
    most: int,
) -> str: ...
def finding_codes() -> list[tuple[str, str, str]]: ...
def peek(path: PathLike[str]) -> tuple[str, list[tuple[str, str | None, int, int]]]: ...

@final
class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def counts(self) -> tuple[int, int, int, int] | None: ...

def read_stream(
    files: Sequence[tuple[PathLike[str], str]], threads: int, lenient: bool
) -> Stream: ...
def diff_stream(
    old: Sequence[tuple[PathLike[str], str, str | None]],
    new: Sequence[tuple[PathLike[str], str, str | None]],
    threads: int,
    memory: int,
    lenient: bool,
) -> Stream: ...

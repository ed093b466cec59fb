__version__: str

# reading back: verify, read, diff
from os import PathLike

def verify_files(
    targets: list[tuple[PathLike[str], str, str | None, bool]],
    *,
    threads: int | None,
    memory: int,
    duplicates: bool,
    reciprocity: bool,
    most: int,
) -> str: ...
def finding_codes() -> list[tuple[str, str, str]]: ...
def peek(path: PathLike[str]) -> tuple[str, list[tuple[str, str | None, int, int]]]: ...

"""The format of an input, by its name and its first bytes, and the data files of a folder."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ... import _core
from ...errors import ConfigError, InputError
from ...options import Options

CSV_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".psv")
PARQUET_ENDINGS = (".parquet", ".pq", ".parq")
ARROW_ENDINGS = (".arrow", ".arrows", ".feather", ".ipc")
JSONL_ENDINGS = (".jsonl", ".ndjson")
COMPRESSED_ENDINGS = (".gz", ".zst", ".zstd", ".bz2", ".xz")

#: endings of files beside data that are not data
OTHER_ENDINGS = (
    ".md", ".rst", ".html", ".htm", ".xml", ".xsd", ".json", ".yaml", ".yml", ".toml", ".ini",
    ".crc", ".md5", ".sha1", ".sha256", ".asc", ".sig", ".log", ".lock", ".bak", ".tmp", ".swp",
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".ico", ".pdf", ".doc", ".docx", ".sql",
    ".py", ".sh", ".js", ".css", ".ipynb", ".zip", ".tar", ".tgz", ".7z", ".xls", ".xlsx", ".ods",
)  # fmt: skip
#: names of documents about data, with or without an ending
ABOUT = r"(?i)(readme|licen[cs]e|copying|notice|changelog|changes|authors|makefile)([._-].*)?"

#: bytes read to detect a format; a complete block of bzip2 needs up to 1 MiB
HEAD = 64 << 10
BZIP2_HEAD = 1 << 20


def by_ending(name: str) -> str | None:
    """The format by the ending of a name."""
    name = name.lower()
    for packed in COMPRESSED_ENDINGS:
        name = name.removesuffix(packed)
    for format, endings in (
        ("csv", CSV_ENDINGS),
        ("parquet", PARQUET_ENDINGS),
        ("arrow", ARROW_ENDINGS),
        ("jsonl", JSONL_ENDINGS),
    ):
        if name.endswith(endings):
            return format
    return None


def is_text_list(name: str) -> bool:
    """Whether a name may be that of a list of URLs: ``.txt``, compressed or not."""
    name = name.lower()
    for packed in COMPRESSED_ENDINGS:
        name = name.removesuffix(packed)
    return name.endswith(".txt")


def format_of(
    name: str, head: bytes, options: Options, *, shown: str | None = None, whole: bool = False
) -> str:
    """The format of an input by its name and its first bytes.

    Args:
        name: a path, ``-``, or the path of a URI.
        shown: the name in errors.
        whole: ``head`` is the whole input.

    Raises:
        InputError: ``input.format``: a known format that urlset does not read.
    """
    shown = name if shown is None else shown
    try:
        found = _core.recognise(head, whole, options.encoding)
    except InputError as error:
        raise InputError(f"{shown}: {error}", code=error.code, input=shown) from None
    ending = by_ending(name)
    if found in ("parquet", "arrow") or ending is None:
        # a delimiter implies columns
        return "csv" if found == "lines" and options.delimiter else found
    if found == "lines" and is_text_list(name) and not options.delimiter:
        return found
    return ending


def format_of_file(path: str, options: Options) -> str:
    """The format of a file."""
    if options.format is not None:
        return options.format
    if not Path(path).is_file():
        return by_ending(path) or "csv"
    head, whole = head_of(path)
    return format_of(path, head, options, whole=whole)


def head_of(path: str) -> tuple[bytes, bool]:
    """The first bytes of a file, and whether they are the whole file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - the string of the user
            head = file.read(HEAD)
            if head.startswith(b"BZh"):
                head += file.read(BZIP2_HEAD)
            return head, len(head) == os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", code="input.unreadable", input=path) from None


def data_files(folder: Path, options: Options) -> tuple[list[str], list[str]]:
    """The files of a folder that are data, and the names of the others.

    Files with the ending of a format are data. If there are none, files are data whose content can
    be data, unless their name has the ending of something else.

    Raises:
        InputError: a folder cannot be read.
    """

    def failed(error: OSError) -> None:
        raise InputError(
            f"{error.filename}: {error.strerror}", code="input.unreadable", input=str(folder)
        )

    files: list[Path] = []
    skipped: list[str] = []
    for place, folders, names in os.walk(folder, onerror=failed):
        here = Path(place).relative_to(folder)
        hidden = [name for name in folders if name.startswith((".", "_"))]
        skipped += [f"{here / name}/" for name in hidden]
        folders[:] = sorted(set(folders) - set(hidden))
        for name in names:
            if name.startswith((".", "_")):
                skipped.append(str(here / name))
            elif (folder / here / name).is_file():
                files.append(here / name)
    files.sort()
    if options.format in (None, "csv"):
        texts = {file for file in files if is_text_list(file.name)}
        files = [one for one in files if one not in texts or not _is_prose(folder / one, options)]
        skipped += [str(file) for file in sorted(texts.difference(files))]
    named = [file for file in files if by_ending(file.name) and not re.fullmatch(ABOUT, file.name)]
    if options.format is not None or not named:
        data = [file for file in files if _may_be_data(folder / file, options)]
    else:
        data = named
    skipped += [str(file) for file in sorted(set(files) - set(data))]
    return [str(folder / file) for file in data], sorted(skipped)


def _is_prose(file: Path, options: Options) -> bool:
    """Whether a text file lacks the column of a build and contains neither URLs nor a table."""
    config = json.dumps(options.core_json())
    try:
        columns = _core.look(config, str(file), "csv")
        _core.choose(config, columns, "t" * len(columns))
    except ConfigError as error:
        return error.code == "column.missing" and _core.is_prose(
            *head_of(str(file)), options.encoding
        )
    except InputError:  # the build reports it
        pass
    return False


def _may_be_data(file: Path, options: Options) -> bool:
    """Whether a file may be data although its ending is not that of a format."""
    if re.fullmatch(ABOUT, file.name):
        return False
    if by_ending(file.name):
        return True
    try:
        head, whole = head_of(str(file))
        found = format_of(str(file), head, options, whole=whole)
    except InputError:
        return False
    other = file.name.lower().endswith(OTHER_ENDINGS)
    if options.format is not None:
        texts = ("csv", "lines")
        same = found in texts if options.format in texts else found == options.format
        return same and not (other and found in texts)
    # Spark writes JSON Lines as .json
    return found != "csv" or not other

"""Paths: files, folders, globs, pipes, standard input."""

from __future__ import annotations

import glob
import io
import os
import stat
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ...errors import InputError
from ...interruptible import interruptible
from ...options import Options
from .input import Input, file_format
from .names import by_ending, data_files, format_of_file, is_text_list
from .scan import dataset_input


def path_inputs(path: str, options: Options) -> Iterable[Input]:
    """The inputs at a path, a glob, a folder, a URI, or ``-``."""
    if path == "-":
        return [_stdin_input(options)]
    if "://" in path:
        from .database import database_input, is_database

        if is_database(path):
            return [database_input(path, options)]
        from .remote import uri_inputs

        return uri_inputs(path, options, path_inputs)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path!r}: the name of the file is not UTF-8; rename it, or use standard input",
            code="input.name",
        ) from None
    place = Path(path)
    if place.is_dir():
        return _folder_inputs(place, options)
    if not place.exists() and glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise InputError(f"{path}: no file matches", code="input.missing", input=path)
        return _files_inputs(found, path, options)
    if not place.exists():
        raise InputError(f"{path}: No such file or directory", code="input.missing", input=path)
    return [_file_input(path, options)]


def _file_input(path: str, options: Options) -> Input:
    """One file, or a pipe or device with a path."""
    place = Path(path)
    if not place.is_file():
        return _pipe_input(path, options)
    match format_of_file(path, options):
        case "parquet":
            if _in_hive(path):
                return interruptible(lambda: dataset_input(path, path, options))
            return Input(path, "parquet", size=place.stat().st_size)
        case "arrow":
            return Input(path, "ipc", size=place.stat().st_size)
        case "jsonl":
            from .jsonl import jsonl_input

            return interruptible(lambda: jsonl_input(path, path, options))
        case format:
            return Input(path, file_format(format), size=place.stat().st_size)


def _pipe_input(path: str, options: Options) -> Input:
    """A FIFO or a device: it can be opened only once, and may never deliver data."""
    format = options.format or by_ending(path)
    if format == "parquet":
        raise InputError(
            f"{path}: Parquet needs a regular file: its metadata is at the end",
            code="input.format",
            input=path,
        )
    if format == "csv" and (options.format is not None or not is_text_list(path)):
        return Input(path, "csv")
    from .pipe import stream_input
    from .stream import Stream

    try:
        file = io.FileIO(path)
        return stream_input(Stream(file), path, options, descriptor=file.fileno())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", code="input.unreadable", input=path) from None


def _stdin_input(options: Options) -> Input:
    """Standard input; Parquet is spooled to a temporary file: its metadata is at the end."""
    if sys.stdin is None:  # as with <&-; descriptor 0 may be another file now
        raise InputError("-: standard input is closed", code="input.unreadable", input="-")
    if options.format == "csv":
        return Input("-", "csv")
    from .pipe import stream_input
    from .stream import Stream

    descriptor = 0
    stream = Stream(io.FileIO(descriptor, closefd=False))
    try:
        known = os.fstat(descriptor)
        if (
            options.format in (None, "parquet")
            and stat.S_ISREG(known.st_mode)
            and os.lseek(descriptor, 0, os.SEEK_CUR) == 0
            and _head(descriptor) == b"PAR1"
        ):  # the shell opened a file: it is read in place
            return Input("-", "parquet", begun=(descriptor, b""), size=known.st_size)
        return stream_input(stream, "-", options, descriptor=descriptor)
    except OSError as error:
        raise InputError(f"-: {error.strerror}", code="input.unreadable", input="-") from None


def _head(descriptor: int) -> bytes:
    """The first four bytes of a file, whose position stays at its begin."""
    head = os.read(descriptor, 4)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return head


def _folder_inputs(folder: Path, options: Options) -> list[Input]:
    files, skipped = data_files(folder, options)
    if not files:
        why = f" with data (there are {', '.join(skipped[:5])})" if skipped else ""
        raise InputError(
            f"{folder}: contains no file{why}", code="input.missing", input=str(folder)
        )
    kinds = {options.format or format_of_file(file, options) for file in files}
    if len(kinds) > 1:
        raise InputError(
            f"{folder}: contains files of several formats ({', '.join(sorted(kinds))}); select them"
            " with a glob, or with --format",
            code="input.mixed",
            input=str(folder),
        )
    [first, *rest] = _files_inputs(files, str(folder), options, base=str(folder))
    return [replace(first, skipped=tuple(skipped)), *rest]


def _files_inputs(
    files: list[str], name: str, options: Options, base: str | None = None
) -> Iterable[Input]:
    """Files one after the other; hive-partitioned Parquet (``country=de``) as one dataset."""
    if any(map(_in_hive, files)) and {format_of_file(file, options) for file in files} == {
        "parquet"
    }:
        return [interruptible(lambda: dataset_input(files, name, options, base=base))]
    return [input for file in files for input in path_inputs(file, options)]


def _in_hive(path: str) -> bool:
    """Whether a folder in the path contains a column and its value."""
    return any("=" in part for part in Path(path).parts[:-1])

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
from ...options import Options
from .feed import Feed, file_format
from .names import by_ending, data_files, format_of_file, is_text_list
from .scan import dataset_feed
from .waiting import waiting


def path_feeds(path: str, options: Options) -> Iterable[Feed]:
    """The feeds of a path, a glob, a folder, a URI, or ``-``."""
    if path == "-":
        return [_stdin_feed(options)]
    if "://" in path:
        from .remote import uri_feeds

        return uri_feeds(path, options, path_feeds)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path!r}: a file whose name is not UTF-8; rename it, or give it as standard input",
            code="input.name",
        ) from None
    place = Path(path)
    if place.is_dir():
        return _folder_feeds(place, options)
    if not place.exists() and glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise InputError(f"{path}: no file matches", code="input.missing", input=path)
        return _files_feeds(found, path, options)
    if not place.exists():
        raise InputError(f"{path}: No such file or directory", code="input.missing", input=path)
    return [_file_feed(path, options)]


def _file_feed(path: str, options: Options) -> Feed:
    """One file, or what can be read once and has a path."""
    place = Path(path)
    if not place.is_file():
        return _pipe_feed(path, options)
    match format_of_file(path, options):
        case "parquet":
            if _in_hive(path):
                return waiting(lambda: dataset_feed(path, path, options))
            return Feed(path, "parquet", size=place.stat().st_size)
        case "arrow":
            return Feed(path, "ipc", size=place.stat().st_size)
        case "jsonl":
            from .jsonl import jsonl_feed

            return waiting(lambda: jsonl_feed(path, path, options))
        case format:
            return Feed(path, file_format(format), size=place.stat().st_size)


def _pipe_feed(path: str, options: Options) -> Feed:
    """A FIFO or a device: it can be opened once only, and may never deliver."""
    format = options.format or by_ending(path)
    if format == "parquet":
        raise InputError(
            f"{path}: Parquet is read from files only: its directory is at its end",
            code="input.format",
            input=path,
        )
    if format == "csv" and (options.format is not None or not is_text_list(path)):
        return Feed(path, "csv")
    from .pipe import stream_feed
    from .unpack import Stream

    try:
        file = io.FileIO(path)
        return stream_feed(Stream(file), path, options, descriptor=file.fileno())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", code="input.unreadable", input=path) from None


def _stdin_feed(options: Options) -> Feed:
    """Standard input; Parquet, whose directory is at its end, goes to a temporary file first."""
    if sys.stdin is None:  # as under <&-, and 0 may be another file by now
        raise InputError("-: standard input is closed", code="input.unreadable", input="-")
    if options.format == "csv":
        return Feed("-", "csv")
    from .pipe import stream_feed
    from .unpack import Stream

    descriptor = 0
    stream = Stream(io.FileIO(descriptor, closefd=False))
    try:
        known = os.fstat(descriptor)
        if (
            options.format in (None, "parquet")
            and stat.S_ISREG(known.st_mode)
            and os.lseek(descriptor, 0, os.SEEK_CUR) == 0
            and os.pread(descriptor, 4, 0) == b"PAR1"
        ):  # in a file that the shell opened it is read where it is
            return Feed("-", "parquet", begun=(descriptor, b""), size=known.st_size)
        return stream_feed(stream, "-", options, descriptor=descriptor)
    except OSError as error:
        raise InputError(f"-: {error.strerror}", code="input.unreadable", input="-") from None


def _folder_feeds(folder: Path, options: Options) -> list[Feed]:
    files, skipped = data_files(folder, options)
    if not files:
        why = f" of data (there are {', '.join(skipped[:5])})" if skipped else ""
        raise InputError(f"{folder}: holds no file{why}", code="input.missing", input=str(folder))
    kinds = {options.format or format_of_file(file, options) for file in files}
    if len(kinds) > 1:
        raise InputError(
            f"{folder}: holds files of several formats ({', '.join(sorted(kinds))}); name them by a"
            " glob, or the format (--format)",
            code="input.mixed",
            input=str(folder),
        )
    [first, *rest] = _files_feeds(files, str(folder), options, base=str(folder))
    return [replace(first, skipped=tuple(skipped)), *rest]


def _files_feeds(
    files: list[str], name: str, options: Options, base: str | None = None
) -> Iterable[Feed]:
    """Files one after the other; Parquet in folders that name columns (``country=de``) at once."""
    if any(map(_in_hive, files)) and {format_of_file(file, options) for file in files} == {
        "parquet"
    }:
        return [waiting(lambda: dataset_feed(files, name, options, base=base))]
    return [feed for file in files for feed in path_feeds(file, options)]


def _in_hive(path: str) -> bool:
    """Whether a folder of it names a column and its value."""
    return any("=" in part for part in Path(path).parts[:-1])

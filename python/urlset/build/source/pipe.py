"""Streams that Python opened, for the core: as a pipe, or as an unlinked temporary file."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from typing import IO

from ...errors import InputError
from ...interruptible import interruptible
from ...options import Options
from ...threads import start
from .input import NO_ROOM, Input, as_input_error, file_format
from .jsonl import jsonl_input
from .names import BZIP2_HEAD, HEAD, format_of
from .stream import Stream


def stream_input(
    stream: Stream,
    name: str,
    options: Options,
    *,
    path: str | None = None,
    descriptor: int | None = None,
    hide: Callable[[str], str] = str,
) -> Input:
    """The input of a stream, which can be read only once.

    Args:
        path: the path whose ending determines the format; ``name`` by default.
        descriptor: that of the file behind the stream, if it has one; the input closes it with
            the stream.
    """
    format = options.format
    if format is None:
        head = stream.peek(HEAD)
        if head.startswith(b"BZh"):
            head = stream.peek(BZIP2_HEAD)
        path = name if path is None else path
        format = format_of(path, head, options, shown=name, whole=stream.ended)
    match format:
        case "csv" | "lines":
            if descriptor is None:
                return _pipe(stream, name, format, hide)
            begun = (descriptor, stream.take_head())
            return Input(name, file_format(format), begun=begun, close=stream.close)
        case "parquet":
            file = _spool(stream, name, hide)
            size = os.fstat(file.fileno()).st_size
            return Input(name, "parquet", begun=(file.fileno(), b""), size=size, close=file.close)
        case "arrow":
            if stream.peek(6).startswith(b"ARROW1"):  # its metadata is at the end
                file = _spool(stream, name, hide)
                return Input(name, "ipc", begun=(file.fileno(), b""), close=file.close)
            if descriptor is None:
                return _pipe(stream, name, "ipc", hide)
            begun = (descriptor, stream.take_head())
            return Input(name, "ipc", begun=begun, close=stream.close)
        case _:
            return interruptible(lambda: jsonl_input(stream, name, options, hide))


def _spool(stream: Stream, name: str, hide: Callable[[str], str]) -> IO[bytes]:
    """A whole stream in an unlinked temporary file: the metadata of Parquet is at the end."""
    # the input closes it
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with as_input_error(name, hide, remote=True):
            interruptible(lambda: shutil.copyfileobj(stream, file, 1 << 20))
            file.flush()
    except OSError as error:
        file.close()
        if error.errno not in NO_ROOM:
            raise
        raise InputError(
            f"{name}: there is no space for it in {tempfile.gettempdir()} (TMPDIR selects another"
            " folder)",
            code="input.unreadable",
            input=name,
        ) from None
    except BaseException:
        file.close()
        raise
    finally:
        stream.close()
    return file


def _pipe(stream: Stream, name: str, format: str, hide: Callable[[str], str]) -> Input:
    """A pipe, into which a thread writes the stream."""
    reader, writer = os.pipe()
    failed: list[BaseException] = []

    def send() -> None:
        try:
            with os.fdopen(writer, "wb") as pipe, stream:
                shutil.copyfileobj(stream, pipe, 1 << 20)
        except BrokenPipeError:
            pass  # the core stopped, with its own error
        except Exception as error:  # noqa: BLE001 - a filesystem may raise anything
            failed.append(error)

    thread = threading.Thread(target=send, name=f"read {name}", daemon=True)
    start(thread)

    def close() -> None:
        # without a reader the write of the thread fails, and it ends
        os.close(reader)
        thread.join(1)
        with as_input_error(name, hide, code="input.unreachable"):
            for error in failed:
                if isinstance(error, InputError):
                    raise error
                raise OSError(str(error) or type(error).__name__)

    return Input(name, file_format(format), begun=(reader, b""), close=close)

"""Streams that Python opened, to what the core reads: a pipe, or a file without a name."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from typing import IO

from ...errors import InputError
from ...options import Options
from ...threads import start
from .feed import NO_ROOM, Feed, file_format, readable
from .jsonl import jsonl_feed
from .names import BZIP2_HEAD, HEAD, format_of
from .unpack import Stream
from .waiting import waiting


def stream_feed(
    stream: Stream,
    name: str,
    options: Options,
    *,
    path: str | None = None,
    descriptor: int | None = None,
    hide: Callable[[str], str] = str,
) -> Feed:
    """A feed of what can be read once.

    Args:
        path: by whose ending the format is told; the name without it.
        descriptor: that of the file behind the stream, where it has one; the feed closes it with
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
            return Feed(name, file_format(format), begun=begun, close=stream.close)
        case "parquet":
            file = _spool(stream, name, hide)
            size = os.fstat(file.fileno()).st_size
            return Feed(name, "parquet", begun=(file.fileno(), b""), size=size, close=file.close)
        case "arrow":
            if stream.peek(6).startswith(b"ARROW1"):  # its directory is at its end, too
                file = _spool(stream, name, hide)
                return Feed(name, "ipc", begun=(file.fileno(), b""), close=file.close)
            if descriptor is None:
                return _pipe(stream, name, "ipc", hide)
            begun = (descriptor, stream.take_head())
            return Feed(name, "ipc", begun=begun, close=stream.close)
        case _:
            return waiting(lambda: jsonl_feed(stream, name, options, hide))


def _spool(stream: Stream, name: str, hide: Callable[[str], str]) -> IO[bytes]:
    """All of a stream in a file without a name: the directory of Parquet is at its end."""
    # closed by the feed
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with readable(name, hide, remote=True):
            waiting(lambda: shutil.copyfileobj(stream, file, 1 << 20))
            file.flush()
    except OSError as error:
        file.close()
        if error.errno not in NO_ROOM:
            raise
        raise InputError(
            f"{name}: there is no room for it in {tempfile.gettempdir()} (TMPDIR names another"
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


def _pipe(stream: Stream, name: str, format: str, hide: Callable[[str], str]) -> Feed:
    """A pipe, into which a thread sends the stream."""
    reader, writer = os.pipe()
    failed: list[BaseException] = []

    def send() -> None:
        try:
            with os.fdopen(writer, "wb") as pipe, stream:
                shutil.copyfileobj(stream, pipe, 1 << 20)
        except BrokenPipeError:
            pass  # the core has left, with an error of its own
        except Exception as error:  # noqa: BLE001 - whatever a filesystem raises
            failed.append(error)

    thread = threading.Thread(target=send, name=f"read {name}", daemon=True)
    start(thread)

    def close() -> None:
        # without a reader the thread ends, wherever it is
        os.close(reader)
        thread.join(1)
        with readable(name, hide, code="input.unreachable"):
            for error in failed:
                if isinstance(error, InputError):
                    raise error
                raise OSError(str(error) or type(error).__name__)

    return Feed(name, file_format(format), begun=(reader, b""), close=close)

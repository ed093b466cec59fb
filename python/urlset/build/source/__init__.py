"""What a user may pass as an input, to what the core reads: files, or an Arrow C stream."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ... import _core
from ...errors import ConfigError, InputError
from ...options import Options
from .feed import ArrowStream, Feed, Source

__all__ = ["ArrowStream", "Feed", "Source", "column_names", "feeds", "must_not_be_read"]


def feeds(sources: Iterable[Source], options: Options) -> list[Feed]:
    """All inputs of a build, in their order.

    Raises:
        InputError: an input is missing or cannot be opened.
        ConfigError: a column is missing, or an object is nothing that gives rows.
    """
    from .objects import joined

    result: list[Feed] = []
    try:
        for source in joined(sources):
            if isinstance(source, (str, os.PathLike)):
                from .files import path_feeds

                result.extend(path_feeds(os.fspath(source), options))
            else:
                from .objects import object_feed

                result.append(object_feed(source, options))
    except BaseException:
        for feed in result:
            # the error that came first is the one to tell
            with suppress(InputError):
                feed.close()
        raise
    if not result:
        raise ConfigError("which input? (urlset build INPUT ...)", code="config.input")
    return result


def column_names(path: str, options: Options) -> list[str]:
    """All columns of an input, for a look at it.

    Raises:
        InputError: the input is missing or cannot be opened.
        ConfigError: the options do not fit together.
    """
    try:
        [feed, *others] = feeds([path], options)
    except ConfigError as error:
        if error.columns is None:
            raise
        return list(error.columns)
    for other in others:
        other.close()
    try:
        if feed.columns is not None:
            return list(feed.columns)
        return _core.look(json.dumps(options.core_json()), feed.name, feed.format, feed.begun)
    finally:
        feed.close()


def must_not_be_read(name: str, target: Path, sources: Sequence[Any]) -> None:
    """A file that a build writes is none of its inputs, nor in a folder that is one.

    Raises:
        ConfigError: ``config.{name}``, where it is.
    """
    real = target.resolve()
    for source in sources:
        if not isinstance(source, (str, os.PathLike)) or os.fspath(source) == "-":
            continue
        text = os.fspath(source)
        paths = [text, *glob.glob(text, recursive=True)]
        if any(Path(path).resolve() in (real, *real.parents) for path in paths):
            raise ConfigError(
                f"{name}: {os.fspath(target)!r} is an input of the build, or in its folder; "
                "write it elsewhere",
                code=f"config.{name}",
            )

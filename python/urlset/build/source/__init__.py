"""Inputs of a build: from the arguments of a user to files or Arrow C streams for the core."""

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
from ...transport.target import StoreTarget, Target, covers
from .input import ArrowStream, Input, Source

__all__ = [
    "ArrowStream",
    "Input",
    "Source",
    "column_names",
    "must_not_be_read",
    "open_inputs",
    "read_exclusion",
]


def open_inputs(sources: Iterable[Source], options: Options) -> list[Input]:
    """All inputs of a build, in their order.

    Raises:
        InputError: an input is missing or cannot be opened.
        ConfigError: a column is missing, or an object has no rows.
    """
    from .objects import joined

    result: list[Input] = []
    try:
        for source in joined(sources):
            if options.query:
                _must_be_database(source)
            if isinstance(source, (str, os.PathLike)):
                from .files import path_inputs

                result.extend(path_inputs(os.fspath(source), options))
            else:
                from .objects import object_input

                result.append(object_input(source, options))
    except BaseException:
        for input in result:
            # the first error is the one to report
            with suppress(InputError):
                input.close()
        raise
    if not result:
        raise ConfigError("no input is given (urlset build INPUT ...)", code="config.input")
    return result


def _must_be_database(source: Source) -> None:
    from .database import is_database

    if not (isinstance(source, str) and is_database(source)):
        raise ConfigError(
            "query: every input must be a database, such as postgresql://HOST/NAME or"
            " sqlite:///FILE",
            code="config.query",
        )


def column_names(path: str, options: Options) -> list[str]:
    """The names of all columns of an input.

    Raises:
        InputError: the input is missing or cannot be opened.
        ConfigError: the options contradict each other.
    """
    try:
        [input, *others] = open_inputs([path], options)
    except ConfigError as error:
        if error.columns is None:
            raise
        return list(error.columns)
    for other in others:
        other.close()
    try:
        if input.columns is not None:
            return list(input.columns)
        return _core.look(json.dumps(options.core_json()), input.name, input.format, input.handle)
    finally:
        input.close()


def read_exclusion(options: Options) -> str:
    """The URLs that a build leaves out, as the core takes them; empty without the option.

    Raises:
        InputError: the file is missing or damaged, or a row of it is not a URL.
        ConfigError: ``column.missing``: it has no column loc.
    """
    if options.exclude is None:
        return ""
    # every host: the list may be one of several sites
    reading = Options(
        site=options.site, loc="loc", hosts="any", output=options.output,
        relative_urls=options.relative_urls,
    )  # fmt: skip
    config, found = json.dumps(reading.core_json()), []
    try:
        for input in open_inputs([options.exclude], reading):
            try:
                found.append(_core.exclude(config, input.name, input.format, input.handle))
            finally:
                input.close()
    except (ConfigError, InputError) as error:
        error.args = (f"exclude: {error}",)
        raise
    return "".join(found)


def must_not_be_read(name: str, target: Target, sources: Sequence[Any]) -> None:
    """Checks that a file that a build writes is not an input, nor in a folder that is one.

    Raises:
        ConfigError: ``config.{name}``.
    """
    if isinstance(target, StoreTarget):
        if any(isinstance(one, str) and covers(one, target) for one in sources):
            raise _is_read(name, str(target))
        return
    real = target.resolve()
    for source in sources:
        if not isinstance(source, (str, os.PathLike)) or os.fspath(source) == "-":
            continue
        text = os.fspath(source)
        paths = [text, *glob.glob(text, recursive=True)]
        if any(Path(path).resolve() in (real, *real.parents) for path in paths):
            raise _is_read(name, os.fspath(target))


def _is_read(name: str, target: str) -> ConfigError:
    return ConfigError(
        f"{name}: {target!r} is an input of the build, or in its folder; write it elsewhere",
        code=f"config.{name}",
    )

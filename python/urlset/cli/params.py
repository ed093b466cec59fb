"""The click options of a command, from its option table."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..option_table import Option, options_of

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _whole(least: int | None) -> Callable[[str | int], int]:
    """The type of a whole number; click's own messages are ``x>=1`` and ``valid integer``.

    Args:
        least: the smallest value, if there is one.
    """

    def integer(value: str | int) -> int:
        with suppress(ValueError):
            number = int(value)
            if least is None or number >= least:
                return number
        limit = "" if least is None else f" of {least} or more"
        raise click.BadParameter(f"{str(value)!r} is not a whole number{limit}")

    return integer


def _number(value: str | float) -> float:
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number; write 30 or 2.5") from None


def _size(value: str | int) -> int:
    """A number of bytes, with a binary unit or without: ``512MiB``, ``1GB``, ``1048576``."""
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", str(value).strip(), re.IGNORECASE)
    if not match:
        raise click.BadParameter(f"{value!r} is not a size; write 512MiB or 1GiB")
    return int(match[1]) * _UNITS[match[2].upper()]


#: click shows them as the metavar
_number.__name__, _size.__name__ = "float", "size"


def params_of(table: type[Any]) -> list[click.Parameter]:
    """One click option for each option of a table; without a value it is None or empty."""
    return [_param(one) for one in options_of(table)]


class Sectioned(click.Command):
    """A command that shows its options under the sections of their table.

    Args:
        table: the option table.
        rest: the section of the other options.
    """

    def __init__(self, *args: Any, table: type[Any], rest: str, **about: Any) -> None:
        super().__init__(*args, **about)
        self._sections = {one.name: one.section for one in options_of(table)}
        self._rest = rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            # the usage shows the arguments
            if record is not None and isinstance(param, click.Option):
                section = self._sections.get(param.name or "", self._rest)
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def place(name: str, **named: Any) -> click.Argument:
    """An argument that is a path or a URI; a shell completes it as a path."""

    def complete(_context: object, _param: object, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]

    return click.Argument([name], shell_complete=complete, **named)


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The options that have a value on the command line."""
    return {key: value for key, value in values.items() if value not in (None, (), {})}


def _param(one: Option) -> click.Option:
    name = one.key.replace("_", "-")
    flag = one.flag or f"--{name}"
    if isinstance(one.default, bool):
        if one.flag is not None:  # --no-NAME alone
            switch = click.Option([flag, one.name], flag_value=False, type=bool, default=None)
        else:
            flags = f"--{name}/--no-{name}" if one.default else f"--{name}"
            switch = click.Option([flags, one.name], is_flag=True, default=None)
        switch.help = one.help
        return switch
    engines = one.kind == "engine"
    return click.Option(
        [flag, one.name],
        type=_type(one),
        default=None,
        multiple=one.is_list or engines,
        callback=_per_engine if engines else None,
        metavar=one.metavar,
        help=_help(one),
    )


def _help(one: Option) -> str:
    """The help with the default, unless the text already contains ``[what happens without it]``."""
    if one.show_default:
        text = one.default if one.show_default is True else one.show_default
        return f"{one.help}  [default: {text}]"
    if isinstance(one.default, (int, str)) and one.default != "" and "[" not in one.help:
        return f"{one.help.removesuffix('.')} [{one.default}]."
    return one.help


def _type(one: Option) -> Any:
    kinds: dict[str, Any] = {
        "size": _size,
        "path": click.Path(path_type=Path),
        "file": click.Path(dir_okay=False, path_type=Path),
        "folder": click.Path(file_okay=False, path_type=Path),
        "engine": str,
    }
    if one.choices:
        return click.Choice(one.choices)
    if one.kind is not None:
        return kinds[one.kind]
    if one.type in ("int", "int | None"):
        # other limits are checked with those of urlset.toml and of Python
        only_least = one.limits is not None and one.limits[1] is None
        return _whole(one.limits[0] if one.limits and only_least else None)
    return _number if one.type == "float" else str


def _per_engine(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """``ENGINE=VALUE`` as an item; the key of ``VALUE`` alone is empty."""
    from ..announce.options import ENGINES

    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        name, rest = (name, rest) if equals and name in ENGINES else ("", value)
        if name in found:
            raise click.BadParameter(f"given twice for {name or 'the same engine'}")
        found[name] = rest
    return found

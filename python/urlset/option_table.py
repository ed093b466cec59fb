"""Option tables: one description for the command line, ``urlset.toml``, Python and the core.

An option table is a dataclass. A field is an option; :func:`option` adds what a type and a default
cannot express. From the tables follow

- the options of each command (:mod:`urlset.cli.params`),
- the keys of ``urlset.toml`` and the keywords of the public functions (:func:`replaced`),
- the types of these keywords (``urlset/keywords.py``; ``scripts/stub`` writes it),
- the configuration of the core (:meth:`urlset.options.Options.core_json`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from .errors import ConfigError


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Option:
    """One option.

    Attributes:
        name: the field; it ends in ``_`` where the name is a keyword of Python.
        type: the annotation of the field.
        default: the value without the option.
        section: the heading in ``--help``.
        help: what ``--help`` shows.
        metavar: the placeholder of the value in ``--help``.
        choices: the only values.
        limits: the smallest and the largest whole number.
        per_set: a ``[[set]]`` of ``urlset.toml`` may have its own value.
        core: of a build: the core reads it, under the same name.
        pairs: each value is ``KEY=VALUE`` or ``VALUE``; Python callers may pass a mapping.
        keyword: the type for Python callers, if it is wider than ``type``.
        flag: the spelling on the command line, if it is not ``--name``.
        kind: how the command line reads the value: ``size``, ``path``, ``file``, ``folder`` or
            ``engine``; without it the type decides.
        show_default: whether, or how, ``--help`` shows the default.
    """

    name: str
    type: str
    default: Any
    section: str
    help: str
    metavar: str | None = None
    choices: Sequence[str] | None = None
    limits: tuple[int, int | None] | None = None
    per_set: bool = False
    core: bool = True
    pairs: bool = False
    keyword: str | None = None
    flag: str | None = None
    kind: str | None = None
    show_default: bool | str = False

    @property
    def key(self) -> str:
        """The name in ``urlset.toml`` and in messages."""
        return self.name.removesuffix("_")

    @property
    def is_list(self) -> bool:
        """Whether the option can be repeated."""
        return self.type.startswith("tuple")


def option(default: Any, section: str, help: str, **about: Any) -> Any:
    """A field of an option table; the arguments are the attributes of :class:`Option`."""
    return field(default=default, metadata={"section": section, "help": help, **about})


_TABLES: dict[type[Any], tuple[Option, ...]] = {}


def options_of(table: type[Any]) -> tuple[Option, ...]:
    """The options of a table, in their order."""
    if table not in _TABLES:
        _TABLES[table] = tuple(
            Option(name=spec.name, type=str(spec.type), default=spec.default, **spec.metadata)
            for spec in fields(table)
        )
    return _TABLES[table]


def find_option(table: type[Any], key: str) -> Option | None:
    """The option with a name, written with ``-`` or ``_``, ``for`` or ``for_``."""
    name = key.replace("-", "_")
    return next((one for one in options_of(table) if name in (one.name, one.key)), None)


Table = TypeVar("Table")


def replaced(base: Table, given: Mapping[str, Any], *, where: str) -> Table:
    """``base`` with other values.

    Args:
        where: the beginning of an error message.

    Raises:
        ConfigError: an unknown option, or a value of the wrong type.
    """
    table = type(base)
    values: dict[str, Any] = {}
    for key, value in given.items():
        one = find_option(table, key)
        if one is None:
            from difflib import get_close_matches

            known = [one.key for one in options_of(table)]
            if ".toml" in where:
                known += ["input", "set"]
            close = get_close_matches(key, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"{where}: unknown option {key!r}{hint}", code="config.unknown")
        values[one.name] = _converted(one, value, where)
    return replace(base, **values)  # type: ignore[type-var] # a table is a dataclass


def _converted(one: Option, value: Any, where: str) -> Any:
    """A value of the type of an option."""
    if one.is_list:
        if isinstance(value, Mapping):
            value = [f"{key}={column}" for key, column in value.items()]
        values = (value,) if isinstance(value, str) else value
        if isinstance(values, (list, tuple)) and all(isinstance(v, str) for v in values):
            return tuple(values)
    elif value is None and "None" in one.type:
        return None
    elif isinstance(value, bool):
        if "bool" in one.type:
            return value
    elif isinstance(value, int) and "int" in one.type:
        return value
    elif ("str" in one.type and isinstance(value, str)) or (
        "PathLike" in one.type and isinstance(value, os.PathLike)
    ):
        return value
    elif "ObjectStore" in (one.keyword or "") and type(value).__module__.startswith("obstore"):
        return value
    raise ConfigError(
        f"{where}: {one.name} cannot be {value!r} ({type(value).__name__})", code="config.type"
    )


def check_values(options: Any) -> None:
    """Checks the choices and the limits of all options.

    Raises:
        ConfigError: ``config.choice`` or ``config.limit``, for the first wrong value.
    """
    for one in options_of(type(options)):
        value = getattr(options, one.name)
        if value is None:
            continue
        if one.choices and value not in one.choices:
            raise ConfigError(
                f"{one.key}: {value!r} is not one of {', '.join(one.choices)}",
                code="config.choice",
            )
        least, largest = one.limits or (None, None)
        if (least is not None and value < least) or (largest is not None and value > largest):
            raise ConfigError(
                f"{one.key}: {value} is not a whole number from {least} to {largest}",
                code="config.limit",
            )

"""A ``urlset.toml``: its options, its input, its ``[[set]]`` tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .build.names import check_sets
from .errors import ConfigError
from .option_table import find_option, replaced
from .options import Options, check_name


@dataclass(frozen=True)
class SetTable:
    """One ``[[set]]`` of ``urlset.toml``: its inputs and its options."""

    input: tuple[Any, ...]
    options: Options


def load(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], tuple[str, ...]]:
    """The options, the ``[[set]]`` tables and the inputs of a ``urlset.toml``.

    Paths in the file are relative to its folder.

    Raises:
        ConfigError: the file is missing, unreadable or not valid.
    """
    import tomllib

    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file", code="config.missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}", code="config.unreadable") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}", code="config.toml") from None
    sets = data.pop("set", [])
    if not isinstance(sets, list) or not all(isinstance(table, dict) for table in sets):
        raise ConfigError(f"{path}: write [[set]] with two brackets", code="config.toml")
    inputs = _inputs(data.pop("input", ()), path)
    for table in (data, *sets):
        for key in ("out", "state", "rejects", "changes", "exclude", "report"):
            # the message about an address must contain the address, not a path made of it
            if isinstance(table.get(key), str) and "://" not in table[key]:
                table[key] = str(path.parent / table[key])
    for table in sets:
        table["input"] = _inputs(table.get("input", ()), path)
    return data, sets, inputs


def _inputs(value: object, path: Path) -> tuple[str, ...]:
    values = (value,) if isinstance(value, str) else value
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise ConfigError(f"{path}: input is a path or a list of paths", code="config.type")
    return tuple(v if v == "-" or "://" in v else str(path.parent / v) for v in values)


def make_sets(base: Options, tables: list[dict[str, Any]], *, where: str) -> list[SetTable]:
    """The ``[[set]]`` tables, each with the shared options as its defaults.

    Raises:
        ConfigError: an option of the whole build in a set, or two sets with one name.
    """
    sets: list[SetTable] = []
    for number, table in enumerate(tables, 1):
        given = dict(table)
        label = f"{where}: set {given.get('name', number)}"
        inputs = given.pop("input")
        for key in given:
            one = find_option(Options, key)
            if one is not None and not one.per_set:
                raise ConfigError(
                    f"{label}: {key} is an option of the whole build; move it above the sets",
                    code="config.set",
                )
        # before missing keys: "inputs" instead of "input" is reported as unknown
        options = replaced(base, given, where=label)
        if not inputs:
            raise ConfigError(f"{label}: input is missing", code="config.set")
        if "name" not in given:
            raise ConfigError(f"{label}: name is missing", code="config.set")
        check_name(options.name)
        sets.append(SetTable(tuple(inputs), options))
    check_sets([table.options for table in sets], where=where)
    return sets

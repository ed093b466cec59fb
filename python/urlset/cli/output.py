"""The output of commands: reports and rows, and the options for them."""

from __future__ import annotations

import json
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import click

from ..errors import PublishError
from ..outfile import is_store, must_be_local
from ..transport.target import check_writable, target_of


def check_target(name: str, path: str | None, *, code: str, undone: str) -> None:
    """Checks that a report can be written, before any work is done.

    Args:
        name: the option.
        path: a file, ``-`` for standard output, or None.
        code: of the error.
        undone: the end of the message: the work that was not done.

    Raises:
        ConfigError: the path is an address.
        PublishError: the file cannot be written.
    """
    if path is None or path == "-":
        return
    if not is_store(path):
        must_be_local(name, path)
    try:
        check_writable(target_of(path), replaced=False)
    except OSError as error:
        raise PublishError(f"{path}: {error.strerror}; {undone}", code=code) from None


def write_report(path: str, text: str, *, code: str) -> None:
    """Writes a report to a file, or to standard output for ``-``.

    Raises:
        PublishError: the file cannot be written.
    """
    if path == "-":
        click.echo(text, nl=False)
        return
    try:
        target = target_of(path)
        if isinstance(target, Path):
            target.write_bytes(text.encode())
        else:
            target.write(BytesIO(text.encode()))
    except OSError as error:
        raise PublishError(f"{path}: {error.strerror}", code=code) from None


def as_json(value: Any, indent: int = 1, *, ascii: bool = True) -> str:
    """A report as JSON, with the line break at its end."""
    return json.dumps(value, indent=indent, ensure_ascii=ascii) + "\n"


def must_be_redirected(format: str | None, output: str | None) -> None:
    """Refuses to write binary rows to a terminal.

    Raises:
        click.UsageError: standard output is a terminal.
    """
    if format in ("parquet", "arrow") and output == "-" and sys.stdout.isatty():
        raise click.UsageError(
            f"{format} cannot be shown on a terminal; redirect it or use --output PATH"
        )


def quiet_option(help: str, *names: str) -> click.Option:
    """The option ``--quiet``."""
    return click.Option(["--quiet", *names], is_flag=True, help=help)


def rows_options(default: str | None = None) -> list[click.Parameter]:
    """The options ``--output`` and ``--format`` of a command that writes rows.

    Args:
        default: what happens without ``--output``; None if it is required.
    """
    help = "By its suffix .parquet, .csv, .jsonl or .arrow; - for stdout."
    return [
        click.Option(
            ["--output", "-o"], required=default is None, metavar="PATH",
            help=f"{help} Default: {default}." if default else help,
        ),
        click.Option(
            ["--format"], type=click.Choice(["parquet", "csv", "jsonl", "arrow"]),
            help="Default: by the suffix; csv for stdout.",
        ),
    ]  # fmt: skip

"""Queries of databases through ADBC, which delivers Arrow batches while the query runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ...errors import ConfigError, InputError
from ...interruptible import interruptible
from ...options import Options
from .input import Input
from .scan import checked
from .secret import MASK, hide, shown, user_of

#: the driver of each scheme
DRIVERS = {"postgresql": "postgresql", "postgres": "postgresql", "sqlite": "sqlite"}
#: what a driver delivers at once: rows of SQLite, whose first batch determines the types, and bytes
BATCH = {
    "sqlite": {"adbc.sqlite.query.batch_rows": "32768"},
    "postgresql": {"adbc.postgresql.batch_size_hint_bytes": str(4 << 20)},
}
#: parts of messages without a SQLSTATE that mean that the server cannot be reached
_AWAY = ("connect", "terminating", "closed the connection", "Connection", "SSL SYSCALL", "timeout")
#: the class of a SQLSTATE: connection, resources, cancelled by an operator or a timeout, system
_AWAY_STATES = ("08", "53", "57", "58")
_STATE = re.compile(r"\bSQLSTATE: ([0-9A-Z]{5})")
#: the query in a message of the driver for PostgreSQL
_QUERY = re.compile(r"\s*Query was:.*?(?=\. SQLSTATE: |$)", re.DOTALL)
_COLUMN = re.compile(r"\bin column (\d+)", re.IGNORECASE)
#: for the transaction: with a pooler, a setting of the session would be that of other clients, too
_READ_ONLY = "SET TRANSACTION READ ONLY"


def is_database(uri: str) -> bool:
    """Whether a URI is that of a database."""
    return uri.partition("://")[0].lower() in DRIVERS and "://" in uri


def database_input(uri: str, options: Options) -> Input:
    """The rows of the query ``options.query``; the query has started when this function returns.

    Raises:
        ConfigError: ``config.query``: there is none, or the database does not accept it;
            ``config.package``: the driver is not installed.
        InputError: ``input.unreachable``, ``input.missing``.
    """
    name = shown(uri)
    query = (options.query or "").strip()
    if not query:
        raise ConfigError(
            f"{name}: a database needs a query (--query)",
            code="config.query",
        )
    driver = DRIVERS[uri.partition("://")[0].lower()]
    try:
        from importlib import import_module

        dbapi = import_module(f"adbc_driver_{driver}.dbapi")
    except ImportError:
        raise ConfigError(
            f"{name}: needs a driver: pip install 'urlset[adbc]'", code="config.package"
        ) from None

    def clean(error: BaseException) -> str:
        return _one_line(error, lambda text: hide(text, uri))

    address = _sqlite(uri, name) if driver == "sqlite" else _postgresql(uri, name)
    try:
        connection = interruptible(
            lambda: dbapi.connect(address, autocommit=driver != "postgresql")
        )
    except dbapi.Error as error:
        raise _unreachable(name, clean(error)) from None
    try:
        cursor = connection.cursor()
        try:
            if driver == "postgresql":
                interruptible(lambda: cursor.execute(_READ_ONLY))
            else:
                _check_single(address, query, name)
            cursor.adbc_statement.set_options(**BATCH[driver])
            interruptible(lambda: cursor.execute(query))
            reader = interruptible(cursor.fetch_record_batch)
        except (dbapi.Error, OSError) as error:
            what = clean(error)
            if _is_away(error, what):
                raise _unreachable(name, what) from None
            raise ConfigError(f"{name}: query: {what}", code="config.query") from None
    except BaseException:
        connection.close()
        raise

    def close() -> None:
        with suppress(dbapi.Error, OSError):  # a connection that was lost
            cursor.close()  # also keeps the cursor, with which its reader ends
            connection.close()

    return _input(name, reader, clean, close)


def cursor_input(cursor: Any, name: str) -> Input:
    """The rows of a cursor of ADBC, on which a query was executed; the caller closes it.

    Raises:
        ConfigError: ``config.query``: none was, or rows were fetched: the others are not all left.
    """
    if getattr(cursor, "rownumber", None):
        raise ConfigError(
            f"{name}: rows were already fetched; execute the query again", code="config.query"
        )

    def clean(error: BaseException) -> str:
        return _one_line(error, str)

    try:
        reader = interruptible(cursor.fetch_record_batch)
    except Exception as error:  # noqa: BLE001 - of the driver of the user
        raise ConfigError(f"{name}: {clean(error)}", code="config.query") from None
    return _input(name, reader, clean, lambda: None)


def _input(
    name: str, reader: Any, clean: Callable[[BaseException], str], close: Callable[[], None]
) -> Input:
    import pyarrow as pa

    failed: list[InputError] = []

    def batches() -> Iterator[Any]:
        try:
            yield from checked(reader)
        except (OSError, ValueError, NotImplementedError, pa.ArrowException) as error:
            what = _COLUMN.sub(lambda found: _column(found, reader.schema.names), clean(error))
            if _is_away(error, what):
                failed.append(_unreachable(name, what))
            else:
                hint = "; convert the column in the query (cast … as text)" * ("ype" in what)
                failed.append(InputError(f"{name}: {what}{hint}", code="input.damaged", input=name))
            raise pa.ArrowInvalid(what) from None

    def end() -> None:
        close()
        for error in failed:
            raise error

    stream = pa.RecordBatchReader.from_batches(reader.schema, batches())
    return Input(name, "arrow", stream, close=end)


def _sqlite(uri: str, name: str) -> str:
    """The address of SQLite for ``sqlite:///PATH``, which is relative, or ``sqlite:////PATH``.

    It is opened for reading only.
    """
    rest, _, query = uri.partition("://")[2].partition("?")
    if not rest.startswith("/") or query:
        raise ConfigError(
            f"{name}: write sqlite:///shop.db, or sqlite:////folder/shop.db for an absolute path",
            code="config.uri",
        )
    path = unquote(rest[1:])
    if not Path(path).is_file():
        raise InputError(f"{name}: there is no file {path}", code="input.missing", input=name)
    return f"file:{quote(path)}?mode=ro"


def _postgresql(uri: str, name: str) -> str:
    """The address as libpq takes it."""
    if any(char in user_of(uri) for char in "/?@"):
        raise ConfigError(
            f"{name}: write the characters / ? @ of a user or a password as %2F %3F %40",
            code="config.uri",
        )
    scheme, sign, rest = uri.partition("://")
    return f"{scheme.lower()}{sign}{rest}"


def _check_single(address: str, query: str, name: str) -> None:
    """Refuses several statements, of which the driver of SQLite runs the first one only."""
    import sqlite3

    with closing(sqlite3.connect(address, uri=True)) as connection:
        try:
            connection.execute(f"EXPLAIN {query}")
        except (sqlite3.Warning, sqlite3.ProgrammingError) as error:
            if "one statement" in str(error):
                raise ConfigError(
                    f"{name}: query: more than one statement", code="config.query"
                ) from None
        except sqlite3.Error:
            return  # the driver reports it; it may contain another version of SQLite


def _column(found: re.Match[str], names: list[str]) -> str:
    """The name of a column, which drivers count from 0."""
    number = int(found[1])
    return f'in column "{names[number]}"' if number < len(names) else found[0]


def _unreachable(name: str, what: str) -> InputError:
    return InputError(f"{name}: {what}", code="input.unreachable", input=name)


def _is_away(error: BaseException, what: str) -> bool:
    """Whether a server could not be asked; otherwise the query is the cause."""
    if "[SQLite]" in what:  # a file
        return False
    state = getattr(error, "sqlstate", None) or ((found := _STATE.search(what)) and found[1])
    return state[:2] in _AWAY_STATES if state else any(part in what for part in _AWAY)


def _one_line(error: BaseException, hide_in: Callable[[str], str]) -> str:
    """The message of a driver, without the query, which it repeats, and without secrets."""
    text = str(error).partition("\nquery: ")[0].partition("Query:")[0]
    text = _QUERY.sub("", text)
    for secret in filter(None, (os.environ.get("PGPASSWORD"),)):
        text = text.replace(secret, MASK)
    text = re.sub(r"^[A-Z_]+: ", "", text)  # the name of a status of ADBC
    return " ".join(hide_in(text).split()) or type(error).__name__

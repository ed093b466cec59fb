"""Files that the user names for a report, a feed or rows: local ones, and objects in a store."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, TypeAlias, cast

from .. import outfile
from ..errors import ConfigError, PublishError
from ..outfile import is_store

#: bytes of an object that are kept in memory until it is complete; more go to disk
SPOOLED_BYTES = 8 << 20
#: Content-Type by the ending
TYPES = {
    ".csv": "text/csv; charset=utf-8", ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/jsonl; charset=utf-8", ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
}  # fmt: skip


class StoreTarget:
    """An object to write, with the attributes of a path that its users need."""

    def __init__(self, url: str) -> None:
        """
        Raises:
            ConfigError: ``config.store``: not the address of an object.
        """
        from .store import address_of

        address = address_of(url)
        if not address.key or url.endswith("/"):
            raise ConfigError(f"{url}: has no name of an object", code="config.store")
        self._path = PurePosixPath(address.key)
        self._bucket = address._replace(key="")
        self.parent = str(address._replace(key=address.key.rpartition("/")[0]))
        self.suffix, self.stem, self.name = self._path.suffix, self._path.stem, self._path.name

    def __str__(self) -> str:
        return f"{self._bucket}/{self._path}"

    def is_under(self, prefix: str) -> bool:
        """Whether the object is under the address of a prefix."""
        return str(self).startswith(f"{prefix.rstrip('/')}/")

    def with_name(self, name: str) -> StoreTarget:
        """The object with another name under the same prefix."""
        return StoreTarget(f"{self.parent}/{name}")

    def exists(self) -> bool:
        """Whether there is such an object.

        Raises:
            OSError: unknown: the store does not respond, or refuses.
        """
        from .store import open_store

        with self._as_oserror():
            return open_store(self.parent, error=PublishError).head(self.name) is not None

    def check(self) -> None:
        """Checks that the bucket can be reached with the credentials.

        Raises:
            OSError: it cannot.
        """
        from .store import NotFoundError, open_store

        with self._as_oserror(), suppress(NotFoundError):
            place = open_store(self.parent, error=PublishError)
            # not HEAD, whose response cannot contain that there is no bucket; no body is read
            place.call(lambda: place.store.get(self.name).meta, "read", self.name)

    def write(self, file: IO[bytes]) -> None:
        """Writes the object, which replaces what is there.

        Raises:
            OSError: it cannot be written.
        """
        from .store import open_store

        headers = {"Content-Type": TYPES.get(self.suffix.lower(), "application/octet-stream")}
        with self._as_oserror():
            open_store(self.parent, error=PublishError).put(self.name, file, headers=headers)

    @contextmanager
    def _as_oserror(self) -> Iterator[None]:
        """Converts errors of the store: callers report where they wrote, and what is live."""
        try:
            yield
        except PublishError as error:
            raise OSError(errno.EIO, str(error).removeprefix(f"{self}: "), str(self)) from None


Target: TypeAlias = "Path | StoreTarget"


def target_of(value: str | os.PathLike[str]) -> Target:
    """What the user named.

    Raises:
        ConfigError: ``config.store``: a wrong address.
    """
    return StoreTarget(value) if isinstance(value, str) and is_store(value) else Path(value)


def covers(source: str, target: StoreTarget) -> bool:
    """Whether an input, which may be a prefix or a glob, contains an object."""
    if not is_store(source):
        return False
    url = str(target)
    return f"{url}/".startswith(f"{source.rstrip('/')}/") or fnmatchcase(url, source)


def absolute(target: Target) -> Target:
    """The same for processes with another working directory."""
    return Path.cwd() / target if isinstance(target, Path) else target


def exists(target: Target) -> bool:
    """Whether there is something under the name, links to nothing included."""
    return os.path.lexists(target) if isinstance(target, Path) else target.exists()


def check_writable(
    target: Target, *, will_exist: tuple[Path, ...] = (), replaced: bool = True
) -> None:
    """As :func:`urlset.outfile.check_writable`; of an object that its bucket can be reached.

    Raises:
        OSError: it cannot be written.
    """
    if isinstance(target, Path):
        outfile.check_writable(target, will_exist=will_exist, replaced=replaced)
    else:
        target.check()


@contextmanager
def replacing(target: Target) -> Iterator[BinaryIO]:
    """A new file or object that replaces ``target`` if the block succeeds.

    Raises:
        OSError: it cannot be written.
    """
    if isinstance(target, Path):
        with outfile.replacing(target) as file:
            yield file
        return
    import tempfile  # most commands write no object

    with tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES) as spooled:
        yield cast("BinaryIO", spooled)
        spooled.seek(0)
        target.write(spooled)

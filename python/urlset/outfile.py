"""Output files for a report, a feed or rows: checked early, written completely or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from . import system
from .errors import ConfigError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
#: a URI that was converted to a ``Path`` has one slash
_URI_AS_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
#: the schemes of object stores, and the provider of each
STORE_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az"}


def is_store(target: object) -> bool:
    """Whether ``target`` is the address of an object store, or a store object of obstore."""
    if isinstance(target, str):
        scheme, sign, _ = target.partition("://")
        return bool(sign) and scheme.lower() in STORE_SCHEMES
    return type(target).__module__.partition(".")[0] == "obstore"


def random_id() -> str:
    """32 hexadecimal digits that no other call returns; the module uuid takes 4 ms at start-up."""
    return os.urandom(16).hex()


def must_be_local(name: str, target: str | os.PathLike[str]) -> None:
    """Refuses a URI: as a path, ``s3://bucket/x`` would be a folder ``s3:``.

    Raises:
        ConfigError: ``config.{name}``.
    """
    text = os.fspath(target)
    pattern = _URI if isinstance(target, str) else _URI_AS_PATH
    if pattern.match(text):
        raise ConfigError(
            f"{name}: {text!r} is a URI; only local paths can be written: write to a folder and"
            " copy it",
            code=f"config.{name}",
        )


def check_page(target: str | os.PathLike[str]) -> None:
    """Checks that the name of a report page is one that browsers open as a page.

    Raises:
        ConfigError: ``config.report``.
    """
    text = os.fspath(target)
    if not text.lower().endswith((".html", ".htm")):
        raise ConfigError(f"report: {text!r} does not end in .html", code="config.report")


def check_writable(
    target: Path, *, will_exist: tuple[Path, ...] = (), replaced: bool = True
) -> None:
    """Checks that a file can be written, without touching it.

    Args:
        will_exist: folders that are created before the file is.
        replaced: it is written by :func:`replacing`, after missing folders were created; otherwise
            in place.

    Raises:
        OSError: it cannot.
    """
    if target.is_symlink() and not target.exists():
        raise OSError(errno.ENOENT, "is a symbolic link to nothing; remove it", str(target))
    if target.is_dir():
        raise _error(errno.EISDIR, target)
    if target.exists():
        if not os.access(target, os.W_OK):
            raise _error(errno.EROFS if system.is_read_only(target) else errno.EACCES, target)
        if not replaced or is_special(target):
            return
    folder = Path.cwd().joinpath(target).parent
    if not folder.exists():
        made = [Path.cwd() / path for path in will_exist]
        if not replaced and not any(folder in (path, *path.parents) for path in made):
            raise _error(errno.ENOENT, target)
        while not folder.exists() and not folder.is_symlink():
            folder = folder.parent
    if not folder.is_dir():
        raise _error(errno.ENOTDIR, folder)
    # the only test that is correct on every filesystem
    probe = folder / f".urlset-{random_id()}"
    try:
        os.close(os.open(probe, system.NEW, 0o600))
    except OSError as error:
        raise _error(error.errno or errno.EACCES, target) from None
    probe.unlink()


@contextmanager
def replacing(target: Path, *, keep_owner: bool = False) -> Iterator[BinaryIO]:
    """A new file that replaces ``target`` if the block succeeds; otherwise nothing changes.

    It is written beside ``target`` and fsynced. For a link, the file behind it is replaced. A
    device or a pipe is written in place, and so is the file of a redirected standard stream.

    Args:
        keep_owner: the new file gets the owner, if that is allowed, and the mode of the old one.

    Raises:
        OSError: it cannot be written.
    """
    stream = _standard_stream(target)
    if stream is not None or is_special(target):
        # through the stream itself, which appends after >>
        with open(target if stream is None else os.dup(stream), "wb") as file:  # noqa: PTH123
            yield file
        return
    if target.is_symlink():
        if not target.exists():
            raise OSError(errno.ENOENT, "is a symbolic link to nothing; remove it", str(target))
        target = target.resolve()
    staged = target.with_name(f".urlset-{random_id()}")
    try:
        # the kernel applies the umask; reading the umask would change it for all threads
        before = target.stat() if keep_owner and target.exists() else None
        mode = 0o666 if before is None else 0o600
        with os.fdopen(os.open(staged, system.NEW, mode), "wb") as file:
            if before is not None and hasattr(os, "fchown"):  # not on Windows
                with suppress(PermissionError):  # only root may change the owner
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        staged.replace(target)
    except BaseException:
        with suppress(OSError):
            staged.unlink()
        raise
    system.sync_folder(target.parent)


def is_special(target: Path) -> bool:
    """Whether ``target`` is a device, a pipe, or the file of a standard stream.

    Such a file, ``/dev/stdout`` for example, must not be replaced.
    """
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    ordinary = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    return not ordinary or _standard_stream(target) is not None


def _standard_stream(target: Path) -> int | None:
    """The descriptor of standard output or standard error, if ``target`` is the same file."""
    for descriptor in (1, 2):
        with suppress(OSError):
            if os.path.samestat(target.stat(), os.fstat(descriptor)):
                return descriptor
    return None


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))

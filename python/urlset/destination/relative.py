"""Calls for a name in an open folder; no symbolic link is followed.

On POSIX an open folder is a descriptor, and the calls take ``dir_fd``: a process that replaces a
name meanwhile cannot redirect them. Windows has no such calls: an open folder is a path there, and
each call checks the name first. Someone who may write to the folder can replace it in between.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import system

#: an open folder
Folder = int | Path

#: FILE_ATTRIBUTE_REPARSE_POINT names another file: a symbolic link or a junction
_NAME_SURROGATE = 0x2000_0000


def is_link(found: os.stat_result) -> bool:
    """Whether the status is that of a symbolic link, or of a junction of Windows."""
    tag = getattr(found, "st_reparse_tag", 0)
    return stat.S_ISLNK(found.st_mode) or bool(tag & _NAME_SURROGATE)


class Descriptors:
    """Folders are descriptors."""

    def open_root(self, path: Path) -> Folder:
        """Opens a folder; links on the way to it are followed."""
        return os.open(path, system.FOLDER)

    def open_folder(self, folder: Any, name: str) -> Folder:
        """Opens a folder in a folder. For a link, the error is ENOTDIR or ELOOP."""
        return os.open(name, system.FOLDER | system.NO_LINK, dir_fd=folder)

    def close(self, folder: Any) -> None:
        """Closes a folder."""
        os.close(folder)

    def lockable(self, folder: Any) -> int | None:
        """Another descriptor of a folder, with its own locks; None: folders have no locks."""
        return os.open(".", system.FOLDER, dir_fd=folder)

    def device(self, folder: Any) -> int:
        """The number of its filesystem."""
        return os.fstat(folder).st_dev

    def names(self, folder: Any) -> list[str]:
        """The names in it."""
        return os.listdir(folder)  # noqa: PTH208 - a descriptor

    def sync(self, folder: Any) -> None:
        """Waits until the names in it are on the disk."""
        os.fsync(folder)

    def open(self, folder: Any, name: str, flags: int, mode: int = 0o666) -> int:
        """Opens a file. For a link, the error is ELOOP, or EEXIST for a new file."""
        return os.open(name, flags, mode, dir_fd=folder)

    def stat(self, folder: Any, name: str) -> os.stat_result:
        """The status of a file, a folder or a link."""
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def mkdir(self, folder: Any, name: str) -> None:
        """Creates a folder."""
        os.mkdir(name, dir_fd=folder)

    def replace(self, folder: Any, name: str, to: Any, target: str) -> None:
        """Renames a file or a folder; a file may exist under the new name."""
        os.replace(name, target, src_dir_fd=folder, dst_dir_fd=to)

    def unlink(self, folder: Any, name: str) -> None:
        """Removes a file or a link; for a folder, the error is IsADirectoryError."""
        try:
            os.unlink(name, dir_fd=folder)
        except PermissionError:  # Linux reports EISDIR for a folder, other systems EPERM
            if not stat.S_ISDIR(self.stat(folder, name).st_mode):
                raise
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name) from None

    def rmdir(self, folder: Any, name: str) -> None:
        """Removes an empty folder."""
        os.rmdir(name, dir_fd=folder)


class Paths(Descriptors):
    """Folders are paths."""

    def open_root(self, path: Path) -> Folder:
        if not stat.S_ISDIR(path.stat().st_mode):
            raise _error(errno.ENOTDIR, path)
        return path.absolute()

    def open_folder(self, folder: Path, name: str) -> Folder:
        found = self.stat(folder, name)
        if is_link(found) or not stat.S_ISDIR(found.st_mode):
            raise _error(errno.ENOTDIR, folder / name)
        return folder / name

    def close(self, folder: Path) -> None:
        pass

    def lockable(self, folder: Path) -> int | None:
        return None

    def device(self, folder: Path) -> int:
        return folder.stat().st_dev

    def sync(self, folder: Path) -> None:
        system.sync_folder(folder)

    def open(self, folder: Path, name: str, flags: int, mode: int = 0o666) -> int:
        path = folder / name
        with suppress(FileNotFoundError):
            if is_link(path.lstat()):
                raise _error(errno.EEXIST if flags & os.O_EXCL else errno.ELOOP, path)
        return os.open(path, flags, mode)

    def stat(self, folder: Path, name: str) -> os.stat_result:
        return (folder / name).lstat()

    def mkdir(self, folder: Path, name: str) -> None:
        (folder / name).mkdir()

    def replace(self, folder: Path, name: str, to: Path, target: str) -> None:
        (folder / name).replace(to / target)

    def unlink(self, folder: Path, name: str) -> None:
        found = self.stat(folder, name)
        if stat.S_ISDIR(found.st_mode) and not is_link(found):
            raise _error(errno.EISDIR, folder / name)
        (folder / name).unlink()

    def rmdir(self, folder: Path, name: str) -> None:
        (folder / name).rmdir()


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), os.fspath(path))


#: the calls of this system
calls: Descriptors = Descriptors() if os.supports_dir_fd else Paths()

"""Sitemaps in an object store, as local copies that exist while they are read.

A prefix is read as a folder with the same files is: what is found between the files follows from
the same code. Of an index, only what it lists is requested: a bucket may contain the whole site.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from ..destination.store_manifests import manifests_under
from ..errors import InputError
from ..threads import completed
from ..transport.store import Location, NotFoundError, address_of, open_store
from ..transport.store_reader import content
from .download import MAX_BYTES, MAX_TOTAL
from .folder import SUFFIXES, children_keys, files_of_file, files_of_folder
from .targets import Found, peek

PARALLEL = 8

#: errors that prevent all copies: after the retries of obstore, the next request fails as well
OF_ALL = (
    "fetch.disk", "store.total", "store.bucket", "store.credentials", "store.region",
    "store.endpoint", "store.timeout", "store.unreachable", "store.busy",
)  # fmt: skip
#: why an object cannot be copied, by its key
Failures = dict[str, InputError]


@contextmanager
def stored(target: Any) -> Iterator[Found]:
    """The files at an address or in a store object; local copies until the end of the block.

    Raises:
        InputError: ``target.missing``, ``target.empty``; ``store.`` and the kind of the failure;
            ``fetch.disk``.
    """
    with tempfile.TemporaryDirectory(prefix="urlset-") as folder:
        if isinstance(target, str):
            address = address_of(target)
            parent, _, name = address.key.rpartition("/")
            if name and not target.endswith("/"):
                above = open_store(str(address._replace(key=parent)))
                copies = _Copies(above, Path(folder) / (parent.rpartition("/")[2] or "store"))
                if copies.get(name):
                    yield copies.index(name)
                    return
        place = open_store(target)
        copies = _Copies(place, Path(folder) / (place.address.key.rpartition("/")[2] or "store"))
        yield copies.all()


class _Copies:
    """Local copies of the objects under a prefix, by their keys."""

    def __init__(self, place: Location, root: Path) -> None:
        self._place = place
        self._root = root
        self._lock = Lock()
        self._total = 0
        self._prefixes: dict[str, bool] = {}
        root.mkdir()

    def index(self, name: str) -> Found:
        """One file, which is copied already, and if it is an index, what it lists."""
        path = self._root / name
        kind, children = peek(path)
        failed: Failures = {}
        if kind == "index":
            jobs = [children_keys(child.loc) for child in children]
            failed = self._get(self._one_of, [names for names in jobs if names[0]])
        return self._with_failures(files_of_file(path), failed)

    def all(self) -> Found:
        """All sitemaps under the prefix."""
        keys, others = [], set()
        for each in self._place.list():
            is_hidden = any(part.startswith(".") for part in each.key.split("/"))
            if each.key.lower().endswith(SUFFIXES) and not is_hidden:
                keys.append(each.key)
            else:
                others.add(each.key)
        if not keys and not others:
            raise InputError(
                f"{self._place}: there is no such object, and nothing under this prefix",
                code="target.missing",
                input=str(self._place),
            )
        failed = self._get(self.get, keys)
        if failed and len(failed) == len(keys):
            raise next(iter(failed.values()))
        failed |= self._get(self.get, self._listed(keys, others))
        indexes = {}
        for key in keys:
            if "/" not in key and key.endswith(".xml"):
                with suppress(OSError):
                    indexes[key] = (self._root / key).read_bytes()
        manifests = manifests_under(self._place, indexes)
        found = files_of_folder(self._root, manifests, str(self._place))
        return self._with_failures(found, failed)

    def _listed(self, keys: list[str], others: set[str]) -> list[str]:
        """Those of the other objects that an index lists, whatever their names are."""
        found: dict[str, None] = {}
        for key in keys if others else ():
            folder = key.rpartition("/")[0]
            for child in peek(self._root.joinpath(*key.split("/")))[1]:
                names, similar = children_keys(child.loc)
                wanted = [f"{folder}/{name}".lstrip("/") for name in (*names, *similar)]
                found |= dict.fromkeys(name for name in wanted if name in others)
        return list(found)

    def _with_failures(self, found: Found, failed: Failures) -> Found:
        """``found`` with the failures instead of what follows from the empty copies."""
        paths = {self._root.joinpath(*key.split("/")): key for key in failed}
        found.items = [item for item in found.items if item.path not in paths]
        found.problems = [each for each in found.problems if each.file not in failed]
        for key, error in sorted(failed.items()):
            url = self._place.url(key)
            found.of_file(key, "fetch.failed", str(error).removeprefix(f"{url}: "), url)
        return found

    def _get(self, get: Callable[[Any], Any], jobs: Sequence[Any]) -> Failures:
        """Copies objects; returns those that cannot be copied, and leaves empty files for them.

        Raises:
            InputError: what prevents all copies.
        """
        failed: Failures = {}

        def attempt(job: Any) -> None:
            try:
                get(job)
            except InputError as error:
                if error.code in OF_ALL:
                    raise
                key = job if isinstance(job, str) else job[0][0]
                failed[key] = error
                with suppress(OSError, ValueError):
                    self._root.joinpath(*key.split("/")).touch()

        for _ in completed(attempt, jobs, lambda: math.inf, threads=PARALLEL):
            pass
        return failed

    def get(self, key: str) -> bool:
        """Copies an object; False if there is none.

        Raises:
            InputError: it cannot be copied.
        """
        try:
            parts = content(self._place, key, MAX_BYTES)
        except NotFoundError:
            return False
        path = self._root.joinpath(*key.split("/"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                for part in parts:
                    self._count(len(part))
                    file.write(part)
        except (FileExistsError, NotADirectoryError):
            if path.is_file():
                return True  # an index may list it twice
            raise self._place.error(key, "key", "its key is a prefix of another key") from None
        except OSError as error:
            path.unlink(missing_ok=True)
            raise InputError(
                f"{tempfile.gettempdir()}: {self._place.url(key)} cannot be copied:"
                f" {error.strerror}; free some space, or set TMPDIR to another folder",
                code="fetch.disk",
            ) from None
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return True

    def _count(self, size: int) -> None:
        with self._lock:
            self._total += size
            if self._total > MAX_TOTAL:
                raise InputError(
                    f"{self._place}: more than {MAX_TOTAL:,} bytes in all files",
                    code="store.total",
                    input=str(self._place),
                )

    def _one_of(self, keys: tuple[list[str], list[str]]) -> None:
        """Copies the first of these objects that exists, as a folder would be searched.

        Args:
            keys: the keys that a URL may mean, the longest first, and those of a similar name.
        """
        for key in keys[0]:
            if self._may_exist(key) and self.get(key):
                return
        for key in keys[1]:
            if self._may_exist(key) and self._place.head(key) is not None:
                path = self._root.joinpath(*key.split("/"))
                with suppress(OSError):  # for a hint only
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch()
                return

    def _may_exist(self, key: str) -> bool:
        """Whether anything is under the first part of a key; one request for each such part."""
        first, slash, _ = key.partition("/")
        if not slash:
            return True
        if first not in self._prefixes:
            self._prefixes[first] = next(self._place.list(first), None) is not None
        return self._prefixes[first]

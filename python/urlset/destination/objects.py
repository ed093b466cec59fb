"""Small objects: the operations that a folder and an object store have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

#: the condition of a write that only creates
ABSENT = ""


class Object(NamedTuple):
    """A small object, and the version that a conditional write names."""

    data: bytes
    version: str


class Objects(Protocol):
    """Small objects by path, with ``/`` between the parts."""

    def read(self, path: str, limit: int) -> Object | None:
        """The first ``limit`` bytes of an object; None if there is none."""

    def write(self, path: str, data: bytes, *, only_if: str | None = None) -> None:
        """Writes an object at once or not at all.

        Args:
            only_if: the version that it replaces; :data:`ABSENT` if it must not exist; None
                replaces any version.

        Raises:
            ConflictError: ``publish.conflict``: another version is there.
        """

    def list(self, prefix: str = "") -> Iterator[str]:
        """The names that begin with ``prefix``, sorted."""

    def delete(self, path: str) -> None:
        """Removes an object; it is not an error if there is none."""

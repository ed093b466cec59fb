"""The options of ``verify``, ``read`` and ``diff``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ..option_table import option

#: bytes of memory before data is spilled to disk, and the smallest value of the option
MEMORY, MIN_MEMORY = 256 << 20, 1 << 20


def _memory(help: str) -> int:
    value: int = option(MEMORY, "Options", help, kind="size", show_default="256MiB")
    return value


def _threads() -> int | None:
    help = "Default: one for each core."
    value: int | None = option(None, "Options", help, limits=(1, None))
    return value


def _allow_private() -> bool:
    value: bool = option(False, "Options", "Fetch from private addresses, too.")
    return value


def _report(subject: str) -> str | os.PathLike[str] | None:
    help = f"Write a page with charts of {subject}, .html."
    value: str | os.PathLike[str] | None = option(None, "Options", help, metavar="PATH")
    return value


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class VerifyOptions:
    """The options of :func:`urlset.verify`."""

    strict: bool = option(False, "Options", "Warnings count as errors.")
    duplicates: bool = option(
        True, "Options", "Do not look for URLs listed twice.", flag="--no-duplicates"
    )
    reciprocity: bool = option(False, "Options", "Look for hreflang links without a link back.")
    memory: int = _memory("Memory for the hashes of all URLs; above that they go to disk.")
    threads: int | None = _threads()
    most: int = option(
        100, "Options", "Maximum number of findings listed for each code and file; all are"
        " counted.", limits=(1, None), show_default=True,
    )  # fmt: skip
    hosts: str | Sequence[str] | None = option(
        None, "Options", "Which hosts URLs may have: same, any, or a list a,b. Default: the hosts"
        " in the manifest of a build, else same.", metavar="HOSTS",
    )  # fmt: skip
    report: str | os.PathLike[str] | None = _report("the findings and the files")
    allow_private: bool = _allow_private()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReadOptions:
    """The options of :func:`urlset.read`."""

    lenient: bool = option(False, "Options", "Omit what cannot be read.")
    threads: int | None = _threads()
    allow_private: bool = _allow_private()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DiffOptions:
    """The options of :func:`urlset.diff`."""

    lenient: bool = option(False, "Options", "Omit what cannot be read.")
    memory: int = _memory("Memory for entries; above that they go to disk.")
    threads: int | None = _threads()
    report: str | os.PathLike[str] | None = _report("the changes")
    allow_private: bool = _allow_private()

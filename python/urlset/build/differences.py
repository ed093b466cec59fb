"""Stable shards of two generations with the same boundary, without their common entries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .. import _core
from ..pool import Pool

#: limit of the pairs that are compared at once; each needs the memory of two documents
MAX_THREADS = 8


class SitemapFile(NamedTuple):
    """A file of one side of a comparison, as the core takes it.

    Attributes:
        path: the local file.
        name: its path in the set.
        digest: of its uncompressed bytes; None if they are unknown.
    """

    path: Path
    name: str
    digest: str | None


def write_differences(
    old: Sequence[SitemapFile], new: Sequence[SitemapFile], folder: Path
) -> tuple[list[SitemapFile], list[SitemapFile]]:
    """The same files; those with the same boundary as copies in ``folder`` without common entries.

    An old file without a digest (it was edited by hand) is not changed.

    Raises:
        PublishError: the folder cannot be written to.
    """
    by_boundary = {_boundary(file.name): file for file in old if file.digest}
    pairs = [
        (by_boundary.pop(_boundary(file.name)), file)
        for file in new
        if _boundary(file.name) in by_boundary and _is_xml(file.name)
    ]
    paired_old = {old_file.name for old_file, _ in pairs}
    paired_new = {new_file.name for _, new_file in pairs}
    rest_old = [file for file in old if file.name not in paired_old]
    rest_new = [file for file in new if file.name not in paired_new]

    def cut(
        numbered: tuple[int, tuple[SitemapFile, SitemapFile]],
    ) -> list[list[SitemapFile]]:
        number, pair = numbered
        cuts = [folder / f"{number}-{side}.xml" for side in ("old", "new")]
        written = _core.write_differences(pair[0].path, pair[1].path, cuts[0], cuts[1])
        if written is None:
            return [[file] for file in pair]
        return [
            [SitemapFile(path, file.name, None)] if is_there else []
            for path, file, is_there in zip(cuts, pair, written, strict=True)
        ]

    with Pool(min(os.cpu_count() or 1, MAX_THREADS)) as pool:
        for kept_old, kept_new in pool.map(cut, enumerate(pairs)):
            rest_old += kept_old
            rest_new += kept_new
    return rest_old, rest_new


def _boundary(name: str) -> str:
    """``NAME-<boundary>`` of ``NAME-<boundary>-<digest>.xml.gz``."""
    return name.rpartition("-")[0]


def _is_xml(name: str) -> bool:
    return name.endswith((".xml", ".xml.gz"))

"""Reads the staged set with the parser of ``urlset verify`` before it goes live."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .. import _core
from ..destination.manifest import Manifest
from ..errors import PublishError
from ..wording import count

#: bytes for the hashes of URLs, of which there are none here
MEMORY = 1 << 20


class StagedFile(NamedTuple):
    """A file of the set, staged or live, as the core verifies it.

    Attributes:
        path: the local file.
        name: its path in the set.
        url: its address after publication.
        listed: an index lists it.
        rules: the position of its rules.
    """

    path: Path
    name: str
    url: str | None
    listed: bool
    rules: int = 0


def check_staged(files: Sequence[StagedFile], manifest: Manifest) -> None:
    """Checks that every file is legal and has the number of URLs that was written.

    Raises:
        PublishError: ``verify.staged``; nothing was published.
    """
    # duplicates were found already, and one finding suffices
    reports = _core.verify_files(files, [manifest], None, MEMORY, False, False, 1)
    wrong = [
        (finding.code, file.name, finding.offset, finding.message)
        for file, report in zip(files, reports, strict=True)
        for finding in report.findings
        if finding.severity == "error"
    ]
    if wrong:
        code, name, _, message = min(wrong)
        raise PublishError(
            f"{name}: {message} [{code}]; nothing was published; this is a defect of urlset or of"
            " the disk, please report it",
            code="verify.staged",
        )
    read = {file.name: report.urls for file, report in zip(files, reports, strict=True)}
    for shard in manifest.shards:
        if read[shard.path] != shard.urls:
            raise PublishError(
                f"{shard.path}: {count(read[shard.path], 'URL')} read back of {shard.urls:,}"
                " written; nothing was published; please report this",
                code="verify.staged",
            )

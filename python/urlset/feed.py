"""The change feed of a build: which URLs were added, changed, removed against what was live.

It is computed from the shards that differ, before they are replaced, and waits beside the manifest
until the build is live: a feed tells of nothing that crawlers cannot see yet.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from .errors import InputError, PublishError
from .publish import Publication, inside, untouched, writing

#: the feed of a build that was killed during its publication, which the next one completed
RECOVERED = "changes-recovered"
PENDING = "changes-pending"


def stage_feed(
    publication: Publication,
    former: dict[str, Any] | None,
    new: dict[str, Any],
    changed: set[str],
    target: Path,
) -> None:
    """Writes the feed to the state folder.

    Args:
        publication: holds the staged shards.
        former: the manifest of what is live, None before the first build.
        new: the manifest of this build.
        changed: the shards that are staged.
        target: where the feed will go; its ending is the format.

    Raises:
        PublishError: a live file was damaged by hand, so that nobody knows what it held.
    """
    from .diff import write_changes
    from .trim import trimmed

    kept = {shard["path"] for shard in new["shards"]} - changed
    old_files = [
        (
            inside(publication.out, shard["path"]),
            shard["path"],
            # what was edited by hand is compared as it is
            shard["digest"] if untouched(publication.out, shard) else None,
        )
        for shard in (former or {}).get("shards", ())
        if shard["path"] not in kept and inside(publication.out, shard["path"]).exists()
    ]
    new_files = [
        (inside(publication.staging, shard["path"]), shard["path"], shard["digest"])
        for shard in new["shards"]
        if shard["path"] in changed
    ]
    # not at the start: most builds have no feed
    from tempfile import TemporaryDirectory

    try:
        with writing(publication.staging), TemporaryDirectory(dir=publication.staging) as folder:
            if new["layout"] == "stable":
                old_files, new_files = trimmed(old_files, new_files, Path(folder))
            pending = publication.state / f"{PENDING}{target.suffix}"
            write_changes(old_files, new_files, str(pending))
    except InputError as error:
        raise PublishError(
            f"changes: {error}; the feed compares with the live files, and this one was damaged"
            " since the last build: build once without --changes",
            code="changes.live",
        ) from None


def deliver_feed(publication: Publication, target: Path) -> None:
    """Moves the feed to where the user wants it."""
    pending = publication.state / f"{PENDING}{target.suffix}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(pending, target)
    except OSError as error:
        raise PublishError(
            f"{target}: {error.strerror}; the sitemaps are live, and their change feed is"
            f" {pending}",
            code="output.changes",
        ) from None


def recover_feed(publication: Publication) -> Path | None:
    """Keeps the feed of a build whose publication was completed just now; drops any other."""
    found = None
    for pending in publication.state.glob(f"{PENDING}.*"):
        if publication.recovered:
            found = pending.with_name(f"{RECOVERED}{pending.suffix}")
            pending.replace(found)
        else:
            pending.unlink()
    return found

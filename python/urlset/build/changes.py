"""The change feed of a build: which URLs were added, changed, removed against what was live.

It is computed from the shards that differ, before they are replaced. It waits beside the manifest
until the build is live: a feed tells of nothing that crawlers cannot see yet. The journal of the
publication lists it, so it is not lost however the build ends. It is removed from there once it is
where the user wants it.

A feed that could not be delivered waits for the next build with ``--changes``. It goes to the
folder that this build names, in front of the feed of this build, and takes the place of no file.
The journal's own word for a path is not enough: whoever can write to the state folder could have
any file written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

from ..destination.folder import inside
from ..destination.outfile import replacing
from ..destination.publish import Publication
from ..errors import InputError, PublishError

#: bytes that are copied at a time
PIECE = 1 << 20

#: an entry of the journal: its name in the state folder, the path where it goes
Feed = dict[str, str]


def stage_feed(
    publication: Publication,
    former: dict[str, Any] | None,
    new: dict[str, Any],
    changed: set[str],
    target: Path,
) -> list[Feed]:
    """Writes the feed to the state folder.

    Args:
        publication: holds the staged shards.
        former: the manifest of what is live, None before the first build.
        new: the manifest of this build.
        changed: the shards that are staged.
        target: where the feed will go; its ending is the format.

    Returns:
        All feeds that are to be delivered, those of former builds first.

    Raises:
        PublishError: a live file was damaged by hand, so that nobody knows what it held.
    """
    from ..inspect.diff import write_changes
    from .trim import trimmed

    kept = {shard["path"] for shard in new["shards"]} - changed
    old_files = [
        (
            inside(publication.out, shard["path"]),
            shard["path"],
            # what was edited by hand is compared as it is
            shard["digest"] if publication.untouched(shard) else None,
        )
        for shard in (former or {}).get("shards", ())
        # nothing is read through a link, nor from a pipe
        if shard["path"] not in kept and publication.live_files.is_file(shard["path"])
    ]
    new_files = [
        (inside(publication.staging, shard["path"]), shard["path"], shard["digest"])
        for shard in new["shards"]
        if shard["path"] in changed
    ]
    # not at the start: most builds have no feed
    from tempfile import TemporaryDirectory

    pending = _pending_name(publication.feeds, target.suffix)
    try:
        with (
            publication.writing(publication.staging),
            TemporaryDirectory(dir=publication.staging) as folder,
        ):
            if new["layout"] == "stable":
                old_files, new_files = trimmed(old_files, new_files, Path(folder))
            counts = write_changes(old_files, new_files, str(publication.staging / pending))
            publication.staged_files.move(pending, publication.files, pending)
            publication.files.sync()
    except InputError as error:
        raise PublishError(
            f"changes: {error}; the feed compares with the live files, and this one was damaged"
            " since the last build: build once without --changes",
            code="changes.live",
        ) from None
    rows = counts.added + counts.changed + counts.removed
    return _planned(publication, Path.cwd() / target, pending, empty=not rows)


def _pending_name(waiting: list[Feed], suffix: str) -> str:
    numbers = [int(feed["pending"].split("-")[2].partition(".")[0]) for feed in waiting]
    return f"changes-pending-{max(numbers, default=0) + 1}{suffix}"


def _planned(publication: Publication, target: Path, pending: str, *, empty: bool) -> list[Feed]:
    """Where each feed goes: the newest to ``target``, those before it beside it.

    An empty one has nothing to tell: the last of those that wait takes its place.
    """
    feeds = [*publication.feeds, {"pending": pending, "target": str(target)}]
    if empty and len(feeds) > 1 and Path(feeds[-2]["pending"]).suffix == target.suffix:
        feeds.pop()
        publication.files.unlink(pending)
        feeds[-1] = {**feeds[-1], "target": str(target)}
    used = {str(target)}
    planned = []
    for feed in feeds[:-1]:
        place = _place(feed, target, used)
        used.add(str(place))
        planned.append({**feed, "target": str(place)})
    return [*planned, feeds[-1]]


def _place(feed: Feed, target: Path, used: set[str]) -> Path:
    """Where a feed of a former build goes: as it was to, or under a number beside ``target``."""
    suffix = Path(feed["pending"]).suffix
    wanted = Path.cwd() / feed["target"]
    number = 0
    place = wanted if wanted.parent == target.parent else target
    while (
        str(place) in used
        or place.parent != target.parent
        or place.suffix != suffix
        or os.path.lexists(place)
    ):
        number += 1
        place = target.with_name(f"{target.stem}.{number}{suffix}")
    return place


def deliver_feeds(publication: Publication) -> list[str]:
    """Moves the feeds to where the user wants them, in their order.

    Returns:
        Where those of former builds went.

    Raises:
        PublishError: ``output.changes``: one could not be written; it waits with those after it.
    """
    waiting = list(publication.feeds)
    earlier = []
    try:
        while waiting:
            _deliver(publication, waiting[0])
            # only now is it not needed any more
            publication.files.unlink(waiting[0]["pending"])
            done = waiting.pop(0)
            if done["pending"] in publication.waited:
                earlier.append(done["target"])
    except OSError as error:
        with contextlib.suppress(OSError):  # the journal lists what is delivered already: no harm
            publication.keep_feeds(waiting)
        raise PublishError(
            f"{waiting[0]['target']}: {error.strerror or error}; the new set is live, and its"
            f" change feed waits in {publication.state / waiting[0]['pending']}: the next build"
            " with --changes delivers it",
            code="output.changes",
        ) from None
    with publication.writing(publication.state):
        publication.keep_feeds(waiting)
    return earlier


def _deliver(publication: Publication, feed: Feed) -> None:
    target = Path(feed["target"])
    try:
        file = publication.files.open_file(feed["pending"])
    except FileNotFoundError:  # it was delivered before a kill
        return
    with os.fdopen(file, "rb") as pending:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as new:
            shutil.copyfileobj(pending, new, PIECE)

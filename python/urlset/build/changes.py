"""The change feed of a build: the URLs that were added, changed and removed since the last build.

It is computed from the shards that differ, before they are replaced. It waits beside the manifest
until the build is live: a feed lists nothing that crawlers cannot see yet. The journal of the
publication lists it, so it is not lost however the build ends. It is removed from there once it has
been delivered to the path that the user named.

A feed that could not be delivered waits for the next build with ``--changes``. It goes to the
folder that this build names, before the feed of this build, and replaces no file. The path in the
journal alone is not trusted: an attacker who can write to the state folder could have any file
written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path

from .. import _core
from ..destination.interface import Publication
from ..destination.manifest import Feed, Manifest, UrlChanges
from ..errors import InputError, PublishError
from ..rows import Rows, write
from ..threads import available_cores
from ..transport.target import Target, absolute, exists, replacing, target_of
from .differences import SitemapFile, write_differences

#: bytes for the entries of a comparison; more go to disk
DIFF_MEMORY = 256 << 20
#: bytes that are copied at a time
BLOCK_BYTES = 1 << 20


def stage_feed(
    publication: Publication,
    previous: Manifest | None,
    new: Manifest,
    changed: Collection[str],
    target: Target,
) -> tuple[list[Feed], UrlChanges]:
    """Writes the feed to the state.

    Args:
        previous: the manifest of the live set; None before the first build.
        new: the manifest of this build.
        changed: the paths of the shards that are staged.
        target: the path of the feed; its ending determines the format.

    Returns:
        All feeds to deliver, those of previous builds first; the numbers of changes.

    Raises:
        PublishError: ``changes.live``: a live file was damaged, so its content is unknown.
    """
    from tempfile import TemporaryDirectory  # most builds have no feed

    kept = {shard.path for shard in new.shards}.difference(changed)
    old_files = []
    for shard in previous.shards if previous is not None else ():
        path = publication.local(shard.path, staged=False) if shard.path not in kept else None
        if path is not None:
            # a file that was edited by hand is compared unchanged
            digest = shard.digest if publication.is_untouched(shard) else None
            old_files.append(SitemapFile(path, shard.path, digest))
    new_files = []
    for shard in new.shards:
        path = publication.local(shard.path, staged=True) if shard.path in changed else None
        if path is not None:
            new_files.append(SitemapFile(path, shard.path, shard.digest))
    pending = publication.pending_name(target.suffix)
    staging = publication.temporary
    try:
        with publication.writing(staging), TemporaryDirectory(dir=staging) as folder:
            if new.layout == "stable":
                old_files, new_files = write_differences(old_files, new_files, Path(folder))
            file = Path(folder, pending)
            changes = _write_changes(old_files, new_files, file)
            publication.put_feed(pending, file)
    except InputError as error:
        raise PublishError(
            f"changes: {error}; the feed compares with the live files, and this one was damaged"
            " since the last build: build once without --changes",
            code="changes.live",
        ) from None
    return _planned(publication, absolute(target), pending, empty=not any(changes)), changes


def _write_changes(old: list[SitemapFile], new: list[SitemapFile], file: Path) -> UrlChanges:
    """Compares two sets and writes the feed; returns the numbers of changes."""
    threads = available_cores()
    with ExitStack() as stack:
        stream = _core.diff_stream(old, new, threads, DIFF_MEMORY, False, stack)
        with Rows(stream, stack, threads) as rows:
            write(rows, os.fspath(file))
            added, changed, removed, _ = stream.counts() or (0, 0, 0, 0)
            return UrlChanges(added, changed, removed)


def _planned(publication: Publication, target: Target, pending: str, *, empty: bool) -> list[Feed]:
    """The path of each feed: the newest goes to ``target``, earlier ones to the same folder.

    An empty feed is not delivered if another one of the same format waits: the last of those
    goes to ``target``.
    """
    feeds = [*publication.feeds, Feed(pending, str(target))]
    if empty and len(feeds) > 1 and Path(feeds[-2].pending).suffix == target.suffix:
        feeds.pop()
        publication.drop_feed(pending)
        feeds[-1] = feeds[-1]._replace(target=str(target))
    used = {str(target)}
    planned = []
    for feed in feeds[:-1]:
        place = _place(feed, target, used)
        used.add(str(place))
        planned.append(feed._replace(target=str(place)))
    return [*planned, feeds[-1]]


def _place(feed: Feed, target: Target, used: set[str]) -> Target:
    """The path of a feed of a previous build: its target, or a numbered name beside ``target``."""
    suffix = Path(feed.pending).suffix
    wanted = absolute(target_of(feed.target))
    number = 0
    place = wanted if wanted.parent == target.parent else target
    while (
        str(place) in used
        or place.parent != target.parent
        or place.suffix != suffix
        or exists(place)
    ):
        number += 1
        place = target.with_name(f"{target.stem}.{number}{suffix}")
    return place


def deliver_feeds(publication: Publication) -> list[str]:
    """Moves the feeds to the paths that the user named, in their order.

    Returns:
        The paths of those of previous builds.

    Raises:
        PublishError: ``output.changes``: one could not be written; it waits with those after it.
    """
    waiting = list(publication.feeds)
    earlier = []
    try:
        while waiting:
            _deliver(publication, waiting[0])
            publication.drop_feed(waiting[0].pending)
            done = waiting.pop(0)
            if done.pending in publication.waited:
                earlier.append(done.target)
    except OSError as error:
        with suppress(OSError):  # a journal that lists delivered feeds does no harm
            publication.keep_feeds(waiting)
        raise PublishError(
            f"{waiting[0].target}: {error.strerror or error}; the new set is live, and its change"
            f" feed waits in {publication.feed_place(waiting[0].pending)}: the next build with"
            " --changes delivers it",
            code="output.changes",
        ) from None
    with publication.writing(publication.scratch):
        publication.keep_feeds(waiting)
    return earlier


def _deliver(publication: Publication, feed: Feed) -> None:
    target = target_of(feed.target)
    pending = publication.open_feed(feed.pending)
    if pending is None:  # it was delivered before a kill
        return
    with pending:
        if isinstance(target, Path):
            target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as new:
            shutil.copyfileobj(pending, new, BLOCK_BYTES)

"""The stamps of lastmod in the state: damaged, hostile, of another version, used by two builds."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from conftest import SITE
from conftest import urlset as command
from lastmod_builds import ONE, THREE, TWO, build, stamps, table, times, written
from urlset import _core
from urlset.errors import PublishError

pytestmark = pytest.mark.long


def damage(out: Path, how: str) -> None:
    path = stamps(out)
    data = path.read_bytes()
    if how == "shorter":
        path.write_bytes(data[:-1])
    elif how == "changed":
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    if how == "link":
        (out / "other").write_bytes(data)
        path.symlink_to(out / "other")
    elif how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)


@pytest.mark.parametrize(
    "how", ["shorter", "changed", "empty", "missing", "link", "folder", "pipe"]
)
def test_damaged_stamps(tmp_path: Path, how: str) -> None:
    out = tmp_path / "out"
    build(table([("/1", 1), ("/2", 1)]), out, ONE)
    build(table([("/1", 2), ("/2", 1)]), out, TWO)
    damage(out, how)
    catalog = written(tmp_path, [("/1", 2), ("/2", 1), ("/3", 1)], "loc", "value")
    arguments = ("build", catalog, "--site", SITE, "--out", out, "--lastmod-from", "value")
    ended = command(*arguments)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    if how != "link":
        assert "[lastmod.damaged]" in ended.err and "--lastmod-restart" in ended.err
    assert times(out) == {"/1": TWO, "/2": None}
    ended = command(*arguments, "--lastmod-restart")
    assert ended.status == 0, ended
    assert "first build" in ended.out and "3 without lastmod" in ended.out
    assert times(out) == {"/1": None, "/2": None, "/3": None}
    assert command(*arguments).status == 0


def test_hostile_stamps(tmp_path: Path) -> None:
    """Any bytes with the right digest: an error of one line, or a legal sitemap."""
    out, pick = tmp_path / "out", random.Random(5)
    rows = [(f"/{at}", at) for at in range(60)]
    build(table(rows), out, ONE)
    build(table(rows[:50]), out, TWO)
    manifest = out / ".urlset/manifest.json"
    path, content = stamps(out), json.loads(manifest.read_bytes())
    data, failed = path.read_bytes(), 0
    for turn in range(120):
        changed = bytearray(data)
        for _ in range(pick.choice((1, 3, 40))):
            at = pick.choice((pick.randrange(len(data)), len(data) - 1 - pick.randrange(48)))
            changed[at] = pick.choice((0, 255, pick.randrange(256)))
        if pick.random() < 0.2:
            changed = changed[: pick.randrange(len(data))] + changed[-48:]
        content["lastmod"] |= {"bytes": len(changed), "digest": _core.digest(bytes(changed))}
        manifest.write_text(json.dumps(content))
        path.write_bytes(changed)
        try:
            build(table(rows), out, THREE, dry_run=True, threads=pick.choice((1, 3)))
        except PublishError as error:
            failed += 1
            assert error.code == "lastmod.damaged" and "\n" not in str(error)
        copy = tmp_path / f"copy-{turn}"
        shutil.copytree(out, copy)
        try:
            build(table(rows), copy, THREE)
        except PublishError as error:
            assert error.code == "lastmod.damaged"
        else:
            for time in filter(None, times(copy).values()):
                datetime.fromisoformat(time)
        shutil.rmtree(copy)
    assert 20 < failed < 120


def replace(out: Path, change: Callable[[bytes], bytes]) -> None:
    """Other stamps, of which the manifest has the right digest."""
    path, manifest = stamps(out), out / ".urlset/manifest.json"
    data, content = change(path.read_bytes()), json.loads(manifest.read_bytes())
    content["lastmod"] |= {"bytes": len(data), "digest": _core.digest(data)}
    manifest.write_text(json.dumps(content))
    path.write_bytes(data)


def test_stamps_of_another_version(tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(table([("/1", 1)]), out, ONE)
    replace(out, lambda data: data.replace(b"urlset\0\x02", b"urlset\0\x01"))
    with pytest.raises(PublishError, match=r"another version of urlset.*lastmod-restart"):
        build(table([("/1", 1)]), out, TWO)
    build(table([("/1", 1)]), out, TWO, lastmod_restart=True)
    assert times(out) == {"/1": None}


def test_stamps_that_end_anywhere(tmp_path: Path) -> None:
    out = tmp_path / "out"
    rows = [(f"/{at}", at) for at in range(3)]
    build(table(rows), out, ONE)
    build(table(rows[:2]), out, TWO)
    data = stamps(out).read_bytes()
    assert len(data) == 2 * 18 + 26 + 8 + 36
    for end in range(len(data)):
        replace(out, lambda _, end=end: data[:end])
        with pytest.raises(PublishError) as caught:
            build(table(rows), out, THREE)
        assert caught.value.code == "lastmod.damaged"
    replace(out, lambda _: data)
    assert build(table(rows), out, THREE)["kept"] == 3

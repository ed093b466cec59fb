"""The change feed is delivered, or pending for delivery, after any failure of a build."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SITE, Ended, read_set, urlset

pytestmark = pytest.mark.long

#: kills a build at, before or after the N-th call with which a publication changes files
DRIVER = """
import os, signal, sys

at, after = int(sys.argv[1]), sys.argv[2] == "after"
count = 0

def counted(call):
    def wrapped(*args, **kwargs):
        global count
        count += 1
        chosen = count == at
        if chosen and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return call(*args, **kwargs)
        finally:
            if chosen:
                os.kill(os.getpid(), signal.SIGKILL)
    return wrapped

from urlset.cli import main
for name in ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync", "open", "write"):
    setattr(os, name, counted(getattr(os, name)))
main(sys.argv[3:])
"""


def catalog(path: Path, ids: range) -> set[str]:
    urls = [f"{SITE}/{n}" for n in ids]
    path.write_text("url\n" + "".join(f"{url}\n" for url in urls))
    return set(urls)


def arguments(source: Path, out: Path, *more: object) -> list[str]:
    return [
        "build", str(source), "--site", SITE, "--out", str(out), "--max-urls", "40",
        "--duplicates", "drop", "--max-shrink", "100%", "--layout", "stable", *map(str, more),
    ]  # fmt: skip


def build(source: Path, out: Path, *more: object) -> Ended:
    return urlset(*arguments(source, out, *more))


def rows(path: Path) -> list[tuple[str, str]]:
    with path.open(newline="") as file:
        return [(row["change"], row["loc"]) for row in csv.DictReader(file)]


def applied(known: set[str], feeds: list[Path]) -> set[str]:
    """The live set according to these feeds, in this order."""
    known = set(known)
    for feed in feeds:
        for change, loc in rows(feed):
            assert (loc in known) == (change != "added"), (feed, change, loc)
            (known.discard if change == "removed" else known.add)(loc)
    return known


def waiting(out: Path) -> list[str]:
    return sorted(path.name for path in (out / ".urlset").glob("changes-*"))


def killed_everywhere(tmp_path: Path, step: int, moment: str) -> int:
    """Kills a build at every ``step``-th call; the next builds lose no change."""
    first, second, third = (tmp_path / f"{n}.csv" for n in (1, 2, 3))
    before = catalog(first, range(100))
    catalog(second, range(20, 130))
    after = catalog(third, range(50, 170))
    template = tmp_path / "template"
    assert build(first, template).status == 0
    out, target = tmp_path / "out", tmp_path / "feeds" / "changes.csv"
    for kills, at in enumerate(range(1, 2_000, step)):
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(target.parent, ignore_errors=True)
        shutil.copytree(template, out)
        driver = [sys.executable, "-c", DRIVER, str(at), moment]
        command = [*driver, *arguments(second, out, "--changes", target)]
        done = subprocess.run(command, capture_output=True, timeout=60)
        if done.returncode == 0:
            assert kills
            return kills
        assert done.returncode == -signal.SIGKILL, done.stderr
        # a reader that takes a feed away at once, as announce does
        taken = []
        if target.exists():
            taken.append(target.rename(target.with_name("taken.csv")))
        if at % 2 and (out / ".urlset/publish.json").exists():  # a night without a feed loses none
            assert build(second, out, "--quiet").status == 0
        ended = build(second, out, "--changes", target)
        assert ended.status == 0, ended.err
        if taken and target.exists() and rows(target) == rows(taken[0]):
            target.unlink()  # delivered, and killed before that was noted
        else:
            taken += [target.rename(target.with_name("next.csv"))]
        assert build(third, out, "--changes", target).status == 0
        numbered = sorted(target.parent.glob("changes.[0-9]*.csv"))
        live = {entry["loc"] for entry in read_set(out)}
        assert live == after
        assert applied(before, [*taken, *numbered, target]) == live, at
        assert waiting(out) == [] and not (out / ".urlset/publish.json").exists()
    pytest.fail("the calls do not end")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_at_some_calls(tmp_path: Path, moment: str) -> None:
    assert killed_everywhere(tmp_path, 13, moment) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_at_every_call(tmp_path: Path, moment: str) -> None:
    assert killed_everywhere(tmp_path, 1, moment) >= 60


def limited(args: list[str], size: int) -> Ended:
    """A build with a limit of the bytes of a file."""
    code = (
        "import resource, sys; from urlset.cli import main;"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, timeout=60)
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A folder without space."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("no filesystem can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_target(tmp_path: Path, out: Path, full: Path) -> None:
    """An existing file stays; the feed stays pending over builds, and is delivered in order."""
    source, target = tmp_path / "c.csv", full / "changes.csv"
    target.write_text("of the night before\n")
    nights = [range(600), range(50, 700), range(50, 700), range(90, 650)]
    for night, ids in enumerate(nights):
        live = catalog(source, ids)
        more = () if night == 2 else ("--changes", target)
        ended = build(source, out, "--json", tmp_path / "report.json", *more)
        report = json.loads((tmp_path / "report.json").read_text())
        if night == 2:
            assert ended.status == 0 and "changes.waiting" in str(report["warnings"])
        else:
            assert (ended.status, ended.err.count("\n")) == (3, 1), ended
            assert "[output.changes]" in ended.err and "the new set is live" in ended.err
            assert report["published"] is True
        assert {entry["loc"] for entry in read_set(out)} == live
        assert [path.name for path in full.iterdir()] == ["changes.csv"]
        assert target.read_text() == "of the night before\n"
    assert len(waiting(out)) == 3
    subprocess.run(["mount", "-o", "remount,size=4m", full], check=True)
    ended = build(source, out, "--changes", target, "--json", tmp_path / "report.json")
    assert ended.status == 0, ended.err
    feeds = [full / "changes.1.csv", full / "changes.2.csv", target]
    assert sorted(full.iterdir()) == sorted(feeds)
    assert applied(set(), feeds) == live
    warned = {w["code"]: w for w in json.loads((tmp_path / "report.json").read_text())["warnings"]}
    assert warned["changes.delivered"]["count"] == 3
    assert all(str(feed) in warned["changes.delivered"]["message"] for feed in feeds)
    assert waiting(out) == [] and not (out / ".urlset/publish.json").exists()


def test_a_feed_beyond_the_limit_of_a_file(tmp_path: Path, out: Path) -> None:
    source, target = tmp_path / "c.csv", tmp_path / "changes.csv"
    catalog(source, range(60))
    assert build(source, out, "--changes", target).status == 0
    before = target.read_bytes()
    live = catalog(source, range(1_000, 1_900))
    ended = limited(arguments(source, out, "--changes", target), 20_000)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert target.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"c.csv", "changes.csv", "out"}
    ended = build(source, out, "--changes", target)
    assert ended.status == 0, ended.err
    assert {loc for change, loc in rows(target) if change == "added"} == live


def test_feeds_take_the_place_of_no_file(tmp_path: Path, out: Path) -> None:
    """Paths in a journal are not trusted: no other folder, no replacement of an existing file."""
    source, target = tmp_path / "c.csv", tmp_path / "feeds/changes.csv"
    catalog(source, range(60))
    assert build(source, out).status == 0
    precious = [tmp_path / "precious.csv", target.parent / "precious.csv"]
    target.parent.mkdir()
    for path in precious:
        path.write_text("precious")
    state = out / ".urlset"
    names = [f"changes-pending-{n}.csv" for n in (1, 2, 3)]
    targets = [str(precious[0]), str(precious[1]), str(target.parent / "earlier.csv")]
    for name in names:
        (state / name).write_text("change,loc,lastmod,old_lastmod\nremoved,x,,\n")
    feeds = [{"pending": n, "target": t} for n, t in zip(names, targets, strict=True)]
    (state / "publish.json").write_text(json.dumps({"manifest": 1, "feeds": feeds}))
    assert build(source, out, "--quiet").status == 0
    assert waiting(out) == names
    catalog(source, range(70))
    ended = build(source, out, "--changes", target)
    assert ended.status == 0, ended.err
    assert all(path.read_text() == "precious" for path in precious)
    assert len(rows(target)) == 10
    found = {path.name for path in target.parent.iterdir()}
    assert found == {
        "precious.csv", "changes.csv", "changes.1.csv", "changes.2.csv", "earlier.csv"
    }  # fmt: skip
    assert waiting(out) == []


def test_feeds_of_several_formats(tmp_path: Path, out: Path) -> None:
    source, blocked = tmp_path / "c.csv", tmp_path / "blocked.csv"
    catalog(source, range(60))
    blocked.symlink_to("/dev/full")
    ended = build(source, out, "--changes", blocked)
    assert (ended.status, "[output.changes]" in ended.err) == (3, True)
    assert blocked.is_symlink() and len(waiting(out)) == 1
    catalog(source, range(70))
    ended = build(source, out, "--changes", tmp_path / "now.jsonl")
    assert ended.status == 0, ended.err
    assert len((tmp_path / "now.jsonl").read_text().splitlines()) == 10
    assert len(rows(tmp_path / "now.1.csv")) == 60


def test_a_feed_to_a_pipe(tmp_path: Path, out: Path) -> None:
    source, pipe = tmp_path / "c.csv", tmp_path / "pipe.csv"
    catalog(source, range(60))
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    assert build(source, out, "--changes", pipe).status == 0
    assert len(reader.communicate(timeout=20)[0].splitlines()) == 61
    assert pipe.is_fifo()


def test_a_pending_feed_of_0_1(tmp_path: Path, out: Path) -> None:
    """Its journal does not contain the path of the feed."""
    source = tmp_path / "c.csv"
    catalog(source, range(60))
    assert build(source, out).status == 0
    state = out / ".urlset"
    manifest = json.loads((state / "manifest.json").read_text())
    journal = {"manifest": 1, "moves": [], "remove": [], "new": manifest}
    (state / "publish.json").write_text(json.dumps(journal))
    (state / "changes-pending.csv").write_text("change,loc\n")
    ended = build(source, out)
    assert ended.status == 0 and "[changes.recovered]" in ended.out
    assert (state / "changes-recovered.csv").read_text() == "change,loc\n"
    (state / "changes-pending.csv").write_text("of a build that was not published\n")
    assert build(source, out).status == 0 and waiting(out) == ["changes-recovered.csv"]

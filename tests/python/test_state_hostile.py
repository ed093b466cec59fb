"""The state folder may contain anything: links, pipes, damaged and hostile files."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import urlset as package
from conftest import SITE, Ended, files, read_set, urlset
from urlset import PublishError

pytestmark = pytest.mark.long


def catalog(tmp_path: Path, rows: int, tag: str = "p") -> Path:
    path = tmp_path / f"{tag}-{rows}.csv"
    path.write_text("url\n" + "".join(f"{SITE}/{tag}/{n}\n" for n in range(rows)))
    return path


def build(source: Path, out: Path, *args: object) -> Ended:
    common = ("--site", SITE, "--out", out, "--max-urls", 100, "--max-shrink", "100%")
    return urlset("build", source, *common, *args)


def tree(folder: Path) -> dict[str, object]:
    """The whole content of a folder, with links as links."""
    return {
        str(path.relative_to(folder)): path.readlink()
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    (folder / "deeper").mkdir(parents=True)
    for name in ("important", "important.xml.gz", "sitemap.xml", "lock", "manifest.json",
                 "deeper/important.xml.gz"):  # fmt: skip
        (folder / name).write_text("precious")
    return folder


def live(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / ".urlset/manifest.json").read_text()))


def tamper(out: Path, change: dict[str, Any]) -> None:
    (out / ".urlset/manifest.json").write_text(json.dumps(live(out) | change))


@pytest.mark.parametrize("path", ["link/important", "link/important.xml.gz", "link.xml.gz"])
def test_a_manifest_that_lists_what_is_behind_a_link(
    tmp_path: Path, out: Path, victim: Path, path: str
) -> None:
    assert build(catalog(tmp_path, 250), out).status == 0
    (out / "link").symlink_to("../victim")
    (out / "link.xml.gz").symlink_to("../victim/important.xml.gz")
    before = tree(victim)
    for kind in ("shards", "indexes", "retired"):
        entry = path if kind == "retired" else live(out)["shards"][0] | {"path": path}
        tamper(out, {kind: [*live(out)[kind], entry]})
        ended = build(catalog(tmp_path, 120), out)
        assert ended.status == 0 and "[publish.left]" in ended.out, ended
        assert tree(victim) == before
        assert (out / "link").is_symlink() and (out / "link.xml.gz").is_symlink()
        assert len(read_set(out)) == 120
        assert build(catalog(tmp_path, 250), out).status == 0


@pytest.mark.parametrize("path", ["link/evil.xml", "link/sitemap.xml", "link/new/evil.xml"])
def test_a_journal_that_moves_through_a_link(
    tmp_path: Path, out: Path, victim: Path, path: str
) -> None:
    assert build(catalog(tmp_path, 250), out).status == 0
    (out / "link").symlink_to("../victim")
    staging = out / ".urlset/staging"
    (staging / path).parent.mkdir(parents=True)
    (staging / path).write_text("evil")
    before = tree(victim)
    journal = {"manifest": 1, "moves": [path], "remove": ["link/important.xml.gz"],
               "new": live(out)}  # fmt: skip
    (out / ".urlset/publish.json").write_text(json.dumps(journal))
    ended = build(catalog(tmp_path, 250), out)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert "[output.link]" in ended.err
    assert tree(victim) == before and len(read_set(out)) == 250


@pytest.mark.parametrize("path", ["index.html", "robots.txt", ".urlset/lock", "data.csv"])
def test_files_that_no_build_makes_stay(tmp_path: Path, out: Path, path: str) -> None:
    """With any content of a manifest or a journal."""
    assert build(catalog(tmp_path, 250), out).status == 0
    (out / path).write_text("mine")
    tamper(out, {"retired": [path]})
    assert build(catalog(tmp_path, 120), out).status == 0
    assert (out / path).read_text() == "mine"
    staging = out / ".urlset/staging"
    (staging / path).parent.mkdir(parents=True)
    (staging / path).write_text("evil")
    journal = {"manifest": 1, "moves": [path], "remove": [], "new": live(out)}
    (out / ".urlset/publish.json").write_text(json.dumps(journal))
    ended = build(catalog(tmp_path, 120), out)
    assert ended.status == 3 and "[state.damaged]" in ended.err
    assert (out / path).read_text() == "mine"


LINKS = [
    "staging", "lock", "manifest.json", "publish.json", "manifest.json.new", "publish.json.new",
    "rejects.csv", "rejects-0.new", "changes-pending-1.csv",
]  # fmt: skip


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("name", ["sitemap", "shop"])
@pytest.mark.parametrize("link", LINKS)
def test_a_link_in_the_state_folder(
    tmp_path: Path, out: Path, victim: Path, link: str, name: str, dangling: bool
) -> None:
    """It is removed or refused, and never written, read or deleted through."""
    bad = catalog(tmp_path, 250)
    with bad.open("a") as file:
        file.write("x:\n")
    args = ("--max-rejects", "9", "--name", name, "--duplicates", "drop", "--changes",
            tmp_path / "changes.csv")  # fmt: skip
    state = out / ".urlset" / ("" if name == "sitemap" else name)
    assert build(bad, out, *args).status == 0
    (state / link).unlink(missing_ok=True)
    known = victim / {"lock": "lock", "staging": "deeper"}.get(link, "manifest.json")
    (state / link).symlink_to(victim / "none" if dangling else known)
    before, was = tree(victim), files(out)
    ended = build(bad, out, *args)
    assert tree(victim) == before
    assert files(out) == was
    if link in ("lock", "manifest.json", "publish.json"):
        assert ended.status == 3 and "[output.link]" in ended.err, ended
        assert ended.err.count("\n") == 1 and str(state / link) in ended.err
    else:
        assert ended.status == 0, ended


@pytest.mark.parametrize("name", ["sitemap", "shop"])
def test_a_state_folder_that_is_a_link(tmp_path: Path, out: Path, victim: Path, name: str) -> None:
    """OUT, --state and their parents may be links; nothing below them may."""
    source = catalog(tmp_path, 120)
    out.mkdir()
    (out / ".urlset").symlink_to(victim)
    before = tree(victim)
    ended = build(source, out, "--name", name)
    assert (ended.status, "[output.link]" in ended.err) == (3, True), ended
    assert tree(victim) == before
    assert package.read(victim, lenient=True) is not None
    (tmp_path / "release").mkdir()
    (tmp_path / "parent").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "current").symlink_to("release")
    (tmp_path / "kept").mkdir()
    (tmp_path / "state").symlink_to("kept")
    more = ("--name", name, "--state", tmp_path / "parent/state")
    for _ in range(2):
        ended = build(source, tmp_path / "parent/current", *more)
        assert ended.status == 0, ended.err
    assert len(read_set(tmp_path / "release", f"{name}.xml")) == 120
    if name != "sitemap":
        shutil.rmtree(tmp_path / "kept" / name)
        (tmp_path / "kept" / name).symlink_to(victim)
        ended = build(source, tmp_path / "current", *more)
        assert (ended.status, "[output.link]" in ended.err) == (3, True), ended
        assert tree(victim) == before


@pytest.mark.parametrize("layout", ["packed", "stable"])
@pytest.mark.parametrize("kind", ["shard", "index"])
def test_a_dangling_link_in_the_place_of_a_file(
    tmp_path: Path, out: Path, layout: str, kind: str
) -> None:
    source = catalog(tmp_path, 250)
    other = tmp_path / "other"
    assert build(source, other, "--layout", layout).status == 0
    name = "sitemap.xml" if kind == "index" else sorted(p.name for p in other.glob("*.gz"))[1]
    out.mkdir()
    (out / name).symlink_to(tmp_path / "nothing")
    ended = build(source, out, "--layout", layout)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert "[publish.foreign]" in ended.err and f"{out / name}: is there" in ended.err
    assert (out / name).is_symlink() and not (tmp_path / "nothing").exists()
    assert not files(other).keys() & {p.name for p in out.iterdir()} - {name}


@pytest.mark.parametrize("option", ["--changes", "--rejects", "--json", "robots"])
def test_a_dangling_link_that_the_user_names(tmp_path: Path, out: Path, option: str) -> None:
    source = catalog(tmp_path, 120)
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "nothing.csv")
    if option == "robots":
        assert build(source, out).status == 0
        ended = urlset("announce", out, "--to", "robots", "--robots", link)
        assert "[robots.unwritable]" in ended.err
    else:
        ended = build(source, out, "--duplicates", "drop", option, link)
        assert not out.exists()
    assert ended.status == 3 and "is a symbolic link to nothing" in ended.err
    assert link.is_symlink() and not (tmp_path / "nothing.csv").exists()


@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_what_has_the_place_of_a_shard_that_is_to_go(
    tmp_path: Path, out: Path, layout: str, kind: str
) -> None:
    args = ("--layout", layout)
    assert build(catalog(tmp_path, 500), out, *args).status == 0
    way = sorted(out.glob("*.gz"))[-1]
    way.unlink()
    if kind == "folder":
        way.mkdir()
        (way / "mine").write_text("mine")
    elif kind == "link":
        way.symlink_to(tmp_path / "nothing")
    else:
        os.mkfifo(way)
    left = 0
    for rows in (120, 130, 140):
        ended = build(catalog(tmp_path, rows, f"r{rows}"), out, *args)
        assert ended.status == 0, ended
        left += "[publish.left]" in ended.out
        assert len(read_set(out)) == rows
    assert left == 1 and (way.is_symlink() or way.exists())
    assert kind != "folder" or (way / "mine").read_text() == "mine"
    assert sorted(p.name for p in (out / ".urlset").iterdir()) == ["lock", "manifest.json"]


@pytest.mark.parametrize("name", [*LINKS, "announce"])
@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_other_things_in_the_state_folder(tmp_path: Path, out: Path, name: str, kind: str) -> None:
    """One line with its name, soon; leftovers of a build are removed."""
    source = catalog(tmp_path, 120)
    assert build(source, out).status == 0
    place = out / ".urlset" / name
    place.unlink(missing_ok=True)
    if kind == "folder":
        (place / "a/b").mkdir(parents=True)
        (place / "a/b/c").write_text("x")
    else:
        os.mkfifo(place)
    started = time.monotonic()
    ended = build(source, out)
    assert time.monotonic() - started < 60 and len(read_set(out)) == 120
    if name in ("manifest.json", "publish.json"):
        assert ended.status == 3 and "[state.damaged]" in ended.err, ended
    elif name == "lock":
        assert ended.status == 3 and ended.err.count("\n") == 1, ended
        assert "internal error" not in ended.err and str(place) in ended.err
    else:
        assert ended.status == 0, ended
        assert (name == "announce") == (place.exists() or place.is_fifo())


def test_a_very_deep_staging_folder(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path, 120)
    assert build(source, out).status == 0
    here = os.open(out / ".urlset", os.O_RDONLY)
    for name in ["staging"] * 3_000:
        os.mkdir(name, dir_fd=here)
        deeper = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    assert build(source, out).status == 0
    assert not (out / ".urlset/staging").exists()


VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**18, 10**400, -(10**400), 1e300, 0.5, "", "x", "\ud800",
    "a\udcffb", "\0", "../x", "/etc/passwd", "a/../../b", "x" * 10_000, [], {}, [[]], {"a": 1},
    ["\ud800"], [1], [None], "{host}", "9999-99-99T99:99:99Z", "0000-01-01T00:00:00Z", "1" * 32,
    float("nan"), float("inf"), "robots.txt", ".urlset/lock", "sitemap.xml",
]  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every holder and key in a document."""
    found = []
    stack = [value]
    while stack:
        holder = stack.pop()
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                stack.append(holder[key])
    return found


def mutated(document: dict[str, Any], rng: random.Random) -> bytes:
    """A document with something wrong in its values, its structure or its bytes."""
    changed = json.loads(json.dumps(document))
    kind = rng.random()
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        found = places(changed)
        if not found:
            break
        holder, key = rng.choice(found)
        if kind < 0.45:
            # a copy: a later change would otherwise apply to all others, and to itself
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif kind < 0.6:
            del holder[key]
        elif kind < 0.7 and isinstance(holder, list):
            holder.append(holder[key])
        elif kind < 0.75:
            nested: Any = 1
            for _ in range(rng.choice([5, 20, 300])):
                nested = {"a": nested} if rng.random() < 0.5 else [nested]
            holder[key] = nested
    data = bytearray(json.dumps(changed).encode())
    if kind >= 0.75:
        for _ in range(rng.choice([1, 3, 20])):
            at = rng.randrange(len(data))
            what = rng.random()
            if what < 0.5:
                data[at] = rng.randrange(256)
            elif what < 0.8:
                del data[at : at + rng.choice([1, 5, 100])]
            else:
                data[at:at] = rng.choice([b"[" * 5_000, b"\xff", b"\\ud800", b"9" * 5_000, b"{}"])
            if not data:
                break
    return bytes(data)


def expect(call: Callable[[], object], *codes: str) -> bool:
    """Whether it succeeded; any error other than these is a failure."""
    try:
        call()
    except package.Error as error:
        assert error.code in codes, (error.code, error)
        assert "\n" not in str(error)
        str(error).encode("utf-8", "backslashreplace")
        return False
    return True


def mutations(tmp_path: Path, times: int, seed: int) -> None:
    rng = random.Random(seed)
    source, next_one = catalog(tmp_path, 250), catalog(tmp_path, 240, "q")
    options = {"site": SITE, "max_urls": 100, "max_shrink": "100%", "index_lastmod": "changed"}
    template, out = tmp_path / "template", tmp_path / "out"
    package.build(source, out=template, layout="stable", **options)
    package.build(next_one, out=template, layout="stable", **options)
    # with a killed build to complete: its files are live and staged
    manifest = json.loads((template / ".urlset/manifest.json").read_text())
    journal = {
        "manifest": 1, "moves": [entry["path"] for entry in manifest["shards"]],
        "remove": manifest["retired"], "new": manifest,
        "feeds": [{"pending": "changes-pending-1.csv", "target": str(tmp_path / "feed.csv")}],
    }  # fmt: skip
    wrong = {"manifest.json": 0, "publish.json": 0}
    (tmp_path / "precious").write_text("precious")
    for turn in range(times):
        for name, document in (("manifest.json", manifest), ("publish.json", journal)):
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(template, out)
            state = out / ".urlset"
            if name == "publish.json":
                (state / "changes-pending-1.csv").write_text("change,loc,lastmod,old_lastmod\n")
            (state / name).write_bytes(mutated(document, rng))
            went_well = expect(
                lambda: package.build(source, out=out, layout="stable", **options),
                "state.damaged", "state.newer", "state.other_folder", "publish.path",
                "publish.foreign", "publish.incomplete",
            )  # fmt: skip
            wrong[name] += not went_well
            if turn % 5 == 0:
                (state / name).write_bytes(mutated(document, rng))
                package.verify(out)
                package.diff(out, template).read_all()
                expect(
                    lambda: package.announce(
                        out, to="robots", robots=tmp_path / "robots.txt", dry_run=True
                    ),
                    "announce.manifest", "announce.empty", "announce.bad_url",
                    "announce.many_hosts",
                )  # fmt: skip
    assert (tmp_path / "precious").read_text() == "precious"
    assert min(wrong.values()) > times / 4, wrong


def test_some_damaged_manifests_and_journals(tmp_path: Path) -> None:
    mutations(tmp_path, 150, 1)


@pytest.mark.slow
def test_thousands_of_damaged_manifests_and_journals(tmp_path: Path) -> None:
    mutations(tmp_path, 5_000, 2)


@pytest.mark.parametrize("name", ["manifest.json", "publish.json"])
@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"manifest": 1' + ', "a": {"b": ' * 400 + "1" + "}" * 801,
     '{"manifest": 1' + "0" * 400 + "}", '{"manifest": 1, "urls": 1e400}', '{"manifest": 1}',
     '{"manifest": 1, "feeds": []}', '{"manifest": 1, "feeds": [{}]}',
     '{"manifest": 1, "feeds": [{"pending": "../x.csv", "target": "/tmp/x.csv"}]}',
     '{"manifest": 1, "feeds": [{"pending": "changes-pending-1.csv", "target": 5}]}'],
)  # fmt: skip
def test_damaged_states_say_so(tmp_path: Path, out: Path, name: str, text: str) -> None:
    source = catalog(tmp_path, 120)
    assert build(source, out).status == 0
    (out / ".urlset" / name).write_text(text)
    ended = build(source, out)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert "[state.damaged]" in ended.err and len(read_set(out)) == 120


def test_a_state_without_end(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path, 120)
    assert build(source, out).status == 0
    with (out / ".urlset/manifest.json").open("r+b") as file:
        file.truncate(2 << 30)  # of zeros, none of them on the disk
    ended = build(source, out)
    assert ended.status == 3 and "[state.damaged]" in ended.err


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_readers_of_a_manifest_that_is_none(tmp_path: Path, out: Path, kind: str) -> None:
    assert build(catalog(tmp_path, 120), out).status == 0
    place = out / ".urlset/manifest.json"
    place.unlink()
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to("/dev/zero")
    else:
        place.mkdir()
    assert urlset("verify", out).status == 0
    assert urlset("read", out, "-o", tmp_path / "rows.csv").status == 0
    assert urlset("diff", out, out).status == 0
    ended = urlset("announce", out, "--to", "robots", "--robots", tmp_path / "robots.txt")
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert "[announce.manifest]" in ended.err


def announced(out: Path, urls: Path) -> Ended:
    return urlset("announce", out, "--to", "indexnow", "--urls", urls, "--dry-run")


@pytest.mark.parametrize("seed", range(3))
def test_damaged_announce_journals(tmp_path: Path, out: Path, seed: int) -> None:
    """Any content of an SQLite file is ``journal.damaged`` or harmless."""
    from urlset.announce.journal import AnnounceJournal

    rng = random.Random(seed)
    folder = tmp_path / "announce"
    with AnnounceJournal(folder, "indexnow", "https://a.example", b"feed") as journal:
        journal.record([f"{SITE}/{n}" for n in range(500)])
    whole = (folder / "indexnow.sqlite3").read_bytes()
    wrong = 0

    def use(read_only: bool) -> None:
        with AnnounceJournal(
            folder, "indexnow", "https://a.example", b"feed", read_only=read_only
        ) as journal:
            journal.accepted(f"{SITE}/1")
            if not read_only:
                journal.record([f"{SITE}/x"])
                journal.finish()

    for turn in range(150):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 10, 200])):
            at = rng.randrange(len(data))
            data[at] = rng.randrange(256)
        if turn % 5 == 0:
            del data[rng.randrange(len(data)) :]
        (folder / "indexnow.sqlite3").write_bytes(data)
        codes = ("journal.damaged", "journal.unwritable")
        wrong += not expect(lambda turn=turn: use(turn % 2 == 0), *codes)
    assert wrong > 20
    for statement in (
        "UPDATE accepted SET urls = 'text'", "UPDATE accepted SET at = 'text'",
        "UPDATE run SET started = 'text', finished = x'00'", "UPDATE accepted SET urls = 5",
        "DROP TABLE run; CREATE TABLE run (id TEXT, feed, started, finished);"
        "INSERT INTO run VALUES ('x', 1, 1, NULL)",
        "DROP TABLE accepted; CREATE VIEW accepted AS SELECT 1 AS run, 2 AS at, 3 AS urls",
    ):  # fmt: skip
        (folder / "indexnow.sqlite3").write_bytes(whole)
        with sqlite3.connect(folder / "indexnow.sqlite3") as database:
            database.executescript(statement)
        database.close()
        for read_only in (True, False):
            expect(lambda read_only=read_only: use(read_only), *codes)


@pytest.mark.parametrize("what", ["fifo", "link", "folder", "lock", "folder link", "super"])
def test_an_announce_journal_that_is_none(tmp_path: Path, victim: Path, what: str) -> None:
    from urlset.announce.journal import AnnounceJournal

    folder = tmp_path / "announce"
    place = folder / "indexnow.sqlite3"
    before = tree(victim)
    if what == "folder link":
        folder.symlink_to(victim)
    else:
        folder.mkdir()
    if what == "fifo":
        os.mkfifo(place)
    elif what == "link":
        place.symlink_to(victim / "none")
    elif what == "folder":
        place.mkdir()
    elif what == "lock":
        (folder / "indexnow.lock").symlink_to(victim / "none")
    elif what == "super":
        # SQLite would remove the file whose name is at the end of a rollback journal
        place.write_bytes(b"")
        named = os.fsencode(victim / "important")
        tail = (1).to_bytes(4, "big") + named + len(named).to_bytes(4, "big")
        tail += sum(named).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
        (folder / "indexnow.sqlite3-journal").write_bytes(b"\0" * 512 + tail)
    with pytest.raises(package.Error) as told:
        AnnounceJournal(folder, "indexnow", "https://a.example", b"feed")
    assert told.value.code in ("journal.damaged", "journal.unwritable")
    assert tree(victim) == before


def test_the_error_of_a_damaged_state_is_a_publish_error(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path, 120)
    package.build(source, site=SITE, out=out)
    (out / ".urlset/manifest.json").write_text("{")
    with pytest.raises(PublishError) as told:
        package.build(source, site=SITE, out=out)
    assert (told.value.code, told.value.exit_status) == ("state.damaged", 3)


@pytest.mark.parametrize("kind", ["link", "dangling", "device", "fifo", "folder"])
def test_what_has_the_place_of_the_reject_file(
    tmp_path: Path, out: Path, victim: Path, kind: str
) -> None:
    """Nothing is written through a link, and no reader of a pipe is waited for."""
    source = catalog(tmp_path, 250)
    source.write_text(source.read_text() + "not a URL\n")
    assert build(source, out).status == 0
    rejects = out / ".urlset/rejects.csv"
    expected = rejects.read_bytes()
    assert expected.count(b"\n") == 2
    rejects.unlink()
    if kind == "fifo":
        os.mkfifo(rejects)
    elif kind == "folder":
        rejects.mkdir()
    else:
        target = {"link": victim / "important", "dangling": victim / "new", "device": "/dev/full"}
        rejects.symlink_to(target[kind])
    before = tree(victim)
    ended = build(source, out)
    assert ended.status == 0, ended.err
    assert tree(victim) == before
    assert rejects.read_bytes() == expected and not rejects.is_symlink()

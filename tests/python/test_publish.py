"""The live set is complete after any failure of a build."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import urlset as package
from conftest import SITE, Ended, files, read_index, read_set, urlset
from urlset import PublishError


def catalog(tmp_path: Path, rows: int, *, tag: str = "p") -> Path:
    path = tmp_path / f"{tag}-{rows}.csv"
    path.write_text("url\n" + "".join(f"{SITE}/{tag}/{i}\n" for i in range(rows)))
    return path


def build(source: Path, out: Path, *args: object) -> Ended:
    common = ("--site", SITE, "--out", out, "--max-urls", 100, "--max-shrink", "100%")
    return urlset("build", source, *common, *args)


def whole(out: Path) -> int:
    """The number of live entries; every file in an index must exist and be complete."""
    return len(read_set(out))


def leftovers(state: Path) -> list[str]:
    known = {"manifest.json", "lock", "rejects.csv"}
    return sorted(path.name for path in state.iterdir() if path.name not in known)


def test_foreign_files_stay_and_surplus_shards_go(tmp_path: Path, out: Path) -> None:
    assert build(catalog(tmp_path, 1_000), out).status == 0
    foreign = ["robots.txt", "sitemap-00011.xml.gz", "sitemap-index-2.xml", "other.xml"]
    for name in foreign:
        (out / name).write_text(name)
    assert build(catalog(tmp_path, 250), out).status == 0
    names = {path.name for path in out.iterdir()}
    shards = {f"sitemap-0000{i}.xml.gz" for i in (1, 2, 3)}
    assert names == {"sitemap.xml", ".urlset", *shards, *foreign}
    assert all((out / name).read_text() == name for name in foreign)
    assert leftovers(out / ".urlset") == []


def test_a_second_build_of_the_same_writes_nothing_but_the_index(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path, 1_000)
    assert build(source, out).status == 0
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.xml.gz")}
    report = json.loads(build(source, out, "--json", "-").out)
    assert [shard["changed"] for shard in report["shards"]] == [False] * 10
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.xml.gz")} == before
    # a damaged file and a removed file are written again
    (out / "sitemap-00002.xml.gz").write_bytes(b"damaged")
    (out / "sitemap-00005.xml.gz").unlink()
    report = json.loads(build(source, out, "--json", "-").out)
    assert [i for i, shard in enumerate(report["shards"], 1) if shard["changed"]] == [2, 5]
    assert whole(out) == 1_000


@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_files_have_the_usual_mode(tmp_path: Path, out: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        assert build(catalog(tmp_path, 250), out).status == 0
    finally:
        os.umask(before)
    for path in out.glob("*.xml*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask, path
    assert stat.S_IMODE(out.stat().st_mode) == 0o777 & ~mask


def test_a_second_build_while_one_runs(tmp_path: Path, out: Path) -> None:
    assert build(catalog(tmp_path, 250), out).status == 0
    with (out / ".urlset/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = time.monotonic()
        ended = build(catalog(tmp_path, 300), out)
        assert time.monotonic() - started < 60
    assert (ended.status, ended.err.count("\n")) == (3, 1)
    assert "another build" in ended.err and "[output.locked]" in ended.err
    assert whole(out) == 250
    assert build(catalog(tmp_path, 300), out).status == 0


def test_out_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    for out in (tmp_path / "out", tmp_path / "out/deeper"):
        ended = build(catalog(tmp_path, 10), out)
        assert (ended.status, ended.err.count("\n")) == (3, 1), ended
        assert "[output.not_a_folder]" in ended.err
    assert (tmp_path / "out").read_text() == "x"


def test_out_cannot_be_written(tmp_path: Path, out: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    out.mkdir(mode=0o555)
    ended = build(catalog(tmp_path, 10), out)
    assert (ended.status, ended.err.count("\n")) == (3, 1)
    assert "[output.unwritable]" in ended.err


def test_state_elsewhere(tmp_path: Path, out: Path) -> None:
    state = tmp_path / "state"
    assert build(catalog(tmp_path, 500), out, "--state", state).status == 0
    assert not (out / ".urlset").exists() and (state / "manifest.json").exists()
    assert build(catalog(tmp_path, 200), out, "--state", state).status == 0
    assert len(list(out.glob("*.gz"))) == 2 and leftovers(state) == []
    if Path("/dev/shm").is_dir() and Path("/dev/shm").stat().st_dev != tmp_path.stat().st_dev:
        other = Path(f"/dev/shm/urlset-test-{os.getpid()}")
        ended = build(catalog(tmp_path, 200), out, "--state", other)
        for path in (other, *other.rglob("*")):
            path.unlink() if path.is_file() else None
        other.rmdir()
        assert ended.status == 3 and "[output.other_filesystem]" in ended.err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("gzip_", [True, False])
def test_a_full_disk(tmp_path: Path, small_disk: Path, gzip_: bool) -> None:
    out = small_disk / "out"
    assert build(catalog(tmp_path, 250), out).status == 0
    before = {path.name: path.read_bytes() for path in out.glob("*.xml*")}
    big = tmp_path / "big.csv"
    rng = random.Random(1)
    big.write_text("url\n" + "".join(f"{SITE}/{rng.randbytes(40).hex()}\n" for _ in range(60_000)))
    ended = build(big, out, "--max-urls", 5_000, *([] if gzip_ else ["--no-gzip"]))
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert "[output.disk_full]" in ended.err
    assert {path.name: path.read_bytes() for path in out.glob("*.xml*")} == before
    assert build(catalog(tmp_path, 260), out).status == 0
    assert whole(out) == 260 and leftovers(out / ".urlset") == []


def test_a_full_disk_under_the_reject_file(tmp_path: Path, small_disk: Path) -> None:
    out = small_disk / "out"
    bad = tmp_path / "bad.csv"
    bad.write_text("url\n" + "".join(f"x:{'y' * 1000}{i}\n" for i in range(5_000)) + f"{SITE}/1\n")
    ended = build(bad, out, "--max-rejects", "100%")
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert not list(out.glob("*.xml*"))


def kill_at(command: list[str], delay: float) -> bool:
    """Whether the build was still running at the kill."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def killed_builds(tmp_path: Path, out: Path, times: int, seed: int) -> None:
    sizes = (30_000, 20_050)
    sources = [catalog(tmp_path, n, tag=f"g{n}") for n in sizes]
    started = time.monotonic()
    assert build(sources[0], out).status == 0
    needs = time.monotonic() - started
    (out / "foreign.txt").write_text("mine")
    rng = random.Random(seed)
    killed = 0
    for turn in range(times):
        source = sources[(turn + 1) % 2]
        command = [
            sys.executable, "-m", "urlset", "build", str(source), "--site", SITE, "--out", str(out),
            "--max-urls", "100", "--max-shrink", "100%",
        ]  # fmt: skip
        killed += kill_at(command, rng.uniform(0.2, 0.95) * needs)
        for path in out.glob("*.xml*"):  # each live file is complete
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            assert text.rstrip().endswith((b"</urlset>", b"</sitemapindex>")), path
        assert whole(out) >= 0  # the live index lists only files that exist
        if turn % 3 == 0:
            assert build(source, out).status == 0
            assert {e["loc"] for e in read_set(out)} == set(source.read_text().split()[1:])
            assert leftovers(out / ".urlset") == []
    assert build(sources[1], out).status == 0
    assert whole(out) == sizes[1]
    assert len(list(out.glob("*.xml.gz"))) == 201 and leftovers(out / ".urlset") == []
    assert (out / "foreign.txt").read_text() == "mine"
    assert killed > 0


def test_kills_in_the_middle(tmp_path: Path, out: Path) -> None:
    killed_builds(tmp_path, out, 7, 1)


@pytest.mark.slow
def test_hundreds_of_kills(tmp_path: Path, out: Path) -> None:
    killed_builds(tmp_path, out, 300, 2)


class Killed(BaseException):
    """Simulates a kill in a test: nothing handles it."""


def _nothing(*_: object, **__: object) -> None:
    return None


def die_after(patch: pytest.MonkeyPatch, calls: int, death: type[BaseException]) -> None:
    """Ends a build at one of its renames or removals; a killed build cleans up nothing."""
    left = [calls]

    def dying(call):
        def counted(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise death
            return call(*args, **kwargs)

        return counted

    for name in ("replace", "unlink"):
        patch.setattr(os, name, dying(getattr(os, name)))
    patch.setattr(import_module("urlset.build.commit").Commit, "keep_rejects", _nothing)


@pytest.mark.parametrize("death", [Killed, KeyboardInterrupt, OSError])
def test_an_end_at_every_step_of_the_publication(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, death: type[BaseException]
) -> None:
    """Before the journal the previous set is live; after it the next build completes it."""
    options = {"site": SITE, "max_urls": 100, "max_shrink": "100%"}
    large, small = catalog(tmp_path, 500, tag="a"), catalog(tmp_path, 300, tag="b")
    next_one = catalog(tmp_path, 300, tag="b")
    steps = 0
    for step in range(40):
        target = out.parent / f"out{step}"
        package.build(large, out=target, **options)
        former = files(target)
        with monkeypatch.context() as patch:
            die_after(patch, step, death)
            try:
                package.build(small, out=target, **options)
            except (Killed, KeyboardInterrupt, PublishError):
                pass
            else:
                break
        steps += 1
        journal = (target / ".urlset/publish.json").exists()
        done = json.loads((target / ".urlset/manifest.json").read_text())["urls"] == 300
        if not journal and not done:
            assert files(target) == former
        assert whole(target) >= 0
        package.build(next_one, out=target, **options)
        assert [e["loc"] for e in read_set(target)] == next_one.read_text().split()[1:]
        assert sorted(path.name for path in target.glob("*.xml*")) == sorted(
            ["sitemap.xml", *(f"sitemap-0000{i}.xml.gz" for i in (1, 2, 3))]
        )
        assert leftovers(target / ".urlset") == []
    assert steps >= 9  # journal, 3 shards, index, manifest, 2 stale shards, journal


def test_a_journal_left_behind_is_completed_even_when_the_next_build_fails(
    tmp_path: Path, out: Path
) -> None:
    assert build(catalog(tmp_path, 250), out).status == 0
    state = out / ".urlset"
    manifest = json.loads((state / "manifest.json").read_text())
    (state / "staging").mkdir()
    staged = out / "sitemap-00003.xml.gz"
    data = staged.read_bytes()
    staged.rename(state / "staging/sitemap-00003.xml.gz")
    journal = {
        "manifest": 1, "moves": ["sitemap-00003.xml.gz"], "remove": [], "new": manifest,
    }  # fmt: skip
    (state / "publish.json").write_text(json.dumps(journal))
    broken = tmp_path / "broken.csv"
    broken.write_text(f'url\n"{SITE}/1\n')
    assert build(broken, out).status == 3
    assert staged.read_bytes() == data and whole(out) == 250 and leftovers(state) == []


BAD_PATHS = ["../evil", "/etc/evil", "a/../../evil", "", "a\0b", "..", "./../x"]


@pytest.mark.parametrize("bad", BAD_PATHS)
def test_a_tampered_journal_leads_nowhere(tmp_path: Path, out: Path, bad: str) -> None:
    source = catalog(tmp_path, 250)
    assert build(source, out).status == 0
    state = out / ".urlset"
    manifest = json.loads((state / "manifest.json").read_text())
    (tmp_path / "evil").write_text("precious")
    for change in ({"moves": [bad]}, {"remove": [bad]}):
        journal = {"manifest": 1, "moves": [], "remove": [], "new": manifest} | change
        (state / "publish.json").write_text(json.dumps(journal))
        ended = build(source, out)
        assert (ended.status, ended.err.count("\n")) == (3, 1), ended
        assert "[publish.path]" in ended.err
        (state / "publish.json").unlink()
    tampered = manifest | {"shards": [*manifest["shards"], {"path": bad}]}
    (state / "manifest.json").write_text(json.dumps(tampered))
    ended = build(source, out)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert (tmp_path / "evil").read_text() == "precious" and whole(out) == 250


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "1", '"x"', '{"manifest": "1"}', '{"manifest": 1, "shards": 5}',
        '{"manifest": 1, "shards": [5]}', '{"manifest": 1, "shards": [{"path": 5}]}',
        '{"manifest": 1, "urls": "many"}', '{"manifest": 1, "urls": null}', "\xff",
        '{"manifest": 1, "retired": [1]}', "[" * 100_000, '{"manifest": 1, "urls": 1e999}',
        '{"manifest": 1, "shards": null}', '{"manifest": 1, "config": [], "urls": [1]}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["manifest.json", "publish.json"])
def test_a_damaged_state_is_one_line(tmp_path: Path, out: Path, name: str, text: str) -> None:
    source = catalog(tmp_path, 120)
    options = {"site": SITE, "out": out, "max_urls": 100}
    package.build(source, **options)
    (out / ".urlset" / name).write_text(text, encoding="latin-1")
    try:
        package.build(source, **options)
    except PublishError as error:
        assert error.code in ("state.damaged", "publish.incomplete")
        assert "\n" not in str(error)
    assert whole(out) == 120


def test_a_state_of_a_newer_urlset_is_not_touched(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path, 120)
    assert build(source, out).status == 0
    for name in ("manifest.json", "publish.json"):
        (out / ".urlset" / name).write_text('{"manifest": 2, "future": true}')
        ended = build(source, out)
        assert ended.status == 3 and "[state.newer]" in ended.err
        assert "future" in (out / ".urlset" / name).read_text()


def test_a_staging_folder_that_is_a_link_is_not_followed(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path, 120)
    assert build(source, out).status == 0
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    (out / ".urlset/staging").symlink_to(tmp_path / "precious")
    assert build(source, out).status == 0
    assert (tmp_path / "precious/file").read_text() == "x"


def test_a_set_that_shrank(tmp_path: Path, out: Path) -> None:
    options = {"site": SITE, "out": out}
    package.build(catalog(tmp_path, 1_000), **options)
    for rows, share in ((799, "20%"), (299, "70%"), (99, "90%")):
        with pytest.raises(package.DataError) as info:
            package.build(catalog(tmp_path, rows), max_shrink=share, **options)
        assert info.value.code == "publish.shrank"
    assert whole(out) == 1_000
    former = 1_000
    for percent in (20, 30, 70, 90):
        package.build(catalog(tmp_path, 1_000), **options)
        rows = former * (100 - percent) // 100
        package.build(catalog(tmp_path, rows), max_shrink=f"{percent}%", **options)
        assert whole(out) == rows


def test_a_dry_run_publishes_nothing(tmp_path: Path, out: Path) -> None:
    assert build(catalog(tmp_path, 250), out).status == 0
    before = files(out)
    ended = build(catalog(tmp_path, 300), out, "--dry-run", "--json", "-")
    report = json.loads(ended.out)
    assert (ended.status, report["published"], report["urls"]) == (0, False, 300)
    assert files(out) == before and leftovers(out / ".urlset") == []
    assert len(read_index(out / "sitemap.xml")) == 3


def test_a_signal_between_two_renames_waits_for_the_last(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another thread of the process receives it."""
    idle = threading.Event()
    other = threading.Thread(target=idle.wait)
    other.start()
    replace = os.replace

    def slow(name: str, *args: object, **kwargs: object) -> None:
        if name == "sitemap-00002.xml.gz":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        replace(name, *args, **kwargs)

    monkeypatch.setattr(os, "replace", slow)
    with pytest.raises(KeyboardInterrupt):
        package.build(catalog(tmp_path, 500), site=SITE, out=out, max_urls=100)
    idle.set()
    other.join()
    assert whole(out) == 500
    monkeypatch.undo()
    package.build(catalog(tmp_path, 490), site=SITE, out=out, max_urls=100)
    assert whole(out) == 490 and leftovers(out / ".urlset") == []

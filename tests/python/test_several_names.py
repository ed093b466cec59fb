"""Sets of different names share a folder, each with its own state."""

from __future__ import annotations

import fcntl
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import urlset as package
from conftest import SITE, Ended, read_index, read_set, urlset

pytestmark = pytest.mark.long

NAMES = ("products", "categories", "sitemap", "a.b_c-D")


def catalog(tmp_path: Path, tag: str, rows: int) -> Path:
    path = tmp_path / f"{tag}-{rows}.csv"
    path.write_text("url\n" + "".join(f"{SITE}/{tag}/{n}\n" for n in range(rows)))
    return path


def build(source: Path, out: Path, *args: object) -> Ended:
    return urlset("build", source, "--site", SITE, "--out", out, "--max-urls", 100, *args)


def locs(out: Path, name: str) -> list[str]:
    return [entry["loc"] for entry in read_set(out, f"{name}.xml")]


def state_of(out: Path, name: str) -> Path:
    return out / ".urlset" if name == "sitemap" else out / ".urlset" / name


def content(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}


@pytest.mark.parametrize("layout", ["packed", "stable"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_each_name_keeps_to_itself(tmp_path: Path, out: Path, layout: str, elsewhere: bool) -> None:
    """Against a plain model: the live set of each name is the one that it published last."""
    rng = random.Random(4)
    more = ("--layout", layout, "--max-shrink", "100%", "--max-rejects", "100%")
    root = out / ".urlset"
    if elsewhere:
        root = tmp_path / "state"
        more += ("--state", root)
    live: dict[str, list[str]] = {}
    for turn in range(9):
        name = NAMES[turn % 4] if turn < 4 else rng.choice(NAMES)
        source = catalog(tmp_path, name, rng.choice([90, 250, 410]))
        if turn % 3 == 0:
            with source.open("a") as file:
                file.write("x:\n")
        ended = build(source, out, "--name", name, *more)
        assert ended.status == 0, ended.err
        live[name] = [url for url in source.read_text().split()[1:] if url != "x:"]
        state = root if name == "sitemap" else root / name
        assert (state / "rejects.csv").exists() == (turn % 3 == 0)
        listed = set()
        for known, wanted in live.items():
            assert locs(out, known) == wanted, (turn, known)
            folder = root if known == "sitemap" else root / known
            manifest = json.loads((folder / "manifest.json").read_text())
            assert manifest["urls"] == len(wanted)
            listed |= {e["path"] for kind in ("shards", "indexes") for e in manifest[kind]}
            listed |= set(manifest["retired"])
        assert {p.name for p in out.iterdir() if p.is_file()} == listed
    assert all("staging" not in path.parts for path in root.rglob("*"))


def test_two_builds_at_once(tmp_path: Path, out: Path) -> None:
    """Also the first builds, which create the folders."""
    for turn in range(4):
        running = []
        for name in NAMES:
            source = catalog(tmp_path, f"{name}-{turn}", 3_000 + 100 * turn)
            command = [sys.executable, "-m", "urlset", "build", source, "--site", SITE, "--out",
                       out, "--max-urls", "100", "--name", name, "--layout",
                       ["stable", "packed"][turn % 2]]  # fmt: skip
            running.append(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            )
        for process in running:
            _, said = process.communicate(timeout=120)
            assert process.returncode == 0, said
        for name in NAMES:
            source = catalog(tmp_path, f"{name}-{turn}", 3_000 + 100 * turn)
            assert locs(out, name) == source.read_text().split()[1:]


def test_two_builds_of_hosts_at_once(tmp_path: Path, out: Path) -> None:
    """They share the folders of the hosts; one may empty a folder that another fills."""
    hosts = ("a.example", "b.example", "c.example")
    for turn in range(4):
        running = []
        for number, name in enumerate(("one", "two", "three")):
            chosen = hosts[(turn + number) % 3]
            source = tmp_path / f"{name}.csv"
            source.write_text("url\n" + "".join(f"https://{chosen}/{n}\n" for n in range(50)))
            command = [sys.executable, "-m", "urlset", "build", source, "--site",
                       "https://a.example", "--hosts", "any", "--split-by", "@host", "--out", out,
                       "--name", name, "--max-shrink", "100%"]  # fmt: skip
            running.append(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            )
        for process in running:
            _, said = process.communicate(timeout=120)
            assert process.returncode == 0, said
        for number, name in enumerate(("one", "two", "three")):
            assert (out / hosts[(turn + number) % 3] / f"{name}.xml").exists()
            assert len(list(out.glob(f"*/{name}.xml"))) == 1


def test_a_lock_for_each_name(tmp_path: Path, out: Path) -> None:
    for name in ("sitemap", "products"):
        assert build(catalog(tmp_path, name, 90), out, "--name", name).status == 0
    with (out / ".urlset/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "[output.locked]" in build(catalog(tmp_path, "s", 90), out).err
        assert build(catalog(tmp_path, "p", 90), out, "--name", "products").status == 0
    with (out / ".urlset/products/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = build(catalog(tmp_path, "p", 90), out, "--name", "products")
        assert ended.status == 3 and "[output.locked]" in ended.err
        assert build(catalog(tmp_path, "s", 90), out).status == 0


@pytest.mark.parametrize("removed", [False, True])
def test_a_file_of_another_name_is_refused(tmp_path: Path, out: Path, removed: bool) -> None:
    """Whether or not the file exists at this moment."""
    rows = "".join(f"{SITE}/{n},{'xy'[n % 2]}\n" for n in range(80))
    (tmp_path / "split.csv").write_text(f"url,kind\n{rows}")
    split = ("--name", "a", "--split-by", "kind", "--split-index", "each")
    assert build(tmp_path / "split.csv", out, *split).status == 0
    assert (out / "a-x.xml").exists()
    if removed:
        for path in out.glob("a-x*"):
            path.unlink()
    before = content(out)
    ended = build(catalog(tmp_path, "p", 90), out, "--name", "a-x")
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert "[publish.other_name]" in ended.err and "set 'a'" in ended.err
    after = {path: data for path, data in content(out).items() if path != ".urlset/a-x/lock"}
    assert after == before


def test_what_a_journal_of_another_name_lists_is_refused(tmp_path: Path, out: Path) -> None:
    assert build(catalog(tmp_path, "a", 90), out, "--name", "a").status == 0
    state = out / ".urlset/a"
    manifest = json.loads((state / "manifest.json").read_text())
    shard = manifest["shards"][0] | {"path": "b-00001.xml.gz"}
    journal = {"manifest": 1, "moves": [], "remove": [], "new": manifest | {"shards": [shard]}}
    (state / "publish.json").write_text(json.dumps(journal))
    ended = build(catalog(tmp_path, "b", 90), out, "--name", "b")
    assert (ended.status, "[publish.other_name]" in ended.err) == (3, True), ended
    assert not (out / "b.xml").exists()
    (state / "publish.json").write_text(json.dumps(journal | {"remove": ["b-00001.xml.gz"]}))
    assert "[publish.other_name]" in build(catalog(tmp_path, "b", 90), out, "--name", "b").err
    (state / "publish.json").unlink()
    assert build(catalog(tmp_path, "b", 90), out, "--name", "b").status == 0


def as_of_0_1(out: Path, name: str) -> None:
    """Creates the state of a set as urlset 0.1 wrote it."""
    state = state_of(out, name)
    manifest = json.loads((state / "manifest.json").read_text())
    del manifest["name"]
    manifest.pop("sets", None)
    manifest["urlset"] = "0.1.0"
    manifest["folder"] = ".."
    for path in list(state.iterdir()):
        if path.is_file():
            path.rename(out / ".urlset" / path.name)
    (out / ".urlset/manifest.json").write_text(json.dumps(manifest))
    if name != "sitemap":
        shutil.rmtree(state)


def test_a_state_of_0_1_moves_to_its_name(tmp_path: Path, out: Path) -> None:
    assert build(catalog(tmp_path, "p", 250), out, "--name", "products").status == 0
    as_of_0_1(out, "products")
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.gz")}
    report = json.loads(build(catalog(tmp_path, "p", 250), out, "--name", "products",
                              "--json", "-").out)  # fmt: skip
    assert [shard["changed"] for shard in report["shards"]] == [False] * 3
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.gz")} == before
    assert not (out / ".urlset/manifest.json").exists()
    assert (out / ".urlset/products/manifest.json").exists()
    ended = build(catalog(tmp_path, "p", 90), out, "--name", "products")
    assert ended.status == 1 and "[publish.shrank]" in ended.err  # it compares with the live set


@pytest.mark.parametrize("former", ["products", "my-products", "x"])
@pytest.mark.parametrize("next_one", ["sitemap", "other"])
def test_a_state_of_0_1_is_kept_while_another_name_builds(
    tmp_path: Path, out: Path, former: str, next_one: str
) -> None:
    source = catalog(tmp_path, "p", 250)
    assert build(source, out, "--name", former).status == 0
    as_of_0_1(out, former)
    assert build(catalog(tmp_path, "s", 120), out, "--name", next_one).status == 0
    assert locs(out, former) == source.read_text().split()[1:]
    assert len(locs(out, next_one)) == 120
    small = catalog(tmp_path, "p", 210)
    assert build(small, out, "--name", former).status == 0
    assert locs(out, former) == small.read_text().split()[1:]
    assert len(list(out.glob(f"{former}-0*.gz"))) == 3 and len(locs(out, next_one)) == 120
    assert (state_of(out, former) / "manifest.json").exists()


def test_a_killed_publication_of_0_1_is_completed(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path, "p", 250)
    assert build(source, out, "--name", "products").status == 0
    as_of_0_1(out, "products")
    state = out / ".urlset"
    manifest = json.loads((state / "manifest.json").read_text())
    journal = {"manifest": 1, "moves": ["products-00003.xml.gz"], "remove": [], "new": manifest}
    (state / "publish.json").write_text(json.dumps(journal))
    (state / "staging").mkdir()
    (out / "products-00003.xml.gz").rename(state / "staging/products-00003.xml.gz")
    assert build(catalog(tmp_path, "s", 120), out).status == 0
    assert locs(out, "products") == source.read_text().split()[1:]
    assert build(source, out, "--name", "products").status == 0


def test_a_split_of_0_1_with_one_value(tmp_path: Path, out: Path) -> None:
    """Its files do not determine the name: each possible name finds them."""
    (tmp_path / "c.csv").write_text(f"url,kind\n{SITE}/1,x\n")
    split = ("--name", "shop", "--split-by", "kind", "--split-index", "each")
    assert build(tmp_path / "c.csv", out, *split).status == 0
    as_of_0_1(out, "shop")
    assert build(catalog(tmp_path, "s", 120), out).status == 0
    assert build(tmp_path / "c.csv", out, *split).status == 0
    assert (out / ".urlset/shop/manifest.json").exists() and len(locs(out, "sitemap")) == 120


@pytest.mark.parametrize(
    "name",
    ["staging", "Lock", "announce", "manifest.json", "publish.json", "rejects.csv", "..", ".",
     "a/b", "../x", "/etc", "", "x\0", "-x", "changes-pending-1.csv"],
)  # fmt: skip
def test_names_that_are_refused(tmp_path: Path, out: Path, name: str) -> None:
    with pytest.raises(package.ConfigError) as told:
        package.build(catalog(tmp_path, "p", 9), site=SITE, out=out, name=name)
    assert told.value.code == "config.name" and not out.exists()


def test_jobs_of_sets(tmp_path: Path) -> None:
    """A job whose sets change remains one job, besides jobs with other sets."""
    for name in ("a", "b", "c"):
        catalog(tmp_path, name, 20)

    def job(file: str, *names: str) -> None:
        sets = "".join(f'[[set]]\nname = "{n}"\ninput = "{n}-20.csv"\n' for n in names)
        (tmp_path / file).write_text(f'site = "{SITE}"\nout = "out"\nmax-shrink = "90%"\n{sets}')
        ended = urlset("build", "--config", tmp_path / file)
        assert ended.status == 0, ended.err

    out = tmp_path / "out"

    def indexes() -> set[str]:
        return {path.name for path in out.glob("*.xml")}

    job("one.toml", "a", "b")
    assert indexes() == {"sitemap.xml"}
    job("two.toml", "c")
    assert indexes() == {"sitemap.xml", "c.xml"}
    job("one.toml", "a")
    assert indexes() == {"a.xml", "c.xml"}
    job("one.toml", "a", "b")
    assert indexes() == {"sitemap.xml", "c.xml"}
    assert len(read_set(out)) == 40 and len(read_set(out, "c.xml")) == 20


def test_readers_see_all_names(tmp_path: Path, out: Path) -> None:
    for name in ("sitemap", "products"):
        for rows in (250, 240):
            args = ("--name", name, "--layout", "stable")
            assert build(catalog(tmp_path, name, rows), out, *args).status == 0
    report = package.verify(out)
    assert report.counts == {} and report.urls == 480
    assert len(package.read(out).read_all()) == 480
    changes = package.diff(out, out)
    assert changes.read_all().num_rows == 0 and changes.counts.equal_files >= 6
    robots = tmp_path / "robots.txt"
    assert package.announce(out, to="robots", robots=robots).ok
    assert {line for line in robots.read_text().splitlines() if "Sitemap" in line} == {
        f"Sitemap: {SITE}/sitemap.xml", f"Sitemap: {SITE}/products.xml",
    }  # fmt: skip
    robots.unlink()
    assert package.announce(out / "products.xml", to="robots", robots=robots).ok
    assert "sitemap.xml" not in robots.read_text()


def test_announce_of_several_sites_asks_which(tmp_path: Path, out: Path) -> None:
    assert build(catalog(tmp_path, "p", 9), out).status == 0
    (tmp_path / "o.csv").write_text("url\nhttps://other.example/1\n")
    package.build(tmp_path / "o.csv", site="https://other.example", out=out, name="other")
    with pytest.raises(package.ConfigError) as told:
        package.announce(out, to="robots", robots=tmp_path / "robots.txt")
    assert told.value.code == "announce.several_sites" and not (tmp_path / "robots.txt").exists()
    assert package.announce(out / "other.xml", to="robots", robots=tmp_path / "robots.txt").ok
    assert "https://other.example/other.xml" in (tmp_path / "robots.txt").read_text()


def test_hardly_anything_is_read_of_the_index(tmp_path: Path, out: Path) -> None:
    """The name of an index that another set has is refused before its rows are read."""
    assert build(catalog(tmp_path, "a", 90), out, "--name", "a").status == 0
    manifest = out / ".urlset/a/manifest.json"
    known = json.loads(manifest.read_text())
    known["retired"] = ["b.xml"]
    manifest.write_text(json.dumps(known))
    broken = tmp_path / "broken.csv"
    broken.write_text('url\n"open\n')
    ended = build(broken, out, "--name", "b")
    assert "[publish.other_name]" in ended.err
    assert [path.name for path in (out / ".urlset/b").iterdir()] == ["lock"]
    assert read_index(out / "a.xml")

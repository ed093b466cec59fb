"""All files of a job have different names: each shard is in an index, each row in a shard."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from conftest import SITE, Ended, read_index, read_shard, urlset

#: the values of the column that a set is split by, or none
Job = dict[str, list[str] | None]


def run(folder: Path, job: Job, *, top: str = "", per_set: str = "") -> Ended:
    """Builds the job; the URL of each row contains its set and its position."""
    lines = [f'site = "{SITE}"', 'out = "out"', top]
    for number, (name, values) in enumerate(job.items()):
        rows = [f"{SITE}/{number}/{at},{value}\n" for at, value in enumerate(values or [""])]
        (folder / f"{number}.csv").write_text("url,value\n" + "".join(rows))
        lines += ["[[set]]", f'name = "{name}"', f'input = "{number}.csv"', per_set]
        if values is not None:
            lines += ['split-by = "value"']
    (folder / "urlset.toml").write_text("\n".join(lines))
    return urlset("build", "--json", "-", "--verify-staged", cwd=folder)


def check(folder: Path, job: Job, ended: Ended) -> None:
    """Every row occurs once in the files of the indexes, and each file is in one index."""
    assert (ended.status, ended.err) == (0, ""), ended
    out = folder / "out"
    report = json.loads(ended.out)
    names = [index["path"] for index in report["indexes"]]
    shards = [e["loc"].removeprefix(f"{SITE}/") for name in names for e in read_index(out / name)]
    paths = [*names, *shards]
    assert len({path.lower() for path in paths}) == len(paths)
    assert {str(p.relative_to(out)) for p in out.rglob("*.*ml*")} == set(paths)
    found = sorted(entry["loc"] for name in shards for entry in read_shard(out / name))
    rows = [(n, at) for n, values in enumerate(job.values()) for at in range(len(values or [""]))]
    assert found == sorted(f"{SITE}/{number}/{at}" for number, at in rows)
    [place] = (out / ".urlset").rglob("manifest.json")
    manifest = json.loads(place.read_text())
    listed = [entry["path"] for kind in ("shards", "indexes") for entry in manifest[kind]]
    assert sorted(listed) == sorted(paths)


HASH = "0123456789abcdef"

JOBS: dict[str, Job] = {
    "two sets, values that meet": {"a": ["b-c", "x"], "a-b": ["c", "x"]},
    "in the other order": {"a-b": ["c"], "a": ["b-c"]},
    "a value and a set that is not split": {"a": ["b"], "a-b": None},
    "the set comes first": {"a-b": None, "a": ["b", "c"]},
    "the case of letters": {"A": ["b-C"], "a-B": ["c"], "a-b-c": None},
    "the index of sets": {"sitemap": ["all", "x"], "pages": None},
    "the second index of sets": {"sitemap-index": ["2", "3"], "p": None, "q": None},
    "the second index of a value": {"a": ["v", "w"], "a-v-index": ["2", "3"]},
    "the second index comes first": {"a-v-index": ["2", "3"], "a": ["v", "w"]},
    "the number of a shard": {"a": None, "a-00001": None, "a-00002": ["00001", "1"]},
    "a name of the stable layout": {"a": [f"{HASH}-{HASH}", "b"], "a-b": [f"{HASH}-{HASH}"]},
    "three ways to one name": {"a": ["b-c-d"], "a-b": ["c-d"], "a-b-c": ["d"], "a-b-c-d": None},
    "the digits that tell two apart": {"a": ["b-c"], "a-b": ["c", "C", "c "]},
}


@pytest.mark.parametrize("split_index", ["each", "one"])
@pytest.mark.parametrize("form", ["gzip = true", "gzip = false", 'gzip = false\nlayout = "stable"'])
@pytest.mark.parametrize("name", JOBS)
def test_names_that_would_collide(tmp_path: Path, name: str, form: str, split_index: str) -> None:
    job = JOBS[name]
    top = f'{form}\nmax-sitemaps = 1\nmax-urls = 1\nsplit-index = "{split_index}"'
    check(tmp_path, job, run(tmp_path, job, top=top))


@pytest.mark.parametrize("seed", range(25))
def test_random_jobs(tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)
    parts = ["a", "B", "b", "2", "index", "00001", "sitemap", HASH]

    def word(most: int) -> str:
        return "-".join(pick.choices(parts, k=pick.randint(1, most)))

    job: Job = {}
    for _ in range(pick.randint(2, 5)):
        name = word(3)
        if name.lower() not in map(str.lower, job):
            job[name] = (
                None if pick.random() < 0.4 else [word(3) for _ in range(pick.randint(1, 6))]
            )
    top = (
        f"gzip = {pick.choice(['true', 'false'])}\nmax-sitemaps = {pick.randint(1, 3)}\n"
        f'max-urls = 1\nsplit-index = "{pick.choice(["each", "one"])}"\n'
        f'layout = "{pick.choice(["packed", "stable"])}"'
    )
    check(tmp_path, job, run(tmp_path, job, top=top))


def test_names_without_a_collision_are_the_plain_ones(tmp_path: Path) -> None:
    job: Job = {"a": ["b", "c-d", "00x"], "a-b-c": ["d", "e"], "a-x-00001": None, "index": ["2x"]}
    ended = run(tmp_path, job, top='split-index = "each"')
    check(tmp_path, job, ended)
    out = tmp_path / "out"
    assert sorted(path.name for path in out.glob("*.gz")) == sorted(
        f"{stem}-00001.xml.gz"
        for stem in ("a-b", "a-c-d", "a-00x", "a-b-c-d", "a-b-c-e", "a-x-00001", "index-2x")
    )


@pytest.mark.parametrize(
    ("one", "other", "refused"),
    [
        ("a", "a-00001", True), ("A-index-2", "a", True), ("a", f"a-{HASH}-{HASH}", True),
        ("a", "a-1", False), ("a-index", "a", False),
    ],
)  # fmt: skip
def test_sets_that_share_the_folders_of_hosts(
    tmp_path: Path, one: str, other: str, refused: bool
) -> None:
    """Each has an index in the folder of a host, whose name the files of the other may have."""
    per_set = 'split-by = "@host"\nhosts = "any"'
    ended = run(tmp_path, {one: None, other: None}, top="gzip = false", per_set=per_set)
    if not refused:
        assert ended.status == 0, ended
        return
    assert ended.status == 2 and "[config.set]" in ended.err and ended.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_host_that_is_called_as_a_file(tmp_path: Path) -> None:
    """The folder of a host would have the name of the index."""
    (tmp_path / "c.csv").write_text("url\nhttps://sitemap.xml/1\n")
    (tmp_path / "urlset.toml").write_text(
        f'site = "{SITE}"\nout = "out"\nhosts = "any"\n'
        '[[set]]\nname = "a"\ninput = "c.csv"\nsplit-by = "@host"\n'
        '[[set]]\nname = "b"\ninput = "c.csv"\n'
    )
    ended = urlset("build", cwd=tmp_path)
    assert ended.status == 3 and ended.err.count("\n") == 1, ended
    assert "[output.same_name]" in ended.err
    assert not list((tmp_path / "out").glob("*.xml*"))


@pytest.mark.parametrize("option", ["--rejects", "--changes"])
@pytest.mark.parametrize(
    "target", ["sitemap.xml", "sitemap-00001.xml.gz", "../out/sitemap.xml", ".urlset/manifest.json"]
)
def test_nothing_is_written_over_the_live_set(tmp_path: Path, option: str, target: str) -> None:
    """An output path of the build that is a file of the previous one."""
    (tmp_path / "c.csv").write_text(f"url\n{SITE}/1\nx:\n")
    args = ["build", "c.csv", "--site", SITE, "--out", "out", "--duplicates", "drop"]
    args += ["--max-rejects", "5"]
    assert urlset(*args, cwd=tmp_path).status == 0
    out = tmp_path / "out"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    ended = urlset(*args, option, f"out/{target}", cwd=tmp_path)
    assert ended.status == 2 and ended.err.count("\n") == 1, ended
    assert f"[config.{option[2:]}]" in ended.err
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert after == before

"""diff against a plain model in Python."""

from __future__ import annotations

import csv
import gzip
import random
import subprocess
import sys
from pathlib import Path

import pytest
import urlset
from conftest import manifest_text

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
Site = dict[str, tuple[str | None, str]]


def write(root: Path, site: Site, shards: int = 3) -> Path:
    root.mkdir(parents=True)
    items = sorted(site.items())
    for shard in range(shards):
        rows = []
        for loc, (lastmod, priority) in items[shard::shards]:
            date = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
            rows.append(f"<url><loc>{loc}</loc>{date}<priority>{priority}</priority></url>\n")
        data = f'<urlset xmlns="{NS}">{"".join(rows)}</urlset>'.encode()
        (root / f"s{shard}.xml.gz").write_bytes(gzip.compress(data, 1, mtime=0))
    return root


def model(old: Site, new: Site) -> list[tuple[str, str, str | None, str | None]]:
    rows = []
    for loc in sorted(old.keys() | new.keys()):
        if loc not in old:
            rows.append(("added", loc, new[loc][0], None))
        elif loc not in new:
            rows.append(("removed", loc, None, old[loc][0]))
        elif old[loc] != new[loc]:
            rows.append(("changed", loc, new[loc][0], old[loc][0]))
    return rows


def random_site(rng: random.Random, size: int) -> Site:
    return {
        f"https://www.shop.example/{rng.randrange(size)}": (
            rng.choice([None, "2026-01-01", "2026-01-02"]),
            rng.choice(["0.1", "0.2"]),
        )
        for _ in range(size)
    }


def rows_of(changes: urlset.inspect.diff.Changes) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in changes.read_all().to_pylist()]


@pytest.mark.parametrize("seed", range(20))
def test_as_the_model(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    old, new = (random_site(rng, rng.choice([1, 10, 500])) for _ in range(2))
    changes = urlset.diff(write(tmp_path / "a", old), write(tmp_path / "b", new, 2))
    rows = rows_of(changes)
    assert rows == model(old, new)
    counts = changes.counts
    kinds = [row[0] for row in rows]
    assert (counts.added, counts.changed, counts.removed) == tuple(
        kinds.count(kind) for kind in ("added", "changed", "removed")
    )


def test_on_disk_as_in_memory(tmp_path: Path) -> None:
    rng = random.Random(1)
    old, new = random_site(rng, 60_000), random_site(rng, 60_000)
    a, b = write(tmp_path / "a", old), write(tmp_path / "b", new)
    few, many = urlset.diff(a, b, memory=1 << 20), urlset.diff(a, b)
    on_disk, in_memory = rows_of(few), rows_of(many)
    assert in_memory == model(old, new)
    assert on_disk != in_memory  # it did spill, as the order shows
    assert sorted(on_disk, key=str) == sorted(in_memory, key=str)
    again = urlset.diff(a, b, memory=1 << 20, threads=1)
    assert rows_of(again) == on_disk


def test_equal_files_are_not_read(tmp_path: Path) -> None:
    rng = random.Random(2)
    site = random_site(rng, 1000)
    a, b = write(tmp_path / "a", site), write(tmp_path / "b", site)
    for root in (a, b):
        (root / "s1.xml.gz").write_bytes(b"\x1f\x8bno gzip at all, but the same")
    changes = urlset.diff(a, b)
    assert rows_of(changes) == []
    assert changes.counts.equal_files == 3


def test_manifests_spare_the_reading(tmp_path: Path) -> None:
    rng = random.Random(3)
    old, new = random_site(rng, 300), random_site(rng, 300)
    roots = [write(tmp_path / "a", old), write(tmp_path / "b", new)]
    for root, last in zip(roots, "ab", strict=True):
        shards = [
            {"path": path.name, "digest": f"{n}{last if n == 2 else '0'}" * 16,
             "compressed_bytes": path.stat().st_size}
            for n, path in enumerate(sorted(root.glob("*.gz")))
        ]  # fmt: skip
        (root / ".urlset").mkdir()
        (root / ".urlset" / "manifest.json").write_text(manifest_text(shards=shards))
    changes = urlset.diff(*roots)
    third = [dict(sorted(site.items())[2::3]) for site in (old, new)]
    assert rows_of(changes) == model(*third)  # the manifest determines the other two
    assert changes.counts.equal_files == 2
    # a file that differs from its manifest is read
    path = roots[1] / "s0.xml.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 9))
    assert urlset.diff(*roots).read_all().num_rows >= len(model(*third))


def test_damage_and_missing(tmp_path: Path) -> None:
    site = random_site(random.Random(4), 50)
    a, b = write(tmp_path / "a", site), write(tmp_path / "b", site)
    data = (b / "s0.xml.gz").read_bytes()
    (b / "s0.xml.gz").write_bytes(data[:-9])
    with pytest.raises(urlset.InputError) as error:
        urlset.diff(a, b).read_all()
    assert error.value.code == "gzip.truncated"
    urlset.diff(a, b, lenient=True).read_all()
    with pytest.raises(urlset.InputError):
        urlset.diff(a, tmp_path / "nowhere")


def test_command(tmp_path: Path) -> None:
    old: Site = {"https://a.example/1": ("2026-01-01", "0.1"), "https://a.example/2": (None, "0.1")}
    new: Site = {"https://a.example/1": ("2026-01-02", "0.1"), "https://a.example/3": (None, "0.1")}
    a, b = write(tmp_path / "a", old), write(tmp_path / "b", new)
    code = "from urlset.cli import main; main()"

    def run(*args: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, "diff", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    plain = run(a, b)
    assert plain.returncode == 0
    assert plain.stdout.startswith("1 added, 1 changed, 1 removed")
    assert run(a, b, "-o", tmp_path / "c.csv").returncode == 0
    with (tmp_path / "c.csv").open(newline="") as file:
        rows = [tuple(cell or None for cell in row) for row in csv.reader(file)]
    assert rows == [("change", "loc", "lastmod", "old_lastmod"), *model(old, new)]
    assert run(a, tmp_path / "nowhere").returncode == 3


A, B, C = "2026-01-01", "2026-01-02", None


@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        ([A, A], [A], None),
        ([A], [A, A, A], None),
        ([A, B], [B, A, A], None),
        ([], [A, A], ("added", A, None)),
        ([B, A], [], ("removed", None, B)),
        ([A, A], [B], ("changed", B, A)),
        ([A], [A, B], ("changed", B, A)),
        ([C, A], [C], ("changed", None, A)),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_a_url_that_is_listed_twice_counts_once(
    tmp_path: Path,
    old: list[str | None],
    new: list[str | None],
    row: tuple[object, ...] | None,
    together: bool,
) -> None:
    for name, dates in (("old", old), ("new", new)):
        root = tmp_path / name
        root.mkdir()
        rows = [
            f"<url><loc>https://a.example/x</loc>{f'<lastmod>{d}</lastmod>' if d else ''}</url>"
            for d in dates
        ]
        rows.append("<url><loc>https://a.example/both</loc></url>")
        files = ["".join(rows)] if together else rows
        for n, text in enumerate(files):
            # a comment, so that no two files are equal and skipped
            data = f'<urlset xmlns="{NS}"><!-- {name} {n} -->{text}</urlset>'
            (root / f"{n}.xml").write_text(data)
    changes = urlset.diff(tmp_path / "old", tmp_path / "new")
    wanted = [] if row is None else [(row[0], "https://a.example/x", *row[1:])]
    assert rows_of(changes) == wanted
    counts = changes.counts
    assert counts.added + counts.changed + counts.removed == len(wanted)


@pytest.mark.parametrize("memory", [1 << 20, 256 << 20])
def test_a_url_with_thousands_of_different_entries(tmp_path: Path, memory: int) -> None:
    """More variants than are compared one by one: their order is ignored, a difference is found."""
    dates = [f"2026-01-01T00:{n // 60 % 60:02}:{n % 60:02}.{n}Z" for n in range(5_000)]

    def side(name: str, dates: list[str]) -> Path:
        path = tmp_path / name
        loc = "<loc>https://a.example/x</loc>"
        rows = "".join(f"<url>{loc}<lastmod>{date}</lastmod></url>" for date in dates)
        path.write_text(f'<urlset xmlns="{NS}">{rows}</urlset>')
        return path

    old = side("old.xml", dates)
    shuffled = random.Random(1).sample(dates, len(dates))
    assert rows_of(urlset.diff(old, side("new.xml", shuffled), memory=memory)) == []
    for at in (0, 4_000):
        changed = [*shuffled[:at], "2027-01-01", *shuffled[at + 1 :]]
        rows = rows_of(urlset.diff(old, side("new.xml", changed), memory=memory))
        assert rows == [("changed", "https://a.example/x", "2027-01-01", max(dates))]

"""The package without what Windows does not have: a process from which all of it is removed."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree
from test_layers import modules
from urlset import system

pytestmark = pytest.mark.long

WINDOWS = Path(__file__).parent / "windows.py"
COMMAND = "import sys; sys.argv[0] = 'urlset'; from urlset.__main__ import main; main()"
LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
ENGINES = ("spark", "ray", "engine")


def run(tmp_path: Path, code: str, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")
    command = [sys.executable, "-X", "warn_default_encoding", str(WINDOWS), str(script), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=100, **options
    )
    # a file that is read or written in the encoding of the locale
    assert "EncodingWarning" not in done.stderr, done.stderr
    return done


def command(tmp_path: Path, *arguments: str, status: int = 0) -> str:
    done = run(tmp_path, COMMAND, *arguments)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def locs(folder: Path) -> list[str]:
    def read(path: Path) -> list[str]:
        text = path.read_bytes()
        text = gzip.decompress(text) if path.suffix == ".gz" else text
        return [one.text for one in etree.fromstring(text).iter(LOC)]

    names = [url.rpartition("/")[2] for url in read(folder / "sitemap.xml")]
    return [url for name in names for url in read(folder / name)]


def catalog(path: Path, rows: range) -> list[str]:
    urls = [f"https://www.shop.example/p/{row}" for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["url"], *([url] for url in urls)])
    return urls


def test_every_module_is_imported(tmp_path: Path) -> None:
    names = [
        f"urlset.{name}".removesuffix(".__init__")
        for name in modules()
        if name.split(".")[0] not in ENGINES
    ]
    assert len(names) > 80
    imports = "\n".join(f"import {name}" for name in names)
    check = "import os, sys\nassert not hasattr(os, 'fork') and sys.modules['fcntl'] is None\n"
    done = run(tmp_path, f"{check}{imports}\nprint('all')")
    assert done.stdout == "all\n", done.stderr


def test_the_command_runs(tmp_path: Path) -> None:
    for name in ("build", "verify", "read", "diff", "announce", "init", "clean"):
        assert name in command(tmp_path, "--help")
        assert "--help" in command(tmp_path, name, "--help")


@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_a_set_is_built_replaced_and_read(tmp_path: Path, layout: str) -> None:
    site = ("--site", "https://www.shop.example", "--out", "out", "--layout", layout)
    feed = ("--duplicates", "drop", "--changes", "c.csv")
    for rows in (range(5000), range(10, 5000)):
        urls = catalog(tmp_path / "shop.csv", rows)
        command(tmp_path, "build", "shop.csv", *site, "--max-urls", "1000", *feed)
        assert sorted(locs(tmp_path / "out")) == sorted(urls)
    with (tmp_path / "c.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.reader(file))) == 11  # a header and ten removed URLs
    command(tmp_path, "verify", "out")
    command(tmp_path, "read", "out", "--output", "back.csv")
    with (tmp_path / "back.csv").open(newline="", encoding="utf-8") as file:
        assert sorted(row["loc"] for row in csv.DictReader(file)) == sorted(urls)
    assert not list((tmp_path / "out/.urlset").glob("staging*"))


def test_a_named_set_and_a_stream(tmp_path: Path) -> None:
    catalog(tmp_path / "shop.csv", range(100))
    with (tmp_path / "shop.csv").open("rb") as stream:
        done = run(
            tmp_path, COMMAND, "build", "-", "--site", "https://www.shop.example", "--out", "out",
            "--name", "pages", stdin=stream,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/.urlset/pages/manifest.json").is_file()


def test_a_second_build_meets_the_lock(tmp_path: Path) -> None:
    catalog(tmp_path / "shop.csv", range(10))
    code = f"""
import sys
from pathlib import Path
from urlset import system
from urlset.destination.directory import Directory
from urlset.destination.lock import lock_state
import subprocess
Path("out/.urlset").mkdir(parents=True)
with Directory.open(Path("out/.urlset")) as state:
    lock = lock_state(state, Path("out"))
    build = [sys.executable, {str(WINDOWS)!r}, "build.py", "build", "shop.csv",
             "--site", "https://www.shop.example", "--out", "out"]
    busy = subprocess.run(build, capture_output=True, text=True, encoding="utf-8")
    system.unlock(lock)
    free = subprocess.run(build, capture_output=True, text=True, encoding="utf-8")
print(busy.returncode, "output.locked" in busy.stderr, free.returncode, free.stderr)
"""
    (tmp_path / "build.py").write_text(COMMAND, encoding="utf-8")
    done = run(tmp_path, code)
    assert done.stdout.split()[:3] == ["3", "True", "0"], done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a link needs a privilege there")
def test_no_link_is_followed(tmp_path: Path) -> None:
    catalog(tmp_path / "shop.csv", range(10))
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/.urlset").symlink_to(other)
    site = ("--site", "https://www.shop.example", "--out", "out")
    assert "[output.link]" in command(tmp_path, "build", "shop.csv", *site, status=3)
    assert not list(other.iterdir())


def test_the_peak_of_memory_is_known_here() -> None:
    assert 10 << 20 < system.peak_memory() < 16 << 30

"""The messages for a first use of the command, and for wrong output paths."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import urlset as package
from urlset.report import NOTES, message_of
from urlset.wording import count

SITE = "https://www.shop.example"


def run(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "urlset", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder with ``one.csv``, and ``out`` built from it under two names."""
    (tmp_path / "one.csv").write_text(f"url\n{SITE}/1\n")
    for name in ("sitemap", "other"):
        done = run("build", "one.csv", "--site", SITE, "--out", "out", "--name", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_command_alone_prints_its_help(tmp_path: Path) -> None:
    alone, asked = run(cwd=tmp_path), run("--help", cwd=tmp_path)
    assert alone.stdout == asked.stdout
    assert alone.stdout.startswith("Usage: urlset") and len(alone.stdout.splitlines()) > 10
    assert (alone.returncode, alone.stderr, asked.returncode) == (2, "", 0)


@pytest.mark.parametrize(
    "target",
    [
        "sitemap.xml", "sitemap-00001.xml.gz", "new.xml", "other.xml", ".urlset/manifest.json",
        ".urlset/lock", ".urlset/other/manifest.json",
    ],
)  # fmt: skip
@pytest.mark.parametrize("source", ["one.csv", "missing.csv"])
def test_the_report_takes_the_place_of_no_file_of_a_set(
    built: Path, target: str, source: str
) -> None:
    files = {path: path.read_bytes() for path in (built / "out").rglob("*") if path.is_file()}
    done = run(
        "build", source, "--site", SITE, "--out", "out", "--json", f"out/{target}", cwd=built
    )
    assert done.returncode == 2
    assert "[config.json]" in done.stderr and len(done.stderr.splitlines()) == 1
    after = {path: path.read_bytes() for path in (built / "out").rglob("*") if path.is_file()}
    assert after == files


def test_the_report_may_stand_beside_the_set(built: Path) -> None:
    done = run(
        "build", "one.csv", "--site", SITE, "--out", "out", "--json", "out/report.json", cwd=built
    )
    assert done.returncode == 0, done.stderr
    assert (built / "out/report.json").read_text().startswith("{")


@pytest.mark.parametrize("option", ["--json", "--jsonl"])
def test_a_report_of_verify_is_written_to_a_local_file(built: Path, option: str) -> None:
    away = run("verify", "out", option, "ftp://bucket/x.json", cwd=built)
    assert (away.returncode, away.stdout) == (2, "")
    assert f"[config.{option[2:]}]" in away.stderr
    lost = run("verify", "out", option, "none/x.json", cwd=built)
    assert (lost.returncode, lost.stdout) == (3, "")
    assert "nothing was checked" in lost.stderr and "[report.unwritable]" in lost.stderr


def test_init_writes_a_local_file(built: Path) -> None:
    away = run("init", "one.csv", "--output", "s3://bucket/urlset.toml", cwd=built)
    assert away.returncode == 2 and "[config.output]" in away.stderr
    assert not list(built.glob("s3*"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[[set]]\nname = "a"\ninputs = ["one.csv"]\n', "did you mean input?"),
        ('[[sets]]\nname = "a"\ninput = ["one.csv"]\n', "did you mean set?"),
    ],
)
def test_a_misspelt_key_is_told_before_a_missing_one(tmp_path: Path, text: str, hint: str) -> None:
    config = tmp_path / "urlset.toml"
    config.write_text(f'site = "{SITE}"\nout = "out"\n{text}')
    done = run("build", cwd=tmp_path)
    assert done.returncode == 2 and hint in done.stderr and "[config.unknown]" in done.stderr


def test_keywords_of_python_are_no_keys_of_toml() -> None:
    with pytest.raises(package.ConfigError, match="unknown option 'inputs'") as caught:
        package.build("one.csv", site=SITE, out="out", inputs=["a"])  # type: ignore[call-arg]
    assert "did you mean input?" not in str(caught.value)


@pytest.mark.parametrize("rows", [1, 2])
def test_counts_stand_before_their_nouns(tmp_path: Path, rows: int) -> None:
    """No message contains ``1 URLs`` or ``1 values``; each is correct after any count."""
    lines = [f"{SITE}/{i}#x,never,9,no date,mailto:x" for i in range(rows)]
    (tmp_path / "c.csv").write_text("\n".join(["url,changefreq,priority,lastmod,image", *lines]))
    done = run(
        "build", "c.csv", "--site", SITE, "--out", "out", "--priority", "priority",
        "--changefreq", "image", "--image", "image", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    nouns = "1 row: 1 URL" if rows == 1 else "2 rows: 2 URLs"
    assert nouns in done.stdout
    warned = [line for line in done.stdout.splitlines() if line.startswith(f"  {rows} ")]
    assert len(warned) >= 5, done.stdout
    again = run("build", "c.csv", "--site", SITE, "--out", "out", "--where", "url=x", cwd=tmp_path)
    assert again.returncode == 1
    assert f"({'1 row' if rows == 1 else '2 rows'}, 0 rejected" in again.stderr


def test_no_warning_depends_on_its_count() -> None:
    """A count precedes each message: no noun in the plural begins it."""
    assert {"video.title", "video.tag", "news.title", "image.invalid"} <= NOTES.keys()
    for code in NOTES:
        first = message_of(code).split()[0]
        assert not first.endswith("s") or first in ("news",), message_of(code)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 URLs"), (1, "1 URL"), (2, "2 URLs"), (1_000_000, "1,000,000 URLs")]
)
def test_count(number: int, text: str) -> None:
    assert count(number, "URL") == text
    assert count(1, "index", "indexes") == "1 index"
    assert count(2, "index", "indexes") == "2 indexes"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["build", "--max-urls", "abc"], "'--max-urls': 'abc' is not a whole number"),
        (["build", "--max-groups", "1e3"], "'--max-groups': '1e3' is not a whole number"),
        (["build", "one.csv", "--site", SITE, "--out", "o", "--max-urls", "-1"], "from 1 to 50000"),
        (["read", "out", "--threads", "0"], "'0' is not a whole number of 1 or more"),
        (["verify", "out", "--most", "x"], "'x' is not a whole number of 1 or more"),
        (["diff", "out", "out", "--threads", "1.5"], "'1.5' is not a whole number of 1 or more"),
        (["announce", "out", "--retries", "2x"], "'--retries': '2x' is not a whole number"),
        (["announce", "out", "--timeout", "soon"], "'--timeout': 'soon' is not a number"),
    ],
)
def test_a_wrong_number_is_told_in_words(built: Path, args: list[str], said: str) -> None:
    done = run(*args, cwd=built)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "args",
    [
        ("build", "one.csv", "--site", SITE, "--out", "out", "--json", "r.html", "--report",
         "r.html"),
        ("build", "one.csv", "--site", SITE, "--out", "out", "--rejects", "r.csv", "--changes",
         "./r.csv", "--duplicates", "drop"),
        ("verify", "out", "--json", "out/sitemap.xml"),
        ("verify", "out", "--json", "r.json", "--jsonl", "../here/r.json"),
        ("verify", "out", "--report", "r.html", "--jsonl", "r.html"),
        ("read", "out/sitemap.xml", "--format", "csv", "--output", "out/sitemap.xml"),
        ("read", "out", "--format", "csv", "--output", "out/sitemap-00001.xml.gz"),
        ("diff", "out", "out/other.xml", "--format", "csv", "--output", "out/other.xml"),
        ("diff", "out", "out", "--output", "link.csv", "--report", "r.html"),
        ("audit", "one.csv", "--drop-list", "one.csv"),
        ("audit", "one.csv", "--output", "link.csv"),
        ("audit", "one.csv", "--output", "a.csv", "--drop-list", "a.csv"),
        ("announce", "out", "--to", "robots", "--json", "out/sitemap.xml"),
    ],
)  # fmt: skip
def test_no_output_replaces_an_input_or_another_output(tmp_path: Path, args: tuple[str]) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "one.csv").write_text(f"url\n{SITE}/1\n")
    for name in ("sitemap", "other"):
        done = run("build", "one.csv", "--site", SITE, "--out", "out", "--name", name, cwd=here)
        assert done.returncode == 0, done.stderr
    (here / "link.csv").symlink_to("one.csv" if args[0] == "audit" else "r.html")
    files = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    done = run(*args, cwd=here)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done
    assert "[config." in done.stderr and "write it elsewhere" in done.stderr
    after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path in files} == files

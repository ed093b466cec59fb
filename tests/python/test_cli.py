"""The command line: signals, statuses, one line per error, JSON, progress, three interfaces."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import typing
from dataclasses import fields
from pathlib import Path

import pexpect
import pytest
import tomli_w
import urlset as package
from conftest import SITE, read_set, urlset, wait_until_idle
from urlset.cli.build import build as command
from urlset.keywords import BuildKeywords
from urlset.options import Options


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "c.csv"
    path.write_text("url\n" + "".join(f"{SITE}/{i}\n" for i in range(100)))
    return path


def stop(args: list[object], number: int, *, send: bytes = b""):
    """Starts a build whose stdin delivers nothing more, and sends it a signal when it waits."""
    process = subprocess.Popen(
        [sys.executable, "-m", "urlset", *map(str, args)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(send)
    process.stdin.flush()
    wait_until_idle(process)
    started = time.monotonic()
    process.send_signal(number)
    status = process.wait(60)
    seconds = time.monotonic() - started
    out, err = process.stdout.read(), process.stderr.read()
    process.stdin.close()
    return status, seconds, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("format", "send"),
    [
        ("csv", b""), ("csv", b"url\nhttps://www.shop.example/1\n"), ("jsonl", b""),
        ("jsonl", b'{"url": "https://www.shop.example/1"}\n'), ("arrow", b""),
    ],
)  # fmt: skip
def test_signals(catalog: Path, out: Path, number: int, format: str, send: bytes) -> None:
    assert urlset("build", catalog, "--site", SITE, "--out", out).status == 0
    before = {path: path.read_bytes() for path in out.glob("*.xml*")}
    args = ["build", "-", "--site", SITE, "--out", out, "--format", format, "--json", "-"]
    status, seconds, text, err = stop(args, number, send=send)
    assert (status, seconds < 20) == (128 + number, True), (status, seconds)
    assert json.loads(text)["error"]["code"] == "interrupted"
    assert err.startswith(b"urlset: stopped") and err.count(b"\n") == 1
    assert {path: path.read_bytes() for path in out.glob("*.xml*")} == before
    assert urlset("build", catalog, "--site", SITE, "--out", out).status == 0
    known = {"manifest.json", "lock"}
    assert {path.name for path in (out / ".urlset").iterdir()} == known


def test_a_signal_while_rows_flow(tmp_path: Path, out: Path) -> None:
    big = tmp_path / "big.csv"
    big.write_text("url\n" + "".join(f"{SITE}/{i}\n" for i in range(3_000_000)))
    args = ["build", big, "--site", SITE, "--out", out, "--max-urls", 1000]
    process = subprocess.Popen(
        [sys.executable, "-m", "urlset", *map(str, args)], stderr=subprocess.PIPE
    )
    while not any((out / ".urlset").glob("staging*/*.gz")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err.startswith(b"urlset: stopped") and err.count(b"\n") == 1
    assert not list(out.glob("*.xml*"))


def test_a_keyboard_interrupt_from_python(tmp_path: Path, out: Path) -> None:
    """It is raised when the current batch returns, not when the source ends."""
    import pyarrow as pa

    schema = pa.schema([("url", pa.string())])

    given = 0

    def long():
        nonlocal given
        for given in range(3_000):
            if given == 20:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            yield pa.record_batch([[f"{SITE}/{given}"]], schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, long())
    with pytest.raises(KeyboardInterrupt):
        package.build(reader, site=SITE, out=out)
    assert 20 <= given < 2_000
    assert not list(out.glob("*.xml*"))
    assert sorted(path.name for path in (out / ".urlset").iterdir()) == ["lock"]


def test_what_a_callback_raises_comes_out(catalog: Path, out: Path) -> None:
    slow = catalog.parent / "pipe.csv"
    os.mkfifo(slow)

    def write() -> None:
        with slow.open("w") as file:
            file.write("url\n")
            file.flush()
            time.sleep(0.5)
            file.write(f"{SITE}/1\n")

    threading.Thread(target=write).start()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        package.build(slow, site=SITE, out=out, on_progress=broken)
    assert not list(out.glob("*.xml*"))


CASES = [
    (["c.csv"], 0, None),
    (["none.csv"], 3, "input.missing"),
    ([], 2, "config.input"),
    (["c.csv", "--loc", "nope"], 2, "column.missing"),
    (["c.csv", "--max-urls", "0"], 2, "config.limit"),
    (["c.csv", "--where", "url=x"], 1, "rows.none"),
    (["c.csv", "--name", "../x"], 2, "config.name"),
    (["c.csv", "--config", "none.toml"], 2, "config.missing"),
    (["c.csv", "--max-urls", "many"], 2, "config.usage"),
    (["c.csv", "--level", "none"], 2, "config.usage"),
    (["c.csv", "--no-such-option"], 2, "config.usage"),
    (["c.csv", "--out", "c.csv"], 3, "output.not_a_folder"),
]


@pytest.mark.parametrize(("args", "status", "code"), CASES, ids=str)
def test_json_in_every_case(catalog: Path, args: list[str], status: int, code: str | None) -> None:
    common = ["--site", SITE, *([] if "--out" in args else ["--out", "out"]), "--json"]
    ended = urlset("build", *args, *common, "-", cwd=catalog.parent)
    assert ended.status == status, ended
    report = json.loads(ended.out)
    assert report["published"] is (code is None)
    assert (report["error"] or {}).get("code") == code
    assert ended.err.count("\n") == (code is not None)
    wanted = {
        "version", "published", "error", "rows", "urls", "rejected", "filtered", "duplicates",
        "expanded", "seconds", "peak_rss", "rejects", "shards", "indexes", "warnings",
    }  # fmt: skip
    assert wanted <= report.keys()
    again = urlset("build", *args, *common, "report.json", cwd=catalog.parent)
    assert again.status == status
    written = json.loads((catalog.parent / "report.json").read_text())
    assert (written["error"] or {}).get("code") == code


def test_json_to_a_path_that_cannot_be_written(catalog: Path, out: Path) -> None:
    ended = urlset("build", catalog, "--site", SITE, "--out", out, "--json", out / "missing" / "x")
    assert (ended.status, ended.err.count("\n")) == (3, 1)
    assert "[output.json]" in ended.err and "the previous set is still live" in ended.err
    assert not out.exists()  # it was found before anything was read


def test_silence_in_a_pipe(catalog: Path, out: Path) -> None:
    ended = urlset("build", catalog, "--site", SITE, "--out", out)
    assert ended.err == "" and "\x1b" not in ended.out and "100 URLs" in ended.out
    assert f"live: {SITE}/sitemap.xml" in ended.out
    ended = urlset("build", catalog, "--site", SITE, "--out", out, "--quiet")
    assert (ended.out, ended.err) == ("", "")


def test_a_reader_that_leaves(catalog: Path, out: Path) -> None:
    command = f"{sys.executable} -m urlset build {catalog} --site {SITE} --out {out} | true"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert ended.stderr == b""
    assert len(read_set(out)) == 100


def test_progress_on_a_terminal(tmp_path: Path, out: Path) -> None:
    fifo = tmp_path / "slow.csv"
    os.mkfifo(fifo)

    def write() -> None:
        with fifo.open("w") as file:
            file.write("url\n")
            for part in range(12):
                file.write("".join(f"{SITE}/{part}/{i}\n" for i in range(30_000)))
                file.flush()
                time.sleep(0.1)

    writer = threading.Thread(target=write)
    writer.start()
    child = pexpect.spawn(
        sys.executable, ["-m", "urlset", "build", str(fifo), "--site", SITE, "--out", str(out)],
        dimensions=(24, 200), encoding="utf-8", timeout=30,
    )  # fmt: skip
    child.expect(r"[1-9][\d,]* rows  [\d,]+ rows/s  \d+ sitemaps")
    child.expect("360,000 URLs")
    child.expect(pexpect.EOF)
    child.close()
    writer.join(10)
    assert child.exitstatus == 0


def test_nothing_in_the_data_reaches_the_terminal(tmp_path: Path, out: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J"
    path = tmp_path / f"{evil}.csv"
    path.write_text(f'"{evil}url","a"\nx,y\n')
    for args in ((path,), (path, "--loc", f"{evil}url"), (tmp_path / f"{evil}\n.csv",)):
        ended = urlset("build", *args, "--site", SITE, "--out", out, "--max-rejects", "0")
        assert ended.err.count("\n") == (ended.status != 0)
        assert "\x1b" not in ended.err + ended.out and "\x07" not in ended.err


def test_help(tmp_path: Path) -> None:
    ended = urlset("--help", cwd=tmp_path)
    assert ended.status == 0 and "build" in ended.out
    ended = urlset("build", "--help", cwd=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    for spec in fields(Options):
        name = spec.name.rstrip("_").replace("_", "-")
        assert f"--{name}" in ended.out or f"--no-{name}" in ended.out
    assert "Exit status" in ended.out and "200 M URLs in 8 GB" in " ".join(ended.out.split())
    ended = urlset("--version")
    assert ended.out.startswith(f"urlset {package.__version__} (gzip by ")
    for wrong in (["nope"], ["build", "--nope"]):
        ended = urlset(*wrong)
        assert (ended.status, ended.err.count("\n")) == (2, 1), ended


def test_an_option_has_its_twins() -> None:
    """Every field is an option of the command line, a key of TOML, a keyword of Python."""
    names = {spec.name.rstrip("_") for spec in fields(Options)}
    params = {str(param.name).rstrip("_") for param in command.params}
    assert params - {"inputs", "config", "json_path", "quiet"} == names
    keywords = set(inspect.signature(package.build).parameters)
    given = {name.rstrip("_") for name in typing.get_type_hints(BuildKeywords)}
    assert given | {"site", "out"} == names
    assert {"source", "site", "out", "config", "on_progress", "options"} == keywords


def test_every_option_is_a_key_of_toml(catalog: Path, out: Path) -> None:
    values: dict[str, object] = {
        "site": SITE, "out": "out", "name": "x", "sitemap_url": f"{SITE}/s/", "state": "state",
        "loc": "url", "lastmod": "=2024-01-01", "lastmod_epoch": None, "changefreq": "=daily",
        "priority": "=0.5", "timezone": "UTC", "max_urls": 10, "max_bytes": 50_000,
        "max_sitemaps": 3, "output": "xml", "gzip": False, "level": "fast",
        "add_sitemap": [f"{SITE}/more.xml"], "where": [f"url!={SITE}/5"], "hosts": "any",
        "exclude": "drop.csv", "strict_urls": True, "relative_urls": True,
        "on_invalid": "fail", "on_bad_field": "reject", "max_rejects": "2%",
        "rejects": "r.csv", "duplicates": "drop", "max_shrink": "90%", "format": "csv",
        "delimiter": ",", "encoding": "utf-8", "max_cell": 1000, "threads": 2, "dry_run": False,
        "loc_template": None,
        "image": [],
        "image_separator": None,
        "alternate": [],
        "lang": None,
        "x_default": None,
        "alternate_rows": False,
        "alternate_group": None,
        "lang_column": None,
        "video": [],
        "news": [],
        "news_old": "keep",
        "for_": None,
        "split_by": None,
        "split_index": "one",
        "max_groups": 10000,
        "layout": "packed",
        "sort": False,
        "index_lastmod": "newest",
        "changes": None,
        "query": None,
        "report": "report.html",
        "lastmod_from": ["*"],
        "lastmod_ignore": ["url"],
        "lastmod_restart": False,
        "forget": "30d",
        "now": "2026-01-01T00:00:00Z",
        "verify_staged": False,
        "header": [],
        "cache_control": None,
        "content_encoding": None,
        "conditional": True,
    }  # fmt: skip
    assert values.keys() == {spec.name for spec in fields(Options)}
    given = {key.replace("_", "-"): value for key, value in values.items() if value is not None}
    folder = catalog.parent
    (folder / "drop.csv").write_text(f"loc,reason\n{SITE}/7,gone\n")
    (folder / "urlset.toml").write_text(tomli_w.dumps({"input": "c.csv", **given}))
    with tempfile.TemporaryDirectory() as elsewhere:  # paths are relative to the file
        args = ("build", "--config", folder / "urlset.toml", "--json", "-")
        ended = urlset(*args, cwd=Path(elsewhere))
    report = json.loads(ended.out)
    assert (ended.status, report["urls"], report["filtered"]) == (0, 98, 2), ended
    assert (folder / "out/x.xml").exists() and (folder / "state/x/manifest.json").exists()
    assert (folder / "report.html").exists()
    assert report["url"] == f"{SITE}/s/x.xml" and len(report["indexes"]) == 4
    # without INPUT ./urlset.toml is used; options of the command line override it
    ended = urlset("build", "--max-urls", 50, "--json", "-", cwd=folder)
    assert len(json.loads(ended.out)["shards"]) == 2
    report = package.build(config=folder / "urlset.toml", max_urls=25)
    assert len(report.shards) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('priorty = "x"', "did you mean priority?"),
        ("max-url = 5", "did you mean max_urls?"),
        ('max_urls = "5"', "max_urls cannot be"),
        ("gzip = 1", "gzip cannot be"),
        ("max_urls = true", "max_urls cannot be"),
        ("where = [1]", "where cannot be"),
        ('level = "x"', "level: 'x' is not one of"),
        ("input = 5", "input is a path"),
        ("set = 5", "[[set]]"),
        ("[set]\nname = 'x'", "[[set]]"),
        ("a = ", "urlset.toml"),
        ("site = 'x'", "not the address of a site"),
        ("\x00", "urlset.toml"),
    ],
)
def test_a_toml_that_is_wrong(catalog: Path, text: str, said: str) -> None:
    path = catalog.parent / "urlset.toml"
    head = "" if text.startswith("site") else f'site = "{SITE}"\n'
    path.write_text(f'out = "out"\n{head}{text}\n')
    ended = urlset("build", catalog, "--config", path)
    assert (ended.status, ended.err.count("\n")) == (2, 1), ended
    assert said in ended.err
    assert not (catalog.parent / "out").exists()


def test_toml_that_is_not_utf_8(catalog: Path) -> None:
    path = catalog.parent / "urlset.toml"
    path.write_bytes(b'site = "\xff"\n')
    ended = urlset("build", catalog, "--config", path)
    assert (ended.status, ended.err.count("\n")) == (2, 1), ended
    with pytest.raises(UnicodeDecodeError):
        tomllib.loads(path.read_bytes().decode())


def test_unknown_keywords_of_python(catalog: Path, out: Path) -> None:
    with pytest.raises(package.ConfigError, match="did you mean max_urls"):
        package.build(catalog, site=SITE, out=out, max_url=3)
    with pytest.raises(package.ConfigError, match="cannot be"):
        package.build(catalog, site=SITE, out=out, max_urls="3")


def test_the_exports_are_what_is_promised() -> None:
    # most are imported on first use
    exports = {name: getattr(package, name) for name in package.__all__}
    assert not any(inspect.ismodule(value) for value in exports.values())
    public = {
        name for name, value in vars(package).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }  # fmt: skip
    assert public | {"__version__"} == set(package.__all__)
    assert sorted(package.__all__) == package.__all__
    assert set(package.__all__) <= set(dir(package))


def test_functions_go_by_the_names_of_packages() -> None:
    code = (
        "import urlset, urlset.build, urlset.build.job, urlset.announce\n"
        "from urlset import build, diff\n"
        "print([callable(f) for f in (urlset.build, urlset.diff, urlset.verify, urlset.read,"
        " urlset.announce, build, diff)], hasattr(urlset, 'nothing'))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.stdout.strip(), ended.stderr) == (f"{[True] * 7} False", "")


def test_a_build_from_csv_does_not_import_what_it_does_not_need(catalog: Path, out: Path) -> None:
    code = (
        "import sys, urlset\n"
        f"urlset.build({str(catalog)!r}, site={SITE!r}, out={str(out)!r})\n"
        "print([m for m in ('pyarrow', 'rich', 'httpx', 'click') if m in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.stdout.strip(), ended.stderr) == ("[]", "")


def test_what_is_written_is_no_input(catalog: Path, tmp_path: Path, out: Path) -> None:
    before = catalog.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(catalog)
    folder = tmp_path / "folder"
    folder.mkdir()
    for source, option, target in (
        (catalog, "--rejects", catalog),
        (catalog, "--json", catalog),
        (catalog, "--json", link),
        (catalog, "--changes", link),
        (str(catalog.parent / "*.csv"), "--changes", catalog),
        (folder, "--changes", folder / "changes.csv"),
        (folder, "--json", folder / "report.json"),
    ):
        policy = ("--duplicates", "drop")
        ended = urlset("build", source, "--site", SITE, "--out", out, *policy, option, target)
        code = f"[config.{option.removeprefix('--')}]"
        assert (ended.status, ended.err.count("\n")) == (2, 1) and code in ended.err, ended
    assert catalog.read_bytes() == before and not out.exists()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("site", [f'site = "{SITE}"\n', ""])
def test_the_report_is_no_input_of_a_set(catalog: Path, tmp_path: Path, site: str) -> None:
    before = catalog.read_bytes()
    config = tmp_path / "urlset.toml"
    config.write_text(f'{site}out = "out"\n[[set]]\nname = "s"\ninput = ["c.csv"]\n')
    ended = urlset("build", "--config", config, "--json", catalog, cwd=tmp_path)
    assert (ended.status, ended.err.count("\n")) == (2, 1) and "[config.json]" in ended.err, ended
    assert catalog.read_bytes() == before


def test_an_interrupt_without_output(catalog: Path, out: Path) -> None:
    """A build ends after a signal, even if no output is open."""
    command = f"exec {shlex.quote(sys.executable)} -m urlset build - --site {SITE} --out {out} >&-"
    process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until_idle(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    assert process.stdin is not None and process.stderr is not None
    said = process.stderr.read()  # by the core, or by the command if the core is slow
    assert said in (b"urlset: stopped; nothing was published\n", b"urlset: stopped by a signal\n")
    process.stdin.close()


@pytest.mark.parametrize("options", [["--version"], ["build", "--help"], ["read", "--help"]])
def test_an_output_that_takes_nothing(options: list[str]) -> None:
    """A full disk behind standard output is an error message, not a traceback."""
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "urlset", *options],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 3
    assert ended.stderr == b"urlset: error: standard output: No space left on device\n"


def test_no_output_at_all() -> None:
    command = f"{shlex.quote(sys.executable)} -m urlset --version >&-"
    ended = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")

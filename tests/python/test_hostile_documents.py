"""Time and memory for every byte of a hostile document: see ``hostile.py`` for the table."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import hostile
import pytest
import urlset
from urlset import _core

pytestmark = pytest.mark.long

#: docs/verify.md states it: seconds of processor time for a document, or for each MB of it in gzip
SECONDS = 5.0
#: MiB of a process that reads one document of any size
MEMORY = 400

ALL = """
import json, re, sys, time
import urlset

def of(work):
    start = time.process_time()
    try:
        work()
    except urlset.Error as error:
        said.append(error.code)
    seconds.append(time.process_time() - start)

path, sound = sys.argv[1:]
said, seconds = [], []
of(lambda: said.append(urlset.verify(path, threads=1).counts))
of(lambda: said.append(urlset.read(path, threads=1).read_all().num_rows))
of(lambda: sum(batch.num_rows for batch in urlset.read(path, lenient=True, threads=1)))
of(lambda: sum(batch.num_rows for batch in urlset.diff(sound, path, lenient=True, threads=1)))
# of this process only; ru_maxrss survives exec and would be that of pytest
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10
print(json.dumps({"said": said, "seconds": seconds, "peak": peak}))
"""


@pytest.mark.parametrize("name", hostile.FLOODS)
def test_a_small_flood(name: str, tmp_path: Path) -> None:
    flood = hostile.FLOODS[name]
    path = tmp_path / f"sitemap{flood.suffix}"
    flood.write(path, 4 << 20)
    sound = tmp_path / "sound.xml"
    sound.write_text(hostile.HEAD + hostile.entry("") + "</urlset>")
    ended = hostile.run([sys.executable, "-c", ALL, path, sound], folder=tmp_path)
    assert ended.status == 0, ended.out
    told = json.loads(ended.out.splitlines()[-1])
    assert max(told["seconds"]) < SECONDS, told
    assert told["peak"] < MEMORY, told
    # an error, or only unusual: then lxml accepts it, too
    counts = told["said"][0]
    assert isinstance(counts, dict)
    errors = {code for code, severity, _ in _core.finding_codes() if severity == "error"}
    if not errors & set(counts):
        assert sum(counts.values()) > 0, "nothing is said of it"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "read", "diff"])
@pytest.mark.parametrize("name", hostile.FLOODS)
def test_a_flood_of_a_gigabyte(name: str, command: str, tmp_path: Path) -> None:
    flood = hostile.FLOODS[name]
    path = tmp_path / f"sitemap{flood.suffix}"
    flood.write(path, (1 << 30) + (1 << 20))
    sound = tmp_path / "sound.xml"
    sound.write_text(hostile.HEAD + hostile.entry("") + "</urlset>")
    arguments: dict[str, list[str | Path]] = {
        "verify": ["verify", path],
        "read": ["read", "--lenient", path, "-o", tmp_path / "rows.parquet"],
        "diff": ["diff", "--lenient", sound, path],
    }
    ended = hostile.urlset(*arguments[command], folder=tmp_path)
    assert ended.status in (0, 1, 3), ended.out
    assert "Traceback" not in ended.out and "panic" not in ended.out
    assert ended.seconds < max(SECONDS, SECONDS * path.stat().st_size / 1e6), ended
    assert ended.memory < MEMORY, ended


@pytest.mark.parametrize("escaped", [True, False])
def test_a_large_file_is_read_in_full(escaped: bool, tmp_path: Path) -> None:
    """A sitemap far beyond the limits with a fault in each entry is read completely."""
    path = tmp_path / "sitemap.xml.gz"
    amp = "&amp;" if escaped else "&"
    entries = "".join(
        f"<url><!-- --><loc>https://www.shop.example/{n}?a=1{amp}b=2{amp}c</loc></url>\n"
        for n in range(200_000)
    )
    path.write_bytes(gzip.compress(f"{hostile.HEAD}{entries}</urlset>".encode()))
    report = urlset.verify(path)
    assert report.urls == 200_000
    assert report.counts.get("xml.malformed", 0) == (0 if escaped else 400_000)
    assert "file.abandoned" not in report.counts
    assert urlset.read(path, lenient=True).read_all().num_rows == 200_000


def test_a_file_that_is_given_up_says_so(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml.gz"
    hostile.FLOODS["bare ampersands"].write(path, 64 << 20)
    report = urlset.verify(path)
    assert report.counts["file.abandoned"] == 1
    assert report.counts["xml.malformed"] > 100_000
    with pytest.raises(urlset.InputError):
        urlset.read(path).read_all()

"""Options that multiply rows do not multiply memory: peaks of runs that render gigabytes.

Each run is measured by a small process of its own: ru_maxrss survives exec, and would be that of
pytest.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.long

SITE = "https://shop.example"
#: MiB; the largest sitemap has 50 of them, and Python with pyarrow 90
MOST = 300

MEASURE = """
import resource, subprocess, sys
run = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(run.returncode, usage.ru_maxrss >> 10)
print(run.stdout[-2000:])
"""


def peak(*args: object) -> int:
    """The peak memory of a build in MiB."""
    command = [sys.executable, "-m", "urlset", "build", *map(str, args), "--site", SITE]
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, check=True
    ).stdout
    status, mebibytes = measured.split()[:2]
    assert status == "0", measured
    return int(mebibytes)


def languages(count: int) -> list[str]:
    """Codes of languages and regions that are valid in a sitemap."""
    codes = [f"{language}-{region}" for language in LANGUAGES for region in ("", *REGIONS)]
    return [code.removesuffix("-") for code in codes][:count]


LANGUAGES = ["ar", "bg", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "hr", "hu", "it"]
REGIONS = ["ad", "be", "ch", "de", "fr", "gb", "gr", "in", "it", "ie", "jo", "lt", "no", "us"]


def batches(count: int, rows: int) -> Iterator[pa.RecordBatch]:
    codes = languages(count)
    assert len(codes) == count
    for start in range(0, rows, 500):
        numbers = range(start, min(start + 500, rows))
        maps = [[(code, f"{SITE}/{code}/product/{n}") for code in codes] for n in numbers]
        yield pa.record_batch(
            {
                "url": [f"{SITE}/{codes[0]}/product/{n}" for n in numbers],
                "alternates": pa.array(maps, pa.map_(pa.string(), pa.string())),
            }
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One catalog with a map of 100 languages in each of 2,000 rows, in three formats."""
    folder = tmp_path_factory.mktemp("memory")
    schema = next(batches(100, 1)).schema
    with (
        pq.ParquetWriter(folder / "x.parquet", schema) as parquet,
        pa.ipc.new_file(folder / "x.arrow", schema) as arrow,
        (folder / "x.csv").open("w") as csv,
    ):
        csv.write("url,alternates\n")
        for batch in batches(100, 2_000):
            parquet.write_batch(batch)
            arrow.write_batch(batch)
            for url, pairs in zip(*(column.to_pylist() for column in batch), strict=True):
                cell = json.dumps(dict(pairs)).replace('"', '""')
                csv.write(f'{url},"{cell}"\n')
    return folder


def locs(out: Path) -> int:
    """The number of URLs in the sitemaps of the index."""
    names = re.findall(r"<loc>[^<]*/([^/<]+)</loc>", (out / "sitemap.xml").read_text())
    return sum(gzip.decompress((out / name).read_bytes()).count(b"<loc>") for name in names)


@pytest.mark.parametrize("more", [[], ["--sort"], ["--split-by", "@host"], ["--layout", "stable"]])
@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_alternate_rows(form: str, more: list[str], folder: Path, tmp_path: Path) -> None:
    if more and form != "parquet":
        pytest.skip("what comes behind the rows is the same for all formats")
    out = tmp_path / "out"
    took = peak(
        folder / f"x.{form}", "--out", out, "--alternate", "alternates", "--alternate-rows", *more
    )
    # sorting uses another 64 MiB twice
    assert took < MOST + (130 if "--sort" in more else 0)
    if not more:
        assert locs(out) == 200_000


def test_the_bytes_are_those_of_one_thread(folder: Path, tmp_path: Path) -> None:
    """Chunks of one batch stay in their order, for any order of waiting."""
    shas = []
    for threads in (1, 2, 9):
        out = tmp_path / f"{threads}"
        options = ["--alternate", "alternates", "--alternate-rows", "--level", "fast"]
        peak(folder / "x.csv", "--out", out, "--threads", threads, *options)
        files = sorted(out.glob("sitemap-*.xml.gz"))
        shas.append([gzip.decompress(path.read_bytes()) for path in files])
    assert shas[0] == shas[1] == shas[2]
    assert len(shas[0]) > 5


@pytest.mark.parametrize("more", [[], ["--split-by", "lang"]])
def test_alternate_groups(more: list[str], tmp_path: Path) -> None:
    codes = languages(180)
    path = tmp_path / "rows.csv"
    with path.open("w") as file:
        file.write("url,lang,page\n")
        for page in range(300):
            file.writelines(f"{SITE}/{code}/product/{page},{code},{page}\n" for code in codes)
    options = ["--alternate-group", "page", "--lang-column", "lang", *more]
    assert peak(path, "--out", tmp_path / "out", *options) < MOST


def test_long_templates(tmp_path: Path) -> None:
    """Rows of seven bytes become rows of two thousand."""
    path = tmp_path / "rows.csv"
    path.write_text("id\n" + "".join(f"{number}\n" for number in range(500_000)))
    template = f"{SITE}/{'long/' * 380}{{id}}"
    assert peak(path, "--out", tmp_path / "out", "--loc-template", template) < MOST


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_images_and_video(form: str, tmp_path: Path) -> None:
    """Constants and many images per row, which are short in the input."""
    rows = 20_000
    images = "|".join(f"/i{number}" for number in range(200))
    if form == "csv":
        path = tmp_path / "rows.csv"
        lines = (f"{SITE}/{number},{images}\n" for number in range(rows))
        path.write_text("url,image\n" + "".join(lines))
        more = ["--image-separator", "|"]
    else:
        path = tmp_path / "rows.parquet"
        table = pa.table(
            {
                "url": [f"{SITE}/{number}" for number in range(rows)],
                "image": [images.split("|")] * rows,
            }
        )
        pq.write_table(table, path)
        more = []
    text = "a description of some length " * 60
    video = {"thumbnail_loc": f"{SITE}/t.jpg", "title": "t", "description": text}
    video["content_loc"] = f"{SITE}/v.mp4"
    for tag, value in video.items():
        more += ["--video", f"{tag}=={value}"]
    assert peak(path, "--out", tmp_path / "out", "--image", "image", *more) < MOST


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_more_rows_take_no_more(form: str, tmp_path: Path) -> None:
    """200 languages in 20,000 rows: 50 GB of XML, from a file that is written in small batches."""
    path = tmp_path / f"x.{form}"
    schema = next(batches(200, 1)).schema
    with (
        pq.ParquetWriter(path, schema) if form == "parquet" else pa.ipc.new_stream(path, schema)
    ) as writer:
        for batch in batches(200, 20_000):
            writer.write_batch(batch)
    options = ["--alternate", "alternates", "--alternate-rows", "--level", "fast"]
    assert peak(path, "--out", tmp_path / "out", *options) < MOST


LARGE_PARENT = """
import json, subprocess, sys
ballast = b"x" * (400 << 20)
done = subprocess.run(sys.argv[1:], capture_output=True, check=True)
print(json.loads(done.stdout)["peak_rss"], len(ballast))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the peak of a process alone")
def test_the_report_leaves_out_the_memory_of_the_parent(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(f"url\n{SITE}/a\n")
    build = [sys.executable, "-m", "urlset", "build", "rows.csv", "--site", SITE, "--out", "out"]
    done = subprocess.run(
        [sys.executable, "-c", LARGE_PARENT, *build, "--json", "-"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    peak, ballast = map(int, done.stdout.split())
    assert 5 << 20 < peak < 200 << 20 < ballast

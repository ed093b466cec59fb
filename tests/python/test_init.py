"""``urlset init``: the file is valid, proposes columns, and shows the result of a build."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from conftest import SITE, urlset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from urlset.build.init import InitOptions, init


def example(text: str, key: str) -> Any:
    """The value of a key that the file proposes in a comment."""
    [line] = [line for line in text.splitlines() if line.startswith(f"# {key} = ")]
    return tomllib.loads(line.removeprefix("# "))[key]


def proposes(text: str, key: str) -> bool:
    return any(line.startswith(f"# {key} = ") for line in text.splitlines())


def write_csv(path: Path, rows: list[dict[str, str]]) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


#: without line breaks and quotes: no CSV quoting; the loc column must stay the only one
NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters='\r\n",;\t|\0'), min_size=1
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=NAMES.filter(lambda name: name.strip() == name), value=st.text(max_size=5))
def test_any_column_name_gives_toml_that_parses(tmp_path: Path, name: str, value: str) -> None:
    catalog = tmp_path / "c.parquet"
    column = f"url {name}"
    pq.write_table(pa.table({column: [f"{SITE}/page-1"], "image 𝔘": [value]}), catalog)
    target = tmp_path / "urlset.toml"
    text = init(str(catalog), target, InitOptions(), force=True)
    assert tomllib.loads(target.read_text(encoding="utf-8"))["loc"] == column
    assert text == target.read_text(encoding="utf-8")
    built = urlset("build", "--config", target, "--out", tmp_path / "out") if "𝔘" in name else None
    assert built is None or built.status == 0


def test_a_name_outside_the_basic_plane(tmp_path: Path) -> None:
    catalog = write_csv(tmp_path / "c.csv", [{"url 😀": f"{SITE}/page-1"}])
    ended = urlset("init", catalog, cwd=tmp_path)
    assert ended.status == 0
    assert tomllib.loads((tmp_path / "urlset.toml").read_text(encoding="utf-8"))["loc"] == "url 😀"
    assert urlset("build", cwd=tmp_path).status == 0


@pytest.mark.parametrize("format", ["csv", "parquet", "feather", "arrows", "jsonl"])
def test_only_columns_of_image_urls_are_proposed(tmp_path: Path, format: str) -> None:
    rows: list[dict[str, Any]] = [
        {
            "url": f"{SITE}/page-{n}",
            "images": [f"{SITE}/{n}-a.jpg", f"{SITE}/{n}-b.jpg"],
            "main_image": f"{SITE}/{n}.jpg",
            "image_count": n,
            "image_alt": "A lamp",
        }
        for n in range(5)
    ]
    path = tmp_path / f"c.{format}"
    table = pa.Table.from_pylist(rows)
    if format == "csv":
        write_csv(
            path, [{k: json.dumps(v) if k == "images" else v for k, v in r.items()} for r in rows]
        )
    elif format == "parquet":
        pq.write_table(table, path)
    elif format == "feather":
        pyarrow.feather.write_feather(table, path)
    elif format == "arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = urlset("init", path, cwd=tmp_path)
    assert ended.status == 0, ended.err
    assert example((tmp_path / "urlset.toml").read_text(), "image") == ["images", "main_image"]


def test_no_column_of_images(tmp_path: Path) -> None:
    catalog = write_csv(tmp_path / "c.csv", [{"url": f"{SITE}/page-1", "image_count": "3"}])
    assert urlset("init", catalog, cwd=tmp_path).status == 0
    assert not proposes((tmp_path / "urlset.toml").read_text(), "image")


def test_the_preview_shows_what_the_file_accepts(tmp_path: Path) -> None:
    rows = [{"url": f"https://other.example/page-{n}"} for n in range(2)]
    rows += [{"url": f"{SITE}/page-{n}"} for n in range(5)] + [{"url": ""}]
    catalog = write_csv(tmp_path / "c.csv", rows)
    assert urlset("init", catalog, cwd=tmp_path).status == 0
    text = (tmp_path / "urlset.toml").read_text()
    assert tomllib.loads(text)["site"] == SITE  # that of most rows, not of the first
    shown = [line for line in text.splitlines() if "<url>" in line]
    assert len(shown) == 3 and all(f"<loc>{SITE}/" in line for line in shown)
    assert "# Of the first 8 rows 3 would be rejected: loc.empty 1, loc.other_host 2." in text
    assert example(text, "hosts") == "any"
    built = urlset("build", "--max-rejects", "100%", "--json", "-", cwd=tmp_path)
    assert json.loads(built.out)["rejected"] == 3


def test_standard_input(tmp_path: Path) -> None:
    lines = [f"{SITE}/page-{n},{'x' * 300}" for n in range(20_000)]  # more than the preview reads
    ended = urlset("init", "-", cwd=tmp_path, input="\n".join(["url,text", *lines]).encode())
    assert ended.status == 0, ended.err
    assert tomllib.loads((tmp_path / "urlset.toml").read_text())["input"] == "-"
    ended = urlset("init", "-", "--force", cwd=tmp_path, input=b"")
    assert ended.status == 3 and ended.err.startswith("urlset: error: -: is empty")


def test_next_names_the_file(tmp_path: Path) -> None:
    catalog = write_csv(tmp_path / "c.csv", [{"url": f"{SITE}/page-1"}])
    assert "next: urlset build\n" in urlset("init", catalog, cwd=tmp_path).err
    ended = urlset("init", catalog, "-o", "my shop.toml", cwd=tmp_path)
    assert "next: urlset build --config 'my shop.toml'\n" in ended.err
    assert urlset("build", "--config", "my shop.toml", cwd=tmp_path).status == 0


def test_the_form_of_the_input_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes("url~grün\n/ü~1\n".encode("latin-1"))
    ended = urlset("init", path, "--delimiter", "~", "--encoding", "latin-1", "--format", "csv",
                   "--site", SITE, cwd=tmp_path)  # fmt: skip
    assert ended.status == 0, ended.err
    assert urlset("build", cwd=tmp_path).status == 0


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """The environment failed, as for a build: exit status 3."""
    catalog = write_csv(tmp_path / "c.csv", [{"url": f"{SITE}/page-1"}])
    ended = urlset("init", catalog, "-o", tmp_path / "none" / "urlset.toml", cwd=tmp_path)
    assert (ended.status, ended.out, ended.err.count("\n")) == (3, "", 1)
    assert ended.err.endswith("No such file or directory [config.unwritable]\n")

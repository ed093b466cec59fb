"""A new extension is one descriptor: PageMap, compiled in for this test, end to end."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, SITE
from lxml import etree

pytestmark = pytest.mark.long

NAMESPACE = "http://www.google.com/schemas/sitemap-pagemap/1.0"
OBJECTS: list[dict[str, Any]] = [
    {
        "type": "document",
        "id": 'a "1"',
        "attributes": [
            {"name": "title", "value": "Größe <L> & more"},
            {"name": "pages", "value": "12"},
        ],
    },
    {"type": "rating", "id": None, "attributes": [{"name": "stars", "value": "4.5"}]},
]
INVALID: list[dict[str, Any]] = [{"type": None, "id": "x", "attributes": []}]
PRODUCT = (ROOT / "rust", ROOT / "python" / "urlset")


def test_an_extension_is_known_to_few_files() -> None:
    """Only its descriptor contains what concerns one extension."""
    files = [
        path
        for folder in PRODUCT
        for suffix in ("rs", "py", "pyi")
        for path in folder.rglob(f"*.{suffix}")
        if "video" in path.read_text(encoding="utf-8").lower()
    ]
    assert ROOT / "rust" / "core" / "sitemap" / "extension" / "video.rs" in files
    assert len(files) <= 8, [str(path) for path in files]


def test_the_new_extension_is_one_file_and_its_registration() -> None:
    named = [
        str(path.relative_to(ROOT))
        for folder in PRODUCT
        for suffix in ("rs", "py", "pyi")
        for path in folder.rglob(f"*.{suffix}")
        if "pagemap" in path.read_text(encoding="utf-8").lower()
    ]
    extension = "rust/core/sitemap/extension"
    assert sorted(named) == [f"{extension}/mod.rs", f"{extension}/pagemap.rs"]
    registry = (ROOT / extension / "mod.rs").read_text()
    assert registry.count("pagemap;") == registry.count("&pagemap::EXTENSION") == 1


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose core has the extension; returns the folder to import from."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    target = ROOT / "target" / "pagemap"
    environment = os.environ | {
        "PYO3_PYTHON": sys.executable,
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
    }
    subprocess.run(
        [
            "cargo", "build", "--quiet", "--release", "--package", "urlset-python",
            "--features", "pagemap", "--target-dir", str(target),
        ],
        cwd=ROOT, env=environment, check=True,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("package")
    ignored = shutil.ignore_patterns("_core*.so", "__pycache__")
    shutil.copytree(ROOT / "python" / "urlset", folder / "urlset", ignore=ignored)
    shutil.copy(target / "release" / "lib_core.so", folder / "urlset" / "_core.abi3.so")
    return folder


def run(package: Path, *arguments: object, status: int = 0) -> str:
    environment = os.environ | {"PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, "-m", "urlset", *map(str, arguments)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def written(out: Path) -> list[list[dict[str, Any]] | None]:
    """The objects of each URL, as lxml reads them."""
    root = etree.fromstring(gzip.decompress((out / "sitemap-00001.xml.gz").read_bytes()))
    found: list[list[dict[str, Any]] | None] = []
    for url in root:
        page = url.find(f"{{{NAMESPACE}}}PageMap")
        if page is None:
            found.append(None)
            continue
        found.append(
            [
                {
                    "type": item.get("type"),
                    "id": item.get("id"),
                    "attributes": [{"name": a.get("name"), "value": a.text} for a in item],
                }
                for item in page
            ]
        )
    return found


@pytest.mark.slow
def test_options_rendering_columns_and_checks_of_a_new_extension(
    package: Path, tmp_path: Path
) -> None:
    assert "--pagemap objects=COL" in run(package, "build", "--help")
    csv = tmp_path / "catalog.csv"
    cells = [json.dumps(OBJECTS), "", json.dumps([*INVALID, OBJECTS[1]])]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    csv.write_text("loc,map\n" + "".join(f"/{i},{cell}\n" for i, cell in enumerate(quoted)))
    out, report = tmp_path / "out", tmp_path / "report.json"
    build = ("build", csv, "--site", SITE, "--out", out, "--json", report)

    run(package, *build, "--pagemap", "objects=map")
    assert written(out) == [OBJECTS, None, [OBJECTS[1]]]
    told = json.loads(report.read_text())
    warning = {"code": "pagemap.type", "count": 1}
    [found] = [warned for warned in told["warnings"] if warned["code"] == "pagemap.type"]
    assert found | warning == found and "DataObject left out" in found["message"]
    assert told["mapping"]["pagemap"] == "objects=map"

    run(package, *build, "--pagemap", "objects=map", "--on-bad-field", "reject",
        "--max-rejects", "1", "--max-shrink", "100%")  # fmt: skip
    assert json.loads(report.read_text())["rejects"]["by_code"] == {"pagemap.type": 1}
    assert written(out) == [OBJECTS, None]
    run(package, "build", csv, "--site", SITE, "--out", tmp_path / "text", "--output", "text",
        "--pagemap", "map", status=2)  # fmt: skip

    assert "0 errors, 0 warnings, 0 notes" in run(package, "verify", out)
    rows = tmp_path / "rows.parquet"
    run(package, "read", out, "--output", rows)
    table = pq.read_table(rows)
    assert table.column("pagemap").to_pylist() == [{"objects": OBJECTS}, None]
    assert table.schema.names[-2:] == ["pagemap", "shard"]

    # the rows that were read build the same set again, from a column of structs
    again = tmp_path / "again"
    run(package, "build", rows, "--site", SITE, "--out", again, "--pagemap", "pagemap")
    assert written(again) == [OBJECTS, None]
    changed = pa.table({"loc": ["/0", "/1"], "map": [json.dumps(OBJECTS[:1]), None]})
    pq.write_table(changed, rows)
    third = tmp_path / "third"
    run(package, "build", rows, "--site", SITE, "--out", third, "--pagemap", "objects=map")
    feed = tmp_path / "changes.jsonl"
    run(package, "diff", out, third, "--output", feed)
    changes = [json.loads(line) for line in feed.read_text().splitlines()]
    assert [(change["change"], change["loc"]) for change in changes] == [("changed", f"{SITE}/0")]


@pytest.mark.slow
def test_verify_reports_faults_of_a_new_extension(package: Path, tmp_path: Path) -> None:
    file = tmp_path / "sitemap.xml"
    file.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        f' xmlns:p="{NAMESPACE}"><url><loc>{SITE}/a</loc>'
        '<p:PageMap><p:DataObject><p:Attribute name="n">v</p:Attribute></p:DataObject></p:PageMap>'
        '<p:PageMap><p:DataObject type="t"/></p:PageMap></url></urlset>\n'
    )
    report = tmp_path / "report.json"
    run(package, "verify", file, "--json", report, status=1)
    problems = json.loads(report.read_text())["problems"]
    assert [problem["code"] for problem in problems] == ["element.attribute", "pagemap.repeated"]

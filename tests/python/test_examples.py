"""The files in examples/: run as a user runs them, with what they import."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import urlset
from conftest import SITE, read_set

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.long

needs_spark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None
    or (shutil.which("java") is None and "JAVA_HOME" not in os.environ),
    reason="needs pyspark and Java 17",
)
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray Data")


@pytest.fixture
def products(tmp_path: Path) -> Path:
    """100 products in two files; every second one is in stock."""
    folder = tmp_path / "products"
    folder.mkdir()
    for file in range(2):
        numbers = range(50 * file, 50 * (file + 1))
        rows = {
            "url": [f"{SITE}/p/{n}" for n in numbers],
            "updated_at": [f"2026-01-{1 + n % 28:02}" for n in numbers],
            "in_stock": [n % 2 == 0 for n in numbers],
        }
        parquet.write_table(pa.table(rows), folder / f"{file}.parquet")
    return folder


def run(command: list[str | Path], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    return done.stdout


@needs_spark
def test_spark(products: Path, tmp_path: Path, out: Path) -> None:
    run(
        [sys.executable, EXAMPLES / "spark_job.py", products, SITE, out], tmp_path,
        PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1",
        PYSPARK_SUBMIT_ARGS="--master local[2] --conf spark.ui.enabled=false pyspark-shell",
    )  # fmt: skip
    assert {entry["loc"] for entry in read_set(out)} == {f"{SITE}/p/{n}" for n in range(0, 100, 2)}
    assert urlset.verify(out).counts == {}


@needs_ray
def test_ray(products: Path, tmp_path: Path, out: Path) -> None:
    said = run([sys.executable, EXAMPLES / "ray_job.py", products, SITE, out], tmp_path)
    assert "100 URLs in " in said
    assert {entry["loc"] for entry in read_set(out)} == {f"{SITE}/p/{n}" for n in range(100)}
    assert urlset.verify(out).counts == {}


MATERIALIZE = """
import json, sys, dagster
sys.path.insert(0, sys.argv[1])
from dagster_asset import definitions, sitemaps
definitions.validate_loadable(definitions)
done = dagster.materialize([sitemaps], raise_on_error=False)
[event] = done.get_asset_materialization_events() or [None]
values = event and event.materialization.metadata
print(json.dumps({
    "success": done.success,
    "urls": values and values["urls"].value,
    "failure": [str(e.event_specific_data.user_failure_data.description)
                for e in done.all_events if e.is_step_failure],
}))
"""


@pytest.mark.slow
def test_dagster(products: Path, tmp_path: Path, out: Path) -> None:
    """In an environment of its own: Dagster has many dependencies. It sees this urlset."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    run([python, "-m", "pip", "install", "--quiet", "dagster", "pyarrow"], tmp_path)
    paths = [Path(urlset.__file__).parents[1], *map(Path, sys.path)]
    for name in ("isal", "obstore", "httpx", "tomli_w"):  # what urlset imports
        assert any((path / name).exists() for path in paths)
    [place] = {path for path in paths if (path / "isal").exists()}
    for folder in (paths[0], place):  # behind those of Dagster
        with (
            next((tmp_path / "venv/lib").glob("*/site-packages"))
            .joinpath("urlset.pth")
            .open("a") as file
        ):
            file.write(f"{folder}\n")

    def materialize(source: Path) -> dict[str, object]:
        said = run(
            [python, "-c", MATERIALIZE, EXAMPLES], tmp_path,
            SITEMAPS_SOURCE=str(source), SITEMAPS_OUT=str(out), DAGSTER_HOME=str(tmp_path),
        )  # fmt: skip
        return dict(json.loads(said.splitlines()[-1]))

    assert materialize(products) == {"success": True, "urls": 100, "failure": []}
    assert len(read_set(out)) == 100
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("address\nx\n")
    failed = materialize(wrong)
    assert not failed["success"] and "no column is named loc" in str(failed["failure"])
    assert len(read_set(out)) == 100


def test_airflow_compiles(tmp_path: Path) -> None:
    """Airflow is not run: its example says so."""
    py_compile.compile(str(EXAMPLES / "airflow_dag.py"), str(tmp_path / "x.pyc"), doraise=True)
    assert "but not run" in (EXAMPLES / "airflow_dag.py").read_text()

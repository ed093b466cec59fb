"""The files in examples/, run as a user runs them; Spark and Ray have their own tests."""

from __future__ import annotations

import json
import py_compile
import sys
import venv
from pathlib import Path

import pytest
import urlset
from conftest import read_set
from engine_cases import EXAMPLES, catalog, run

pytestmark = pytest.mark.long

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
def test_dagster(tmp_path: Path, out: Path) -> None:
    """In an environment of its own: Dagster has many dependencies. It sees this urlset."""
    products = catalog(tmp_path)
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

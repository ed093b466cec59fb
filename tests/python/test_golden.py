"""Results that must not change: bytes, numbers, keys and codes of some 220 builds.

``python tests/golden/record.py`` records them anew where a change is intended.
"""

from __future__ import annotations

import json
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "golden"))
import record

RECORDED = json.loads(record.RECORDED.read_text(encoding="utf-8"))
CASES = {case.name: case for case in record.cases()}


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_as_recorded(name: str) -> None:
    assert json.loads(json.dumps(record.run(CASES[name]))) == RECORDED[name]


def test_each_recorded_case_is_run() -> None:
    assert set(RECORDED) == set(CASES)
    assert len(CASES) >= 200

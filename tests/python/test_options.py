"""An option is described once: commands, keywords, types and the core agree with its table."""

from __future__ import annotations

import json
import subprocess
import sys
import typing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import urlset as package
from conftest import SITE, urlset
from urlset import _core, keywords
from urlset.announce.options import AnnounceOptions
from urlset.audit.options import AuditOptions
from urlset.build.init import InitOptions
from urlset.clean import CleanOptions
from urlset.inspect.options import DiffOptions, ReadOptions, VerifyOptions
from urlset.option_table import options_of
from urlset.options import Options

ROOT = Path(__file__).parents[2]
TABLES: dict[str, type[Any]] = {
    "build": Options, "verify": VerifyOptions, "read": ReadOptions, "diff": DiffOptions,
    "announce": AnnounceOptions, "init": InitOptions, "clean": CleanOptions,
    "audit": AuditOptions,
}  # fmt: skip
#: parameters of the command alone
COMMAND_ONLY = {
    "build": {"inputs", "config", "json_path", "quiet"},
    "verify": {"target", "json_path", "jsonl_path", "quiet"},
    "audit": {"target", "json_path", "quiet"},
    "read": {"target", "output", "format", "quiet"},
    "diff": {"old", "new", "output", "format", "quiet"},
    "announce": {"target", "json_path", "quiet"},
    "init": {"input", "target", "force"},
    "clean": {"destination", "quiet"},
}


@pytest.mark.parametrize("name", TABLES)
def test_a_command_has_the_options_of_its_table(name: str) -> None:
    command = getattr(import_module(f"urlset.cli.{name}"), name)
    names = {param.name for param in command.params} - COMMAND_ONLY[name]
    assert {one.rstrip("_") for one in names} == {one.key for one in options_of(TABLES[name])}
    shown = urlset(name, "--help").out
    for one in options_of(TABLES[name]):
        assert (one.flag or f"--{one.key.replace('_', '-')}") in shown


@pytest.mark.parametrize("name", [name for name in TABLES if name != "init"])
def test_a_function_has_the_keywords_of_its_table(name: str) -> None:
    typed = typing.get_type_hints(getattr(keywords, f"{name.title()}Keywords"))
    own = {"site", "out"} if name == "build" else set()
    assert typed.keys() | own == {one.name for one in options_of(TABLES[name])}


def test_the_keywords_are_up_to_date(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, ROOT / "scripts/stub", "--check"], check=False)
    assert ended.returncode == 0
    # the check notices a change of the table
    copy = tmp_path / "scripts" / "stub"
    copy.parent.mkdir()
    (tmp_path / "python" / "urlset").mkdir(parents=True)
    copy.write_text((ROOT / "scripts/stub").read_text())
    text = (ROOT / "python/urlset/keywords.py").read_text()
    (tmp_path / "python/urlset/keywords.py").write_text(text.replace("max_urls: int", "x: int"))
    ended = subprocess.run(
        [sys.executable, copy, "--check"], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, "out of date" in ended.stderr) == (1, True)


def mapped(values: dict[str, Any]) -> list[str]:
    """The sources of the fields for a table with one column ``url``."""
    known = Options(site=SITE).core_json()
    _, chosen = _core.choose(json.dumps(known | values), ["url"], "t")
    return [one["field"] for one in json.loads(chosen)]


def test_the_core_refuses_an_unknown_option() -> None:
    assert mapped({}) == ["loc"]
    with pytest.raises(package.ConfigError, match='unknown option "max_url"') as caught:
        mapped({"max_url": 5})
    assert caught.value.code == "config.invalid"


@pytest.mark.parametrize("name", sorted(_core.limits()))
def test_a_limit_is_the_same_on_both_sides(tmp_path: Path, name: str) -> None:
    least, largest = _core.limits()[name]
    for value in (least, largest):
        assert mapped({name: value}) == ["loc"]
    for value in (least - 1, largest + 1):
        with pytest.raises(package.ConfigError) as caught:
            mapped({name: value})
        assert caught.value.code == "config.limit"
    if name == "max_loc":  # follows from --for
        return
    catalog = tmp_path / "c.csv"
    catalog.write_text(f"url\n{SITE}/1\n")
    for value in (least - 1, largest + 1, -1, 1 << 70):
        given: Any = {name: value}
        with pytest.raises(package.ConfigError) as caught:
            package.build(catalog, site=SITE, out=tmp_path / "out", **given)
        assert caught.value.code == "config.limit", value
        assert f"from {least} to {largest}" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("one", [one for one in options_of(Options) if one.choices and one.core])
def test_the_core_knows_all_choices(one: Any) -> None:
    for value in one.choices:
        assert mapped({one.key: value}) == ["loc"]
    with pytest.raises(package.ConfigError):
        mapped({one.key: "other"})


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (",", None), ("\t", None), ("tab", None), (r"\t", None), (";", None),
        ("", "config.delimiter"), ("ab", "config.delimiter"), ("äö", "config.delimiter"),
        ('"', "config.limit"), ("\n", "config.limit"), ("\0", "config.limit"),
        ("ä", "config.limit"),
    ],
)  # fmt: skip
def test_delimiters(tmp_path: Path, value: str, code: str | None) -> None:
    catalog = tmp_path / "c.csv"
    catalog.write_text(f"url\n{SITE}/1\n")
    try:
        report = package.build(catalog, site=SITE, out=tmp_path / "out", delimiter=value)
    except package.ConfigError as error:
        assert error.code == code
    else:
        assert (code, report.urls) == (None, 1)


def test_guessed_columns_are_those_of_the_help(tmp_path: Path) -> None:
    text = " ".join(urlset("build", "--help").out.split())
    for field, names in _core.column_names().items():
        assert f"[{', '.join(names)}]" in text
        for name in names:
            catalog = tmp_path / "c.csv"
            header = name if field == "loc" else f"url,{name}"
            row = f"{SITE}/1" if field == "loc" else f"{SITE}/1,2026-01-02"
            catalog.write_text(f"{header}\n{row}\n")
            report = package.build(catalog, site=SITE, out=tmp_path / "out")
            assert report.mapping[field] == name


def test_a_wrong_keyword_of_a_function(tmp_path: Path) -> None:
    for function in (package.verify, package.read, package.announce):
        with pytest.raises(TypeError, match="unknown_option"):
            function(tmp_path, unknown_option=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unknown_option"):
        package.diff(tmp_path, tmp_path, unknown_option=1)  # type: ignore[call-arg]

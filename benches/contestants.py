"""The contestants: urlset, the peers, and limits that no program with gzip output can exceed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import common
from common import BENCHES, WORK, BenchError

VENV_PYTHON = WORK / "venv" / "bin" / "python"
NPM = WORK / "npm"
PIP_PACKAGES = (
    "polars", "duckdb", "pyarrow", "isal", "xml-sitemap-writer",
    "ultimate-sitemap-parser~=1.8.0", "advertools",
)  # fmt: skip
NPM_PACKAGE = "sitemap"
_DEBIAN = "apt-get install"
#: what the key of another urlset ends with
OTHER = "-other"

Command = Callable[[Path, Path], list[str]]


@dataclass(frozen=True)
class Contestant:
    """One line of the table."""

    key: str
    label: str
    group: str  # urlset, peer or limit
    takes: str  # csv, parquet, or shards: the finished plain ones, linked into the output folder
    gzip: bool
    #: (input, output folder) -> command line; raises BenchError where the tool is missing
    command: Command
    version: Callable[[], str]
    #: slow contestants receive 1/n of the rows, and their rate is scaled
    part: int = 1
    cwd: Path = BENCHES


def all_contestants() -> list[Contestant]:
    """In the order in which they run."""
    return [*_urlset(), *_peers(), *_limits()]


def against(chosen: list[Contestant], command: str) -> list[Contestant]:
    """Those of urlset among the chosen, each with its counterpart of another urlset behind it."""
    others = {who.key: who for who in _urlset(command)}
    own = [who for who in chosen if who.key in others]
    pairs = ((who, _other(others[who.key])) for who in own)
    return [who for pair in pairs for who in pair]


def _other(who: Contestant) -> Contestant:
    return replace(who, key=who.key + OTHER, label=f"{who.label} (other)", group="other")


def _urlset(command: str | None = None) -> list[Contestant]:
    def build(*options: str) -> Command:
        return lambda source, out: common.build(source, out, *options, command=command)

    def version() -> str:
        return common.tool_version(command or common.urlset(), "--version")

    made = []
    for takes, name in (("csv", "CSV"), ("parquet", "Parquet")):
        made.append(
            Contestant(
                f"urlset-{takes}-gz",
                f"urlset, {name} to gzip",
                "urlset",
                takes,
                True,
                build(),
                version,
            )
        )
        plain = build("--no-gzip")
        made.append(
            Contestant(
                f"urlset-{takes}-plain",
                f"urlset, {name} to plain",
                "urlset",
                takes,
                False,
                plain,
                version,
            )
        )
    return made


def _peers() -> list[Contestant]:
    def script(name: str, *options: str, own: bool = False) -> Command:
        def command(source: Path, out: Path) -> list[str]:
            python = VENV_PYTHON if own else Path(sys.executable)
            if own and not python.exists():
                raise BenchError("not installed (run with --install)")
            return [str(python), str(BENCHES / "peers" / name), str(source), str(out), *options]

        return command

    def node(*options: str) -> Command:
        def command(source: Path, out: Path) -> list[str]:
            if not (NPM / "node_modules" / NPM_PACKAGE).exists():
                raise BenchError("not installed (needs node and npm; run with --install)")
            return [
                "node",
                str(BENCHES / "peers" / "sitemapjs.cjs"),
                str(source),
                str(out),
                *options,
            ]

        return command

    def python_version() -> str:
        return f"Python {sys.version.split()[0]}"

    def sitemapjs() -> str:
        return f"sitemap {_npm_version()}, node {common.tool_version('node', '--version')}"

    return [
        Contestant(
            "polars-gz", "Polars + igzip", "peer", "csv", True,
            script("polars_igzip.py", own=True), pip_versions("polars", "isal"),
        ),
        Contestant(
            "polars-plain", "Polars", "peer", "csv", False,
            script("polars_igzip.py", "--plain", own=True), pip_versions("polars"),
        ),
        Contestant(
            "duckdb-plain", "DuckDB", "peer", "csv", False,
            script("duckdb_concat.py", "--plain", own=True), pip_versions("duckdb"),
        ),
        Contestant(
            "stdlib-gz", "Python standard library, gzip 1", "peer", "csv", True,
            script("stdlib.py"), python_version, part=2,
        ),
        Contestant(
            "stdlib-plain", "Python standard library", "peer", "csv", False,
            script("stdlib.py", "--plain"), python_version, part=2,
        ),
        Contestant(
            "xml-sitemap-writer", "xml-sitemap-writer", "peer", "csv", True,
            script("xmlsitemapwriter.py", own=True), pip_versions("xml-sitemap-writer"), part=5,
        ),
        Contestant(
            "sitemapjs-plain", "sitemap.js", "peer", "csv", False,
            node("--plain"), sitemapjs, part=5, cwd=NPM,
        ),
        Contestant(
            "sitemapjs-gz", "sitemap.js, gzip 1", "peer", "csv", True,
            node(), sitemapjs, part=20, cwd=NPM,
        ),
    ]  # fmt: skip


def _limits() -> list[Contestant]:
    def compressor(tool: str, options: str, package: str) -> Command:
        def command(source: Path, out: Path) -> list[str]:
            if shutil.which(tool) is None:
                raise BenchError(f"{tool} is not installed ({_DEBIAN} {package})")
            # enough shares that no process waits, few enough that starting them is cheap
            count = len(list(source.iterdir()))
            share = max(1, -(-count // (4 * common.cores())))
            files = f"find {shlex.quote(str(out))} -name '*.xml' -print0"
            return _shell(f"{files} | xargs -0 -P {common.cores()} -n {share} {tool} {options}")

        return command

    def copy(and_then: str = "") -> Command:
        def command(source: Path, out: Path) -> list[str]:
            start, end = shlex.quote(str(source)), shlex.quote(str(out))
            return _shell(f"cp --reflink=never {start}/*.xml {end}/{and_then.format(out=end)}")

        return command

    def version(tool: str) -> Callable[[], str]:
        return lambda: common.tool_version(tool, "--version")

    each = f"{common.cores()} processes"
    return [
        Contestant(
            "igzip", f"limit: igzip -1 over the finished shards, {each}", "limit", "shards", True,
            compressor("igzip", "-1 -k -f", "isal"), version("igzip"),
        ),
        Contestant(
            "pigz", f"limit: pigz -1 over the finished shards, {each}", "limit", "shards", True,
            compressor("pigz", "-1 -k -f -p 1", "pigz"), version("pigz"),
        ),
        Contestant(
            "libdeflate", f"limit: libdeflate-gzip -1, {each}", "limit", "shards", True,
            compressor("libdeflate-gzip", "-1 -k -f", "libdeflate-tools"),
            lambda: common.tool_version("libdeflate-gzip", "-V"),
        ),
        Contestant(
            "cp", "limit: cp of the plain shards", "limit", "copy", False,
            copy(), version("cp"),
        ),
        Contestant(
            "cp-sync", "limit: cp of the plain shards, then fsync", "limit", "copy", False,
            copy(" && sync {out}/*.xml"), version("cp"),
        ),
    ]  # fmt: skip


def _shell(line: str) -> list[str]:
    return ["sh", "-c", line]


def pip_versions(*packages: str) -> Callable[[], str]:
    """The versions of the installed peers."""

    def versions() -> str:
        code = "import sys, importlib.metadata as m; print(*[p + ' ' + m.version(p) for p in "
        code += "sys.argv[1:]], sep=', ')"
        return common.tool_version(str(VENV_PYTHON), "-c", code, *packages)

    return versions


def _npm_version() -> str:
    code = f"console.log(require('./node_modules/{NPM_PACKAGE}/package.json').version)"
    done = subprocess.run(["node", "-e", code], cwd=NPM, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def install() -> None:
    """Installs the peers into benches/work/; BenchError names the step that failed."""
    WORK.mkdir(exist_ok=True)
    steps: list[tuple[list[str], Path]] = [
        ([sys.executable, "-m", "venv", str(VENV_PYTHON.parent.parent)], WORK),
        ([str(VENV_PYTHON), "-m", "pip", "install", "-q", "-U", *PIP_PACKAGES], WORK),
    ]
    if shutil.which("npm"):
        NPM.mkdir(exist_ok=True)
        (NPM / "package.json").write_text('{"private": true}\n')
        steps.append((["npm", "install", "--no-fund", "--no-audit", NPM_PACKAGE], NPM))
    else:
        print("npm is not installed: sitemap.js is left out", file=sys.stderr)
    for step, folder in steps:
        if subprocess.run(step, cwd=folder, stdout=sys.stderr, check=False).returncode:
            raise BenchError(f"failed: {shlex.join(step[:4])} ...")

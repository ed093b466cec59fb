"""The reference names every key of real reports and manifests, and no other key."""

from __future__ import annotations

import csv
import functools
import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset
from conftest import ROOT, SITE
from store_servers import moto, use

sys.path.insert(0, str(ROOT / "scripts"))
import reference

pytestmark = pytest.mark.long

#: by table of the reference the keys whose values have a table of their own
NESTED = {
    "Manifest": {
        "shards": "ShardRecord", "indexes": "IndexRecord", "history": "BuildRecord",
        "store": "StoreRecord", "lastmod": "StampFile",
    },
    "StoreRecord": {"feeds": "Feed"},
    "Report": {"shards": "Shard", "indexes": "IndexFile", "warnings": "Warning"},
    "VerifyReport": {"problems": "Problem", "files": "File"},
    "AuditReport": {"estimates": "Estimate", "strata": "Stratum", "samples": "Finding"},
    "Stratum": {"estimates": "Estimate"},
    "AnnounceReport": {"outcomes": "EngineOutcome"},
}  # fmt: skip
Keys = dict[str, set[str]]


@pytest.fixture(scope="module")
def documented() -> Keys:
    """The keys in each table of the two pages; each has a meaning."""
    found: Keys = {}
    pages = reference.pages()
    for page in (pages["manifest.md"], pages["reports.md"]):
        for name, text in re.findall(r"^###? (\w+) \{.*\n((?:(?!#).*\n)*)", page, re.MULTILINE):
            rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*?) \|$", text, re.MULTILINE)
            assert rows and all(kind and meaning for _, kind, meaning in rows), name
            found[name] = {key for key, _, _ in rows}
    return found


def collect(table: str, value: dict[str, Any], found: Keys) -> None:
    """Adds the keys of a document to those of its table, and of the tables below it."""
    found.setdefault(table, set()).update(value)
    for key, below in NESTED.get(table, {}).items():
        inner = value.get(key)
        for one in inner if isinstance(inner, list) else [inner] if inner else []:
            collect(below, one, found)


def manifests(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Those of sets with all features."""
    rows = pa.table(
        {
            "url": [f"{SITE}/{n}" for n in range(40)],
            "title": [f"t{n}" for n in range(40)],
            "lastmod": ["2026-10-01"] * 40,
        }
    )

    def state(folder: str) -> dict[str, Any]:
        [path] = (tmp_path / folder).rglob("manifest.json")
        content: dict[str, Any] = json.loads(path.read_bytes())
        return content

    for part in (rows, rows.slice(1)):
        urlset.build(
            part, site=SITE, out=tmp_path / "nightly", layout="stable", duplicates="drop",
            max_urls=10, changes=tmp_path / "changes.csv", lastmod_from=["title"],
            add_sitemap=[f"{SITE}/other.xml"],
        )  # fmt: skip
    yield state("nightly")
    (tmp_path / "a.txt").write_text(f"{SITE}/a\n")
    (tmp_path / "urlset.toml").write_text(
        f'site = "{SITE}"\n'
        '[[set]]\nname = "a"\ninput = "a.txt"\n[[set]]\nname = "b"\ninput = "a.txt"\n'
    )
    urlset.build(config=tmp_path / "urlset.toml", out=tmp_path / "sets")
    yield state("sets")
    hosts = pa.table({"url": [f"https://{host}.shop.example/" for host in "ab"]})
    urlset.build(
        hosts, site=SITE, out=tmp_path / "hosts", hosts="any", split_by="@host",
        sitemap_url="https://{host}/",
    )  # fmt: skip
    yield state("hosts")
    job = urlset.Job(site=SITE, out=tmp_path / "ordered", ordered=True)
    job.commit([job.write(rows.sort_by("url"))])
    yield state("ordered")


def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The manifest in an object store, with a change feed."""
    rows = pa.table({"url": [f"{SITE}/{n}" for n in range(9)]})
    with moto() as server:
        use(server, monkeypatch)
        out = f"{server.url}/keys"
        urlset.build(
            rows, site=SITE, out=out, duplicates="drop", changes=tmp_path / "stored.csv",
            layout="stable", lastmod_from=["url"],
        )  # fmt: skip
        names = server.client.list_objects_v2(Bucket=server.bucket, Prefix="keys/")["Contents"]
        [key] = [one["Key"] for one in names if re.search(r"/manifest-\w+\.json$", one["Key"])]
        content = server.client.get_object(Bucket=server.bucket, Key=key)["Body"].read()
        for one in names:
            server.client.delete_object(Bucket=server.bucket, Key=one["Key"])
    state: dict[str, Any] = json.loads(content)
    return state


def test_every_key_of_a_manifest_is_in_the_reference(
    documented: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Keys = {}
    for state in [*manifests(tmp_path), stored(tmp_path, monkeypatch)]:
        collect("Manifest", state, found)
    assert found == {name: documented[name] for name in found}
    assert {*NESTED["Manifest"].values(), "Feed"} <= found.keys()


def command(*args: object, cwd: Path) -> dict[str, Any]:
    """The JSON that a command writes to standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "urlset", *map(str, args), "--json", "-"],
        cwd=cwd, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def test_every_key_of_a_report_is_in_the_reference(documented: Keys, tmp_path: Path) -> None:
    class Pages(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    (tmp_path / "www").mkdir()
    (tmp_path / "www/1.html").write_text("<title>1</title>")
    handler = functools.partial(Pages, directory=tmp_path / "www")
    found: Keys = {}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        site = f"http://127.0.0.1:{server.server_port}"
        (tmp_path / "c.csv").write_text(
            f"url,priority,title\n{site}/1.html,0.5,a\n{site}/gone,0.5,b\nftp://x/,1,c\n"
        )
        build = ("build", "c.csv", "--site", site, "--out", "set")
        kept = command(*build, "--max-rejects", "50%", "--lastmod-from", "title", cwd=tmp_path)
        refused = command(*build, cwd=tmp_path)
        (tmp_path / "bad.xml").write_text("<urlset><url><loc>x</loc></url></urlset>")
        checked = command("verify", "bad.xml", cwd=tmp_path)
        pytest.importorskip("aiohttp", reason="the extra audit")
        audited = command("audit", "set", "--allow-private", "--sample", "all", cwd=tmp_path)
        announced = command(
            "announce", "set", "--to", "robots", "--robots", "robots.txt", cwd=tmp_path
        )
        server.shutdown()
    for table, report in (
        ("Report", kept), ("Report", refused), ("VerifyReport", checked),
        ("AuditReport", audited), ("AnnounceReport", announced),
    ):  # fmt: skip
        collect(table, report, found)
    assert found == {name: documented[name] for name in found}
    assert {"Warning", "Problem", "Finding", "Stratum", "EngineOutcome"} <= found.keys()
    # keys without a table of their own are in the text
    page = reference.pages()["reports.md"]
    guide = (ROOT / "docs/lastmod.md").read_text(encoding="utf-8").partition("\n## The report")[2]
    for key in [*kept["timings"], *refused["error"], *kept["rejects"], *audited["page_seconds"]]:
        assert re.search(rf"[`\"]{key}[`\"]", page), key
    for key in kept["lastmod"]:
        assert f"`{key}`" in guide, key
    with (tmp_path / "set/.urlset/rejects.csv").open(newline="") as file:
        columns = next(csv.reader(file))
    assert ", ".join(f"`{name}`" for name in columns) in page.partition("\n## The reject file")[2]

"""verify: the corpus of broken sitemaps, problems between files, the report, the command."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import urlset
from conftest import manifest_text
from urlset.inspect.targets import Found, Item
from urlset.inspect.verify import verify_found

REPO = Path(__file__).parents[2]
BROKEN = REPO / "tests" / "data" / "broken"
EXPECTED = json.loads((BROKEN / "expected.json").read_text())
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
HOST = "https://www.shop.example"


def urlset_of(*locs: str, inner: str = "") -> bytes:
    rows = "".join(f"<url><loc>{loc}</loc>{inner}</url>\n" for loc in locs)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{NS}">\n{rows}</urlset>\n'.encode()
    )


def index_of(*locs: str) -> bytes:
    rows = "".join(f"<sitemap><loc>{loc}</loc></sitemap>\n" for loc in locs)
    return f'<sitemapindex xmlns="{NS}">\n{rows}</sitemapindex>\n'.encode()


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "urlset", *map(str, args)]
    if not (REPO / "python/urlset/__main__.py").exists():
        command = [sys.executable, "-c", "from urlset.cli import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_one_fault_gives_its_finding(name: str) -> None:
    report = verify_found(Found([Item(BROKEN / name, name)]))
    assert sorted(report.counts) == EXPECTED[name]["finds"], EXPECTED[name]["why"]
    assert {p.code for p in report.problems} == set(report.counts)
    for problem in report.problems:
        assert problem.help and problem.message and "\n" not in problem.message


def test_the_corpus_is_whole() -> None:
    files = {path.name for path in BROKEN.iterdir()} - {"expected.json"}
    assert files == set(EXPECTED)
    assert len(files) >= 60


def test_every_fault_of_a_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").write_bytes(
        f"""<urlset xmlns="{NS}">
<url><loc>/rel</loc></url>
<url><loc>{HOST}/1</lok></url>
<url><loc>{HOST}/2</loc><priority>2</priority></url>
<url><loc>{HOST}/&nbsp;</loc><lastmod>now</lastmod></url>
<url><loc>{HOST}/3</loc><changefreq>x</changefreq></url>
</urlset>""".encode()
    )
    report = urlset.verify(tmp_path / "sitemap.xml")
    assert {(p.code, p.line) for p in report.problems} == {
        ("loc.relative", 2),
        ("xml.mismatch", 3),
        ("priority.invalid", 4),
        ("xml.entity", 5),
        ("lastmod.invalid", 5),
        ("changefreq.invalid", 6),
    }
    assert not report.ok
    assert report.urls == 4


def test_places_are_exact(tmp_path: Path) -> None:
    data = urlset_of(f"{HOST}/a", f"{HOST}/b c", f"{HOST}/d")
    path = tmp_path / "s.xml.gz"
    path.write_bytes(gzip.compress(data))
    (problem,) = urlset.verify(path).problems
    assert data[problem.offset :].startswith(b"<loc>https://www.shop.example/b c")
    assert problem.line == data[: problem.offset].count(b"\n") + 1 == 4
    assert problem.url == f"{HOST}/b c"


def test_long_files_count_all_and_list_some(tmp_path: Path) -> None:
    (tmp_path / "s.xml").write_bytes(urlset_of(*(f"{HOST}/a b{n}" for n in range(1000))))
    report = urlset.verify(tmp_path / "s.xml", most=7)
    assert report.counts == {"loc.characters": 1000}
    assert len(report.problems) == 7


def folder(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    root.mkdir()
    (root / "sitemap.xml").write_bytes(index_of(f"{HOST}/a.xml", f"{HOST}/b.xml.gz"))
    (root / "a.xml").write_bytes(urlset_of(f"{HOST}/1"))
    (root / "b.xml.gz").write_bytes(gzip.compress(urlset_of(f"{HOST}/2")))
    (root / "robots.txt").write_text("User-agent: *\n")
    return root


def test_a_sound_folder_is_right(tmp_path: Path) -> None:
    root = folder(tmp_path)
    for target in (root, root / "sitemap.xml"):
        report = urlset.verify(target, strict=True)
        assert report.ok and not report.problems
        assert [f.kind for f in report.files] == ["index", "urlset", "urlset"]
        assert report.urls == 2


@pytest.mark.parametrize(
    ("locs", "code"),
    [
        ([f"{HOST}/missing.xml"], "index.missing_file"),
        ([f"{HOST}/a.xml.gz"], "index.missing_file"),
        ([f"{HOST}/a.xml", f"{HOST}/a.xml"], "index.duplicate"),
        ([f"{HOST}/sitemap.xml"], "index.self"),
        ([f"{HOST}/nested.xml"], "index.nested"),
        ([f"{HOST}/../../secret.xml"], "index.missing_file"),
        ([f"{HOST}/%2e%2e/secret.xml"], "index.missing_file"),
        ([f"{HOST}/..%2fsecret.xml"], "index.missing_file"),
        ([f"{HOST}/a.xml", "https://other.example/b.xml.gz"], "index.other_host"),
    ],
)
def test_index_against_files(tmp_path: Path, locs: list[str], code: str) -> None:
    root = folder(tmp_path)
    (tmp_path / "secret.xml").write_bytes(urlset_of(f"{HOST}/secret"))
    (root / "nested.xml").write_bytes(index_of(f"{HOST}/a.xml"))
    (root / "sitemap.xml").write_bytes(index_of(*locs))
    report = urlset.verify(root / "sitemap.xml")
    assert code in report.counts, report.counts
    assert not any("secret" in file.name for file in report.files)


def test_a_symlink_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (tmp_path / "secret.xml").write_bytes(urlset_of(f"{HOST}/secret"))
    (root / "link.xml").symlink_to(tmp_path / "secret.xml")
    (root / "sitemap.xml").write_bytes(index_of(f"{HOST}/link.xml"))
    assert "index.missing_file" in urlset.verify(root / "sitemap.xml").counts


def test_unlisted_files_are_noted_retired_ones_are_not(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (root / "old.xml.gz").write_bytes(gzip.compress(urlset_of(f"{HOST}/3")))
    assert urlset.verify(root).counts == {"index.unlisted_file": 1}
    (root / ".urlset").mkdir()
    manifest = manifest_text(sitemap_url=f"{HOST}/", retired=["old.xml.gz"])
    (root / ".urlset" / "manifest.json").write_text(manifest)
    assert urlset.verify(root).counts == {}
    assert urlset.read(root).read_all()["loc"].to_pylist() == [f"{HOST}/1", f"{HOST}/2"]


@pytest.mark.parametrize(
    "manifest", ["", "[]", "{", '{"retired": 1, "shards": {}}', '{"retired": [[]], "shards": [1]}']
)
def test_a_broken_manifest_is_no_manifest(tmp_path: Path, manifest: str) -> None:
    root = folder(tmp_path)
    (root / ".urlset").mkdir()
    (root / ".urlset" / "manifest.json").write_text(manifest)
    assert urlset.verify(root).counts == {}
    assert urlset.diff(root, root).read_all().num_rows == 0


def test_duplicates_across_files_and_on_disk(tmp_path: Path) -> None:
    root = folder(tmp_path)
    locs = [f"{HOST}/{n}" for n in range(40_000)]
    (root / "a.xml").write_bytes(urlset_of(*locs))
    (root / "b.xml.gz").write_bytes(gzip.compress(urlset_of(*locs[::10])))
    few = urlset.verify(root, memory=1 << 20)
    many = urlset.verify(root)
    assert few.counts == many.counts == {"loc.duplicate": 4000}
    assert few.problems == many.problems
    first = few.problems[0]
    assert (first.file, first.url) == ("b.xml.gz", f"{HOST}/0")
    assert first.message == "listed already in a.xml"
    assert urlset.verify(root, duplicates=False).counts == {}


def test_scope_and_hosts(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    path.write_bytes(urlset_of(f"{HOST}/shop/1", f"{HOST}/blog/1"))
    item = Item(path, "s.xml", f"{HOST}/shop/s.xml")
    assert verify_found(Found([item])).counts == {"loc.scope": 1}
    item.url = "HTTPS://www.SHOP.example:443/s.xml"
    assert verify_found(Found([item])).counts == {}
    item.url = "https://sitemaps.example/s.xml"
    assert verify_found(Found([item])).counts == {"loc.cross_host": 1}


def test_reciprocity(tmp_path: Path) -> None:
    def links(*langs: str) -> str:
        link = '<xhtml:link rel="alternate" hreflang="{0}" href="' + HOST + '/{0}"/>'
        return "".join(link.format(lang) for lang in langs)

    rows = {"de": links("de", "en", "fr"), "en": links("de", "en"), "fr": links("fr")}
    body = "".join(f"<url><loc>{HOST}/{lang}</loc>{row}</url>\n" for lang, row in rows.items())
    xhtml = "http://www.w3.org/1999/xhtml"
    path = tmp_path / "s.xml"
    path.write_text(f'<urlset xmlns="{NS}" xmlns:xhtml="{xhtml}">{body}</urlset>')
    assert urlset.verify(path).counts == {}
    report = urlset.verify(path, reciprocity=True)
    assert report.counts == {"alternate.one_way": 1}
    assert report.problems[0].url == f"{HOST}/de"


def test_command_exit_status_and_forms(tmp_path: Path) -> None:
    root = folder(tmp_path)
    assert run("verify", root).returncode == 0
    (root / "a.xml").write_bytes(urlset_of("/x\x1b[31m"))
    bad = run("verify", root)
    assert bad.returncode == 1
    assert "loc.relative" in bad.stdout and "\x1b" not in bad.stdout
    as_json = json.loads(run("verify", root, "--json", "-").stdout)
    assert as_json["counts"]["loc.relative"] == 1 and as_json["ok"] is False
    lines = run("verify", root, "--jsonl", tmp_path / "f.jsonl", "--quiet")
    assert lines.stdout == "" and lines.returncode == 1
    found = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    assert "loc.relative" in {one["code"] for one in found}
    assert set(found[0]) == {
        "code", "severity", "file", "line", "offset", "url", "message", "help",
    }  # fmt: skip
    missing = run("verify", tmp_path / "nowhere")
    assert missing.returncode == 3 and missing.stderr.count("\n") == 1
    assert run("verify", root, "--memory", "lots").returncode == 2


def test_strict_makes_warnings_errors(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    path.write_bytes(urlset_of(f"{HOST}/1", f"{HOST}/1"))
    assert urlset.verify(path).ok
    assert not urlset.verify(path, strict=True).ok
    assert run("verify", path, "--strict").returncode == 1


def test_options_out_of_range() -> None:
    with pytest.raises(urlset.ConfigError):
        urlset.verify(BROKEN, memory=1)
    with pytest.raises(urlset.InputError) as error:
        urlset.verify(BROKEN / "nowhere")
    assert error.value.code == "target.missing"


def test_an_index_at_other_addresses_than_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "s.xml").write_bytes(urlset_of("https://www.shop.example/maps/1"))
    (tmp_path / "sitemap.xml").write_bytes(index_of("https://www.shop.example/maps/s.xml"))
    (tmp_path / ".urlset").mkdir()
    manifest = tmp_path / ".urlset" / "manifest.json"
    manifest.write_text(manifest_text(sitemap_url="https://www.shop.example/maps/"))
    assert urlset.verify(tmp_path).counts == {}
    manifest.write_text(manifest_text(sitemap_url="https://www.shop.example/new%C3%A4/"))
    (found,) = (p for p in urlset.verify(tmp_path).problems if p.code == "index.address")
    assert (found.severity, found.file, found.line) == ("warning", "sitemap.xml", 2)
    assert found.url == "https://www.shop.example/maps/s.xml"
    assert "https://www.shop.example/new%C3%A4/s.xml" in found.message


@pytest.mark.parametrize(("count", "told"), [(500, False), (501, True)])
def test_more_indexes_than_search_console_takes(tmp_path: Path, count: int, told: bool) -> None:
    (tmp_path / "s.xml").write_bytes(urlset_of("https://www.shop.example/1"))
    for n in range(count):
        (tmp_path / f"index-{n}.xml").write_bytes(index_of("https://www.shop.example/s.xml"))
    assert ("index.too_many" in urlset.verify(tmp_path).counts) == told


@pytest.mark.parametrize(
    ("name", "told"),
    [("a.txt", False), ("a.TXT", False), ("a.txt.gz", False), ("a.xml", True), ("a", True),
     ("a.gz", True), ("txt", True)],
)  # fmt: skip
def test_names_of_text_sitemaps(tmp_path: Path, name: str, told: bool) -> None:
    data = b"https://www.shop.example/1\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert set(urlset.verify(path).counts) == ({"file.text_name"} if told else set())


def test_a_pipe_is_no_target(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.xml")
    for target in (tmp_path / "pipe.xml", "/dev/null"):
        with pytest.raises(urlset.InputError) as error:
            urlset.verify(target)
        assert error.value.code == "target.kind"

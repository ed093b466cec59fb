"""Hostile sitemaps and servers: a finding or a one-line error, in bounded time and memory."""

from __future__ import annotations

import gzip
import io
import resource
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import urlset

pytestmark = pytest.mark.long

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
HEAD = f'<urlset xmlns="{NS}">'
URL = "<url><loc>https://www.shop.example/a</loc></url>"


def verify_in_child(path: Path, megabytes: int = 400) -> tuple[int, str, float]:
    """Verifies in a process of limited memory: exit status, output, seconds."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))

    code = "from urlset.cli import main; main()"
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", str(path), "--threads", "1"],
        capture_output=True, text=True, timeout=300, preexec_fn=limit, errors="replace",
    )  # fmt: skip
    assert "panick" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, time.monotonic() - start


def codes(path: Path) -> set[str]:
    return set(urlset.verify(path).counts)


def test_entity_bomb(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    path.write_text(
        f'<!DOCTYPE urlset [<!ENTITY l0 "lol">{laughs}]>{HEAD}<url><loc>&l11;</loc></url></urlset>'
    )
    assert {"xml.doctype", "xml.entity"} <= codes(path)


def test_external_entity_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("https://www.shop.example/secret")
    path = tmp_path / "sitemap.xml"
    path.write_text(
        f'<!DOCTYPE urlset [<!ENTITY x SYSTEM "{(tmp_path / "secret").as_uri()}">]>'
        f"{HEAD}<url><loc>&x;</loc></url></urlset>"
    )
    assert {"xml.doctype", "xml.entity"} <= codes(path)
    rows = urlset.read(path, lenient=True).read_all()["loc"].to_pylist()
    assert rows == ["&x;"]


def test_deep_nesting(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    path.write_text(HEAD + "<url>" * 100_000 + "</url>" * 100_000 + "</urlset>")
    status, out, seconds = verify_in_child(path)
    assert status == 1 and "xml.depth" in out and seconds < 60


def test_many_attributes_and_namespaces(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    many = " ".join(f'xmlns:a{n}="urn:{n}" b{n}="1"' for n in range(20_000))
    path.write_text(f"{HEAD}<url {many}><loc>https://www.shop.example/a</loc></url></urlset>")
    status, out, seconds = verify_in_child(path)
    assert status == 1 and "xml.malformed" in out and seconds < 60


def bomb(path: Path, head: bytes, block: bytes, blocks: int) -> None:
    """A gzip file of one member that inflates to ``blocks`` times ``block``."""
    zipper = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.write(zipper.compress(head))
        for _ in range(blocks):
            file.write(zipper.compress(block))
        file.write(zipper.flush())


def test_gzip_bomb(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml.gz"
    bomb(path, HEAD.encode(), b" " * (1 << 20), 1200)
    status, out, seconds = verify_in_child(path)
    assert status == 1 and "gzip.bomb" in out and seconds < 60


def test_huge_attribute(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml.gz"
    bomb(path, HEAD.encode() + b'<url a="', b"a" * (1 << 20), 1000)
    status, out, seconds = verify_in_child(path)
    assert status == 1 and "xml.too_long" in out and seconds < 60


@pytest.mark.slow
def test_ten_gigabytes_in_gzip(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml.gz"
    bomb(path, HEAD.encode(), b"<url>" * 200_000, 10_500)
    status, out, seconds = verify_in_child(path)
    assert status == 1 and "gzip.bomb" in out and seconds < 120


@pytest.mark.slow
def test_one_url_millions_of_times(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml.gz"
    bomb(path, HEAD.encode(), URL.encode() * 20_000, 1_050)
    status, out, _ = verify_in_child(path)
    assert status == 1 and "loc.duplicate" in out and "gzip.bomb" not in out


@pytest.mark.parametrize(
    "text",
    ["<!--" + "a" * 3_000_000, "<![CDATA[" + "a" * 3_000_000, "<?x " + "a" * 3_000_000,
     "<url><loc>" + "a" * 3_000_000, "<url><loc>" + "&amp;" * 1_200_000, "<" + "a" * 3_000_000],
)  # fmt: skip
def test_endless_tokens(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sitemap.xml"
    path.write_text(HEAD + text)
    assert "xml.too_long" in codes(path)


def test_an_entry_of_many_parts(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    link = '<xhtml:link rel="alternate" hreflang="de" href="https://www.shop.example/a"/>'
    path.write_text(
        f'<urlset xmlns="{NS}" xmlns:xhtml="http://www.w3.org/1999/xhtml">'
        f"<url><loc>https://www.shop.example/a</loc>{link * 150_000}</url></urlset>"
    )
    status, _, seconds = verify_in_child(path)
    assert status == 1 and seconds < 30


def test_quadratic_recovery(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    path.write_text(HEAD + "<url></x>" * 500_000 + "</urlset>")
    status, out, seconds = verify_in_child(path)
    assert status == 1 and "x500,000" in out and seconds < 20


def test_control_characters_stay_off_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    path.write_bytes(
        f"{HEAD}<url><loc>https://a.example/\x9b31m\u202e</loc></url><\x1b]0;x\x07></urlset>".encode()
    )
    _, out, _ = verify_in_child(path)
    assert not set(out) & {"\x1b", "\x9b", "\u202e", "\x07"}


def test_truncation_at_every_byte_of_a_file(tmp_path: Path) -> None:
    data = gzip.compress(f"{HEAD}{URL * 3}</urlset>".encode(), mtime=0)
    for end in range(len(data)):
        path = tmp_path / f"{end}.xml.gz"
        path.write_bytes(data[:end])
    with pytest.raises(urlset.InputError):
        urlset.read(tmp_path / "60.xml.gz").read_all()
    report = urlset.verify(tmp_path)
    bad = {problem.file for problem in report.problems if problem.severity == "error"}
    assert len(bad) == len(data)


# --- servers


class Handler(BaseHTTPRequestHandler):
    pages: ClassVar[dict[str, Callable[[BaseHTTPRequestHandler], None]]] = {}

    def do_GET(self) -> None:
        page = self.pages.get(self.path)
        if page is None:
            self.send_error(404)
        else:
            page(self)

    def log_message(self, *_: object) -> None:
        return


def body(data: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return page


def redirect(to: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return page


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, Callable[[BaseHTTPRequestHandler], None]]]]:
    Handler.pages = {}
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}", Handler.pages
    http.shutdown()
    http.server_close()
    thread.join()


def index(*locs: str) -> bytes:
    rows = "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs)
    return f'<sitemapindex xmlns="{NS}">{rows}</sitemapindex>'.encode()


def shard(base: str, count: int = 1) -> bytes:
    rows = "".join(f"<url><loc>{base}/{n}</loc></url>" for n in range(count))
    return f"{HEAD}{rows}</urlset>".encode()


Server = tuple[str, dict[str, Callable[[BaseHTTPRequestHandler], None]]]


def test_an_index_and_its_children(server: Server) -> None:
    base, pages = server
    tries = io.StringIO()

    def flaky(handler: BaseHTTPRequestHandler) -> None:
        tries.write("x")
        if len(tries.getvalue()) < 3:
            handler.send_error(503)
        else:
            body(gzip.compress(shard(base, 5)))(handler)

    pages["/sitemap.xml"] = body(index(f"{base}/a.xml", f"{base}/b.xml.gz"))
    pages["/a.xml"] = body(gzip.compress(shard(base + "/x")), Content_Encoding="gzip")
    pages["/b.xml.gz"] = flaky
    report = urlset.verify(f"{base}/sitemap.xml", allow_private=True)
    assert report.counts == {} and report.ok
    assert report.urls == 6
    rows = urlset.read(f"{base}/sitemap.xml", allow_private=True)
    assert rows.read_all().num_rows == 6


def test_private_addresses_are_refused(server: Server) -> None:
    base, pages = server
    pages["/sitemap.xml"] = body(shard(base))
    for url in (f"{base}/sitemap.xml", "http://localhost:1/s.xml", "http://[::1]/s.xml",
                "http://0x7f000001/s.xml", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/",
                "http://10.0.0.1/s.xml"):  # fmt: skip
        with pytest.raises(urlset.InputError) as error:
            urlset.verify(url)
        assert error.value.code == "fetch.refused", url


def test_what_an_index_may_not_list(server: Server) -> None:
    base, pages = server
    pages["/sitemap.xml"] = body(
        index(f"{base}/sitemap.xml", "file:///etc/passwd", "gopher://x/", f"{base}/loop",
              f"{base}/nested.xml", f"{base}/gone.xml", f"{base}/moved.xml", f"{base}/to-file")
    )  # fmt: skip
    pages["/loop"] = redirect("/loop")
    pages["/nested.xml"] = body(index(f"{base}/sitemap.xml"))
    pages["/moved.xml"] = redirect(f"{base}/here.xml")
    pages["/here.xml"] = body(shard(base))
    pages["/to-file"] = redirect("file:///etc/passwd")
    start = time.monotonic()
    report = urlset.verify(f"{base}/sitemap.xml", allow_private=True)
    assert time.monotonic() - start < 30
    found = {(p.code, (p.url or "").rpartition("/")[2]) for p in report.problems}
    assert {
        ("index.self", "sitemap.xml"), ("fetch.refused", "passwd"), ("fetch.failed", "loop"),
        ("index.nested", "nested.xml"), ("fetch.status", "gone.xml"),
        ("fetch.redirect", "moved.xml"), ("fetch.refused", "to-file"),
    } <= found  # fmt: skip
    assert not any("root:" in str(problem) for problem in report.problems)


def test_content_encoding(server: Server) -> None:
    base, pages = server
    plain = shard(base)
    zipped = gzip.compress(plain)
    pages["/once.xml.gz"] = body(zipped, Content_Encoding="gzip")
    pages["/twice.xml.gz"] = body(gzip.compress(zipped), Content_Encoding="gzip")
    pages["/lie.xml"] = body(plain, Content_Encoding="gzip")
    pages["/br.xml"] = body(plain, Content_Encoding="br")
    pages["/plain.xml.gz"] = body(plain)

    def found(name: str) -> set[str]:
        return set(urlset.verify(f"{base}/{name}", allow_private=True).counts)

    assert found("once.xml.gz") == found("twice.xml.gz") == found("lie.xml") == {"fetch.encoding"}
    assert found("plain.xml.gz") == {"file.name"}
    with pytest.raises(urlset.InputError) as error:
        found("br.xml")
    assert error.value.code == "fetch.encoding"


def test_sizes_are_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from urlset.inspect import download

    base, pages = server
    monkeypatch.setattr(download, "MAX_BYTES", 1 << 20)
    pages["/large.xml"] = body(b" " * (2 << 20))
    bomb = gzip.compress(b" " * (8 << 20))
    pages["/bomb.xml"] = body(bomb, Content_Encoding="gzip")
    for name in ("large.xml", "bomb.xml"):
        with pytest.raises(urlset.InputError) as error:
            urlset.verify(f"{base}/{name}", allow_private=True)
        assert error.value.code == "fetch.failed"


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(urlset.InputError) as error:
        urlset.verify("http://127.0.0.1:1/sitemap.xml", allow_private=True)
    assert error.value.code == "fetch.failed"
    assert "\n" not in str(error.value)

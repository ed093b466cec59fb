"""A site with known faults, served by nginx on loopback, and the sitemaps that list its pages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"

#: the finding of each page whose number ends with two digits; all other pages are faultless
FAULTS = {
    "01": "redirect", "02": "not_found", "03": "gone", "04": "noindex", "05": "noindex",
    "06": "canonical", "07": "canonical", "08": "disallowed", "09": "soft_404",
    "10": "server_error", "11": "content_type", "12": "redirect", "13": "client_error",
    "14": "noindex",
}  # fmt: skip
#: those that a drop list contains
DROPPED = {"redirect", "not_found", "gone", "noindex", "canonical"}

#: a part of a page; the text of a directive of nginx has up to 4 kB
FILLER = "".join(
    f'<div class="card"><a href="/p/{i}">Product {i}</a><p>Some text of product {i}</p></div>\n'
    for i in range(25)
)
_HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page</title>
<meta name="robots" content="{robots}"><link rel="canonical" href="{canonical}"></head>"""
_OWN = "http://$http_host$uri"


def _page(robots: str = "index,follow", canonical: str = _OWN, body: str = "A page.") -> str:
    return f"'{_HEAD.format(robots=robots, canonical=canonical)}<body>{body}</body></html>'"


def _locations(fillers: int) -> dict[str, str]:
    """What nginx does for each ending."""
    return {
        "01": "return 301 /ok;",
        "02": "return 404;",
        "03": "return 410;",
        "04": f'add_header X-Robots-Tag "googlebot: NoIndex, nofollow"; return 200 {_page()};',
        "05": f"return 200 {_page(robots='NOINDEX, follow')};",
        "06": f"return 200 {_page(canonical='/other?from=$uri')};",
        "07": "add_header Link '<http://$http_host/other>; rel=\"canonical\"';"
        " return 200 '<html><head></head><body>By header.</body></html>';",
        "09": f"return 200 {_page(body='Sorry, no such product.')};",
        "10": "return 500;",
        "11": "default_type application/pdf; return 200 '%PDF-1.7';",
        "12": "return 302 $uri;",
        "13": "return 403;",
        "14": f"return 200 {_page(robots='none')};",
        "": f"return 200 {_page(body='$filler' * fillers)};",
    }


@dataclass(frozen=True)
class Site:
    """A running server."""

    origin: str
    folder: Path

    def loc(self, number: int) -> str:
        """The URL of a page; /a/, /b/ and /c/ are its categories."""
        return f"{self.origin}/{'abc'[number % 3]}/{number}"

    def fault(self, number: int) -> str | None:
        """The planted finding of a page."""
        return FAULTS.get(str(number)[-2:])

    def sitemaps(self, folder: Path, pages: int, per_shard: int = 50_000) -> Path:
        """A folder with the sitemaps of the first pages, and their index."""
        folder.mkdir(parents=True, exist_ok=True)
        names = []
        for first in range(0, pages, per_shard):
            names.append(f"sitemap-{first // per_shard + 1}.xml")
            numbers = range(first, min(first + per_shard, pages))
            urls = "".join(f"<url><loc>{self.loc(number)}</loc></url>" for number in numbers)
            (folder / names[-1]).write_text(f'<urlset xmlns="{NS}">{urls}</urlset>')
        entries = "".join(f"<sitemap><loc>{self.origin}/{name}</loc></sitemap>" for name in names)
        index = folder / "sitemap.xml"
        index.write_text(f'<sitemapindex xmlns="{NS}">{entries}</sitemapindex>')
        return folder

    def requests(self) -> list[str]:
        """The lines of the access log: time, status, path and User-Agent."""
        return (self.folder / "access.log").read_text().splitlines()


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def nginx(folder: Path, *, fillers: int = 1, log: bool = True) -> Iterator[Site]:
    """The site on a free port.

    Args:
        fillers: the size of a page without a fault, in 2.2 kB.
        log: whether requests are logged.
    """
    if NGINX is None:
        if os.environ.get("URLSET_REQUIRE_TOOLS"):
            raise AssertionError("nginx is not installed (Debian: nginx-light)")
        pytest.skip("nginx is not installed (Debian: nginx-light)")
    port = free_port()
    locations = "\n".join(
        f'location ~ "^/[abc]/\\d*{ending}$" {{ {action} }}'
        for ending, action in _locations(fillers).items()
    )
    access = "access.log main" if log else "off"
    (folder / "nginx.conf").write_text(f"""
        worker_processes 1; pid {folder}/nginx.pid; error_log stderr;
        events {{ worker_connections 1024; }}
        http {{
            log_format main '$msec $status $request_uri "$http_user_agent"';
            access_log {access};
            default_type text/html; keepalive_requests 1000000;
            client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
            uwsgi_temp_path {folder}; scgi_temp_path {folder};
            geo $dollar {{ default "$"; }}
            server {{
                listen 127.0.0.1:{port};
                set $filler '{FILLER}';
                location = /robots.txt {{
                    default_type text/plain;
                    return 200 "User-agent: *\\nDisallow: /*08${{dollar}}\\n";
                }}
                location = /ok {{ return 200 {_page()}; }}
                {locations}
            }}
        }}""")
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    with (folder / "error.log").open("wb") as errors:
        process = subprocess.Popen(command, stderr=errors)
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline, "nginx does not listen"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield Site(f"http://127.0.0.1:{port}", folder)
    finally:
        process.terminate()
        process.wait(60)

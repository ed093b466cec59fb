"""Which addresses a fetch may reach: it connects to the address that was checked."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urlset
from hostile_server import HostileServer, index_of, redirect, urlset_of

pytestmark = pytest.mark.long

PRIVATE = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254",
    "172.16.0.1", "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::7f00:1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1",
    "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::",
    "2002:a00:1::1", "2002:c0a8:101::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1",
    "fd12::1", "fe80::1", "fe80::1%1", "fec0::1", "feff::1", "ff02::1", "ff0e::1", "4000::1",
]  # fmt: skip
PUBLIC = [
    "8.8.8.8", "1.1.1.1", "93.184.216.34", "172.32.0.1", "192.167.255.255", "2606:4700::1111",
    "2a00:1450:4001:81b::200e", "2002:808:808::1", "::ffff:8.8.8.8",
]  # fmt: skip

Resolver = Callable[..., list[Any]]


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        server.pages["/sitemap.xml"] = urlset_of("http://shop.test")
        yield server


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Names, and the successive answers to queries for them; the last one is repeated."""
    known: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *rest: Any, **options: Any) -> list[Any]:
        text = host.decode() if isinstance(host, bytes) else host
        if text not in known:
            return list(real(host, port, *rest, **options))
        answers = known[text]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (a, port, 0, 0)) if ":" in a
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port))
            for a in found
        ]  # fmt: skip

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where sockets were connected to; those of public addresses end on this machine, refused."""
    seen: list[Any] = []
    real = socket.socket.connect

    class Recorded(socket.socket):
        def connect(self, address: Any) -> None:
            seen.append(address[0])
            if ipaddress.ip_address(address[0].partition("%")[0]).is_global:
                raise ConnectionRefusedError(111, "no test leaves this machine")
            real(self, address)

    monkeypatch.setattr(socket, "socket", Recorded)
    return seen


def code_of(url: str, **options: Any) -> str:
    with pytest.raises(urlset.InputError) as error:
        urlset.verify(url, **options)
    return error.value.code


def test_rebinding_reaches_nothing(
    server: HostileServer, names: dict[str, list[list[str]]], connected: list[Any]
) -> None:
    """The name is public when it is checked; a second query would return a private address."""
    names["rebind.test"] = [["8.8.8.8"], ["127.0.0.1"]]
    assert code_of(f"http://rebind.test:{server.port}/sitemap.xml") in (
        "fetch.failed", "fetch.refused",
    )  # fmt: skip
    # connected to the checked address; the retry resolved and checked again, and was refused
    assert connected == ["8.8.8.8"]
    assert server.connections == 0 and server.asked == []


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_with_a_private_address(
    server: HostileServer, names: dict[str, list[list[str]]], connected: list[Any], address: str
) -> None:
    names["inside.test"] = [[address]]
    assert code_of(f"http://inside.test:{server.port}/sitemap.xml") == "fetch.refused"
    names["both.test"] = [["8.8.8.8", address]]
    assert code_of(f"http://both.test:{server.port}/sitemap.xml") == "fetch.refused"
    assert connected == [] and server.connections == 0


@pytest.mark.parametrize("address", PUBLIC)
def test_a_name_with_a_public_address(
    names: dict[str, list[list[str]]], connected: list[Any], address: str
) -> None:
    names["outside.test"] = [[address]]
    assert code_of("http://outside.test/sitemap.xml") == "fetch.failed"
    assert set(connected) == {address}


@pytest.mark.parametrize(
    "host",
    ["127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.1.",
     "localhost", "LOCALHOST.", "[::1]", "[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]",
     "[0:0:0:0:0:ffff:127.1]", "[::]", "0", "0.0.0.0", "[fe80::1%25lo]", "[fe80::1%lo]",
     "①②⑦.⓪.⓪.①", "127。0。0。1", "user@127.0.0.1", "8.8.8.8@127.0.0.1", "127.0.0.1\\@8.8.8.8"],
)  # fmt: skip
@pytest.mark.parametrize("proxy", [False, True])
def test_spellings_of_this_machine(
    server: HostileServer, host: str, proxy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the target, and as the target of a redirect; behind a proxy, too."""
    if proxy:
        if "\\" in host:
            pytest.skip("the host is 8.8.8.8 to both readers of URLs")
        monkeypatch.setenv("http_proxy", server.base)
        monkeypatch.delenv("no_proxy", raising=False)
    url = f"http://{host}:{server.port}/sitemap.xml"
    assert code_of(url) in ("fetch.refused", "fetch.failed")
    assert server.connections == 0


def test_a_redirect_to_a_private_address(
    server: HostileServer, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first hop is made public by the test; the second is really private."""
    from urlset.transport import address

    real = address.is_public
    monkeypatch.setattr(address, "is_public", lambda a: a == "127.0.0.2" or real(a))
    names["shop.test"] = [["127.0.0.2"]]
    names["inside.test"] = [["127.0.0.1"]]
    with_other_address = socket.create_server(("127.0.0.2", 0))
    port = with_other_address.getsockname()[1]

    def answer() -> None:
        for _ in range(2):
            peer, _ = with_other_address.accept()
            with peer:
                peer.recv(65_536)
                where = f"http://inside.test:{server.port}/sitemap.xml"
                peer.sendall(
                    f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode()
                )

    threading.Thread(target=answer, daemon=True).start()
    with with_other_address:
        assert code_of(f"http://shop.test:{port}/a.xml") == "fetch.refused"
        assert server.connections == 0
        # allowed, the same redirect is followed
        report = urlset.verify(f"http://shop.test:{port}/a.xml", allow_private=True)
    assert report.urls == 1 and server.asked == ["/sitemap.xml"]


def test_no_proxy_hosts_are_checked(
    server: HostileServer, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host in NO_PROXY is connected to directly, so its address is checked."""
    names["inside.test"] = [["127.0.0.1"]]
    monkeypatch.setenv("http_proxy", server.base)
    monkeypatch.setenv("no_proxy", "inside.test")
    assert code_of(f"http://inside.test:{server.port}/sitemap.xml") == "fetch.refused"
    assert server.connections == 0


def test_behind_a_proxy_the_proxy_resolves(
    server: HostileServer, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["shop.test"] = []  # a query for it on this machine would fail
    monkeypatch.setenv("http_proxy", server.base.removeprefix("http://"))
    monkeypatch.delenv("no_proxy", raising=False)
    server.pages["http://shop.test/sitemap.xml"] = urlset_of("http://shop.test", 4)
    assert urlset.verify("http://shop.test/sitemap.xml").urls == 4
    assert server.asked == ["http://shop.test/sitemap.xml"]


@pytest.mark.parametrize(
    "proxy",
    ["http://user:hunter2@[::g]", "gopher://user:hunter2@a", "://", "http://", "socks5://a"],
)
def test_a_proxy_that_is_none(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(urlset.ConfigError) as error:
        urlset.verify("http://shop.test/sitemap.xml")
    assert error.value.code == "network.proxy" and "hunter2" not in str(error.value)


def test_each_child_is_resolved_and_checked(
    server: HostileServer, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from urlset.transport import address

    # the index is served from 127.0.0.1, as if that were public; 127.0.0.3 is not
    real = address.is_public
    monkeypatch.setattr(address, "is_public", lambda a: a == "127.0.0.1" or real(a))
    names["shop.test"] = [["127.0.0.1"]]
    names["inside.test"] = [["127.0.0.3"]]
    base = f"http://shop.test:{server.port}"
    server.pages["/moved.xml"] = redirect(b"http://inside.test/")
    server.pages["/index.xml"] = index_of(
        f"{base}/sitemap.xml", f"http://inside.test:{server.port}/sitemap.xml",
        f"{base}/moved.xml", f"http://0x7f.3:{server.port}/sitemap.xml",
    )  # fmt: skip
    report = urlset.verify(f"{base}/index.xml")
    assert report.counts["fetch.refused"] == 3 and report.urls == 1
    assert server.asked == ["/index.xml", "/sitemap.xml", "/moved.xml"] or sorted(server.asked) == [
        "/index.xml",
        "/moved.xml",
        "/sitemap.xml",
    ]


# --- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for shop.test, with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.test")]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = tmp_path_factory.mktemp("tls") / "shop.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


class TlsServer:
    """Answers every request over TLS with one body; records the name that the client requested."""

    def __init__(self, certificate: Path, body: bytes) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.asked_names: list[str | None] = []
        self.heads: list[bytes] = []
        context.sni_callback = lambda _s, name, _c: self.asked_names.append(name)
        self._context, self._body = context, body
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        try:
            with self._context.wrap_socket(peer, server_side=True) as tls:
                while head := tls.recv(65_536):
                    self.heads.append(head)
                    tls.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self._body)
                        + self._body
                    )
        except OSError:
            return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_tls_keeps_the_name(
    certificate: Path, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["shop.test"] = names["other.test"] = [["127.0.0.1"]]
    big = urlset_of("https://shop.test", 20_000)  # many TLS records
    server = TlsServer(certificate, big)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    url = f"https://shop.test:{server.port}/sitemap.xml"
    report = urlset.verify(url, allow_private=True, duplicates=False)
    assert report.urls == 20_000 and report.bytes == len(big)
    assert server.asked_names == ["shop.test"]
    assert b"Host: shop.test:" in server.heads[0]
    # another name than the certificate's
    with pytest.raises(urlset.InputError, match="CERTIFICATE_VERIFY_FAILED"):
        urlset.verify(url.replace("shop.test", "other.test"), allow_private=True)
    # an unknown authority
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(urlset.InputError, match="CERTIFICATE_VERIFY_FAILED"):
        urlset.verify(url, allow_private=True)
    assert len(server.heads) == 1
    server.close()


def test_certificates_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(urlset.ConfigError) as error:
        urlset.verify("https://127.0.0.1:1/", allow_private=True)
    assert error.value.code == "network.certificates"

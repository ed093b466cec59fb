"""The HTTP client: httpx over connections with limits."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from .._core import __version__
from ..errors import ConfigError
from . import ExchangeError
from .address import check_literal
from .budget import current
from .stream import Backend


class Client(httpx.Client):
    """Sends requests with :meth:`exchange`, inside a budget, from any thread.

    Redirects are returned, not followed; cookies are ignored.

    Args:
        headers: of each request.
        timeout: seconds for one operation on a connection; ``None``: only the budget limits it.
        allow_private: also connect to addresses that are not public. Behind a proxy the proxy
            resolves names, and only hosts that are written as a number are checked.
        proxies: use those of the environment (``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``,
            ``NO_PROXY``).
        connections: number of connections at the same time.

    Raises:
        ConfigError: ``network.certificates``; while sending, ``network.proxy``.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        *,
        timeout: float | None,
        allow_private: bool,
        proxies: bool = True,
        connections: int = 16,
    ) -> None:
        super().__init__(
            headers={"User-Agent": f"urlset/{__version__}", **headers},
            timeout=timeout,
            transport=Transport(allow_private, proxies, connections),
            cookies=_NoCookies(),
        )

    @contextmanager
    def exchange(
        self,
        method: str,
        url: str | httpx.URL,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Iterator[httpx.Response]:
        """The answer, of which the body is read inside the block with ``iter_raw``.

        Raises:
            ExchangeError: also inside the block, when reading the body fails.
            ConfigError: ``network.proxy``.
        """
        try:
            request = self.build_request(method, url, headers=headers, content=content)
            response = self.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError) as error:
            raise ExchangeError(str(error) or type(error).__name__) from None
        try:
            yield response
        finally:
            response.close()


class _NoCookies(CookieJar):
    """Ignores cookies: they have no use here, and 50,000 answers could set any number."""

    def extract_cookies(self, response: object, request: object) -> None:
        return


class Transport(httpx.BaseTransport):
    """Passes requests of httpx to a pool of httpcore for each proxy, or to one without a proxy."""

    def __init__(self, allow_private: bool, proxies: bool, connections: int) -> None:
        self._allow_private = allow_private
        self._proxies = getproxies() if proxies else {}
        self._connections = connections
        self._lock = threading.Lock()
        self._pools: dict[str | None, httpcore.ConnectionPool] = {}
        try:
            self._context = httpx.create_ssl_context()
        except OSError as error:
            raise ConfigError(
                "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be loaded:"
                f" {error.strerror or error}",
                code="network.certificates",
            ) from None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        budget = current()
        budget.begin()
        proxy = self._proxy(request.url)
        if proxy is not None and not self._allow_private:
            check_literal(request.url.host)
        assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101 - for the checker
        with _exchange_errors():
            answer = self._pool(proxy).handle_request(
                httpcore.Request(
                    method=request.method,
                    url=_core_url(request.url),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        budget.headers_complete()
        assert isinstance(answer.stream, Iterable)  # noqa: S101 - for the checker
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _proxy(self, url: httpx.URL) -> str | None:
        address = self._proxies.get(url.scheme) or self._proxies.get("all")
        if not address or proxy_bypass(url.netloc.decode("ascii")):
            return None
        return address if "://" in address else f"http://{address}"

    def _pool(self, proxy: str | None) -> httpcore.ConnectionPool:
        with self._lock:
            if proxy not in self._pools:
                self._pools[proxy] = self._new_pool(proxy)
            return self._pools[proxy]

    def _new_pool(self, proxy: str | None) -> httpcore.ConnectionPool:
        if proxy is None:
            return httpcore.ConnectionPool(
                ssl_context=self._context,
                max_connections=self._connections,
                network_backend=Backend(self._allow_private),
            )
        # the messages do not repeat the proxy's address: it can contain a password
        try:
            given = httpx.Proxy(proxy)
            if not given.url.host:
                raise ValueError
            is_socks = given.url.scheme.startswith("socks5")
            return (httpcore.SOCKSProxy if is_socks else httpcore.HTTPProxy)(
                _core_url(given.url),
                proxy_auth=given.raw_auth,
                ssl_context=self._context,
                max_connections=self._connections,
                network_backend=Backend(allow_private=True),  # the user chooses the proxy
            )
        except (RuntimeError, ImportError):
            raise ConfigError(
                "the environment names a SOCKS proxy: pip install 'httpx[socks]' to use it",
                code="network.proxy",
            ) from None
        except (httpx.InvalidURL, ValueError, TypeError):
            raise ConfigError(
                "the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not an address of the form"
                " http://host:port, https://host:port or socks5://host:port",
                code="network.proxy",
            ) from None


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _exchange_errors():
            yield from self._stream

    def close(self) -> None:
        if hasattr(self._stream, "close"):
            self._stream.close()


def _core_url(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


@contextmanager
def _exchange_errors() -> Iterator[None]:
    """Turns the exceptions of httpcore itself into those of this package."""
    try:
        yield
    except httpcore.ProxyError as error:
        raise ExchangeError(f"the proxy refuses to connect: {error}") from None
    except (httpcore.UnsupportedProtocol, httpcore.LocalProtocolError) as error:
        raise ExchangeError(str(error)) from None
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        text = str(error) or type(error).__name__
        raise ExchangeError(f"no valid answer: {text}", retry=True) from None

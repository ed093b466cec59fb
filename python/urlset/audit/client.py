"""Fetching pages with aiohttp: one exchange with limits of time, bytes and addresses."""

from __future__ import annotations

import asyncio
import socket
import zlib
from typing import Any, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from multidict import CIMultiDict
from yarl import URL

from .. import _core
from ..transport import ExchangeError, PrivateAddressError
from ..transport.address import check_literal, is_public, resolve
from ..wording import one_line
from .page import HTML

USER_AGENT = f"urlset/{_core.__version__} (+https://pypi.org/project/urlset/)"
#: bytes of a document that are read, before and after decompression: a canonical is in the head
MAX_BODY = 1 << 20
#: characters of the reason of a failure
MAX_DETAIL = 160
#: bytes of the body of a redirect or an error that are read
MAX_DRAINED = 64 << 10
#: seconds for the resolver, which has no timeout
RESOLVE_SECONDS = 10.0
#: seconds that an address is used before its name is resolved again
DNS_SECONDS = 300
#: window bits of zlib: a gzip or zlib header is detected
_DETECT = 32 + zlib.MAX_WBITS
_NONE: CIMultiDict[str] = CIMultiDict()


class Answer(NamedTuple):
    """One exchange.

    Attributes:
        status: None without an answer.
        headers: of the answer.
        body: decoded, up to :data:`MAX_BODY` bytes; None if it is not HTML or text.
        failure: a key of :data:`.report.CODES` for an exchange that failed.
        detail: why it failed.
        again: a second attempt can succeed.
    """

    status: int | None
    headers: Any = _NONE
    body: bytes | None = None
    failure: str | None = None
    detail: str | None = None
    again: bool = False


class _PublicResolver(AbstractResolver):
    """Resolves a name once; the connector connects to exactly the addresses that were checked."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(None, resolve, host, port, RESOLVE_SECONDS)
        except ExchangeError as error:
            raise OSError(str(error)) from None
        if not self._allow_private and not all(is_public(info[4][0]) for info in found):
            raise OSError(str(PrivateAddressError()))
        return [
            ResolveResult(
                hostname=host, host=info[4][0], port=port, family=info[0], proto=info[2],
                flags=socket.AI_NUMERICHOST,
            )
            for info in found
        ]  # fmt: skip

    async def close(self) -> None:
        return None


class Client:
    """Sends requests. To be used in one event loop.

    Args:
        connections: at the same time.
        seconds: for one exchange.
        allow_private: also connect to addresses that are not public.
    """

    def __init__(self, connections: int, seconds: float, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._seconds, self._timeout = seconds, aiohttp.ClientTimeout(total=seconds)
        self.requests = 0
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections,
                resolver=_PublicResolver(allow_private),
                ttl_dns_cache=DNS_SECONDS,
            ),
            # neither cookies nor .netrc nor proxies of the environment
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": USER_AGENT,
                "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
                "Accept-Encoding": "gzip, deflate",
            },
            # decoded here with a limit
            auto_decompress=False,
        )

    async def close(self) -> None:
        await self._session.close()

    async def get(
        self, url: str, *, any_type: bool = False, seconds: float | None = None
    ) -> Answer:
        """One exchange; redirects are returned, not followed.

        Args:
            seconds: less than for other exchanges.
            any_type: the body is read whatever its type is.
        """
        self.requests += 1
        try:
            parts = URL(url, encoded=True)
            if not self._allow_private:
                check_literal(parts.host or "")
            timeout = self._timeout if seconds is None else aiohttp.ClientTimeout(total=seconds)
            async with self._session.get(parts, allow_redirects=False, timeout=timeout) as response:
                headers, status = response.headers, response.status
                if not 200 <= status < 300:
                    await _drain(response)
                    return Answer(status, headers)
                # a body without a type is read as HTML
                if not any_type and "Content-Type" in headers and response.content_type not in HTML:
                    response.close()  # a video, maybe
                    return Answer(status, headers)
                return await self._body(response)
        except PrivateAddressError as error:
            return Answer(None, failure="private", detail=str(error))
        except TimeoutError:
            detail = f"no complete answer within {self._seconds:g} s"
            return Answer(None, failure="timeout", detail=detail)
        except aiohttp.ClientError as error:
            return _failure(error)
        except (ValueError, zlib.error) as error:  # also of yarl
            return Answer(None, failure="unreadable", detail=_line(error))

    async def _body(self, response: aiohttp.ClientResponse) -> Answer:
        """The answer with its body."""
        headers, status = response.headers, response.status
        coding = headers.get("Content-Encoding", "").strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            response.close()
            detail = f"Content-Encoding {coding[:100]!r} was not asked for"
            return Answer(status, headers, None, "unreadable", one_line(detail))
        parts, size = [], 0
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            if size >= MAX_BODY:
                response.close()
                break
        body = b"".join(parts)[:MAX_BODY]
        if coding in ("", "identity"):
            return Answer(status, headers, body)
        try:
            return Answer(status, headers, _inflated(body, size >= MAX_BODY))
        except zlib.error as error:
            detail = f"Content-Encoding {coding}: {_line(error)}"
            return Answer(status, headers, None, "unreadable", detail)


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Reads a short body that is not needed, so that the connection can be used again."""
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_DRAINED:
            response.close()
            return


def _inflated(data: bytes, cut: bool) -> bytes:
    """The first bytes of compressed data.

    Args:
        cut: the end is missing, which is then no error.

    Raises:
        zlib.error: the data is damaged.
    """
    inflate = zlib.decompressobj(_DETECT)
    try:
        body = inflate.decompress(data, MAX_BODY)
    except zlib.error:
        # deflate without a zlib header, as many servers send it
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        body = inflate.decompress(data, MAX_BODY)
    if not (cut or inflate.eof or len(body) >= MAX_BODY):
        raise zlib.error("the data ends early")
    return body


def _failure(error: aiohttp.ClientError) -> Answer:
    """The answer for an exchange that broke."""
    detail = _line(error)
    if isinstance(error, aiohttp.ClientConnectorError):
        if str(error.os_error) == str(PrivateAddressError()):
            return Answer(None, failure="private", detail=str(error.os_error))
        detail = one_line(error.os_error.strerror or str(error.os_error))[:MAX_DETAIL]
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            detail = f"TLS: {detail}"
        return Answer(None, failure="unreachable", detail=detail, again=True)
    if isinstance(error, aiohttp.InvalidURL):
        return Answer(None, failure="malformed", detail=detail)
    if isinstance(error, aiohttp.ClientResponseError):
        detail = _line(ValueError(error.message))
    if isinstance(error, (aiohttp.ClientResponseError, aiohttp.ClientPayloadError)):
        return Answer(None, failure="unreadable", detail=detail, again=True)
    return Answer(None, failure="unreachable", detail=detail, again=True)


def _line(error: Exception) -> str:
    return one_line(str(error).strip().partition("\n")[0] or type(error).__name__)[:MAX_DETAIL]

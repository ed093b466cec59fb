"""Inputs by URI: http(s) by httpx, object stores by obstore, others by pyarrow and fsspec."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...errors import ConfigError, InputError
from ...interruptible import CallTimeout, interruptible
from ...options import Options
from ...outfile import is_store
from .input import Input, as_input_error
from .names import by_ending
from .pipe import stream_input
from .scan import dataset_input
from .secret import hide, secrets_of, shown
from .stream import Stream

if TYPE_CHECKING:
    import httpx
    from _typeshed import WriteableBuffer

#: seconds to connect to an HTTP server, and between two parts of its response
CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
#: seconds until an object store must respond
OPEN_SECONDS = 30.0

#: the package for a scheme, besides fsspec
PACKAGES = {
    "hf": "huggingface_hub", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "gdrive":
    "gdrive_fsspec", "sftp": "paramiko", "ssh": "paramiko", "smb": "smbprotocol", "oss": "ossfs",
    "oci": "ocifs", "dropbox": "dropboxdrivefs", "github": "requests", "webdav": "webdav4",
    "s3a": "s3fs", "box": "boxfs", "lakefs": "lakefs-spec", "wandb": "wandbfs",
}  # fmt: skip


def uri_inputs(
    uri: str, options: Options, local: Callable[[str, Options], Iterable[Input]]
) -> Iterable[Input]:
    """The inputs at a URI.

    Args:
        local: returns the inputs at a path.

    Raises:
        InputError: ``input.missing``, ``input.unreachable``, ``input.damaged``.
        ConfigError: ``config.uri``: the scheme is not supported.
    """
    try:
        scheme = urlsplit(uri).scheme.lower()
    except ValueError as error:  # brackets that are not an IPv6 address
        raise ConfigError(f"{shown(uri)}: is not a URI: {error}", code="config.uri") from None
    if scheme in ("http", "https"):
        return [_http_input(uri, options)]

    def by_filesystem() -> Iterable[Input]:
        return _filesystem_inputs(uri, options, local)

    # an address with credentials or options is one of pyarrow
    if is_store(uri) and not set("@?") & set(uri) and (scheme == "az" or _has_obstore()):
        from .store import store_inputs

        return store_inputs(uri, options, by_filesystem)
    return by_filesystem()


def _has_obstore() -> bool:
    """Whether obstore is installed; without it pyarrow reads S3 and Google Cloud Storage."""
    return importlib.util.find_spec("obstore") is not None


def _unreachable(name: str, why: str) -> InputError:
    return InputError(f"{name}: cannot be reached: {why}", code="input.unreachable", input=name)


class _ResponseBody(io.RawIOBase):
    """The body of a response, still compressed, so that a truncated file is detected."""

    def __init__(self, client: httpx.Client, response: httpx.Response, name: str) -> None:
        self._client, self._response, self._name = client, response, name
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        plain = coding in ("identity", "gzip", "x-gzip", "zstd", "")
        self._parts: Iterator[bytes] = response.iter_raw() if plain else response.iter_bytes()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        import httpx

        view = memoryview(buffer).cast("B")
        try:
            while not self._rest:
                self._rest = next(self._parts)
        except StopIteration:
            return 0
        except httpx.TimeoutException:
            raise _unreachable(
                self._name, f"the server sent nothing for {READ_SECONDS:.0f} s"
            ) from None
        except httpx.HTTPError as error:
            raise InputError(
                f"{self._name}: the connection ended before all data was received ({error});"
                " try again",
                code="input.damaged",
                input=self._name,
            ) from None
        data, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._response.close()
            self._client.close()
        super().close()


def _http_input(uri: str, options: Options) -> Input:
    """A file of an HTTP server; Parquet goes to a temporary file first."""
    name = shown(uri)
    body = interruptible(lambda: _get(uri, name))
    # the name before a redirection is more useful than a key in a store
    path = urlsplit(uri).path
    if by_ending(path) is None:
        path = body.path
    stream = Stream(body)
    return interruptible(
        lambda: stream_input(stream, name, options, path=path, hide=lambda text: hide(text, uri))
    )


class _RedirectedBody(_ResponseBody):
    """A body, and its path after redirections."""

    path = ""


def _get(uri: str, name: str) -> _RedirectedBody:
    import httpx

    from ... import _core
    from ...transport.keyring import Keyring

    place = f"{urlsplit(uri).hostname}"
    client = httpx.Client(
        follow_redirects=True,
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        headers={"User-Agent": f"urlset/{_core.__version__}", "Accept-Encoding": "identity"},
    )
    keyring = Keyring()
    for secret in secrets_of(uri):
        keyring.add(secret)
    try:
        with keyring:  # httpx writes addresses to its log
            response = client.send(client.build_request("GET", uri), stream=True)
    except httpx.ConnectTimeout:
        client.close()
        raise _unreachable(
            name, f"{place} accepted no connection within {CONNECT_SECONDS:.0f} s"
        ) from None
    except httpx.TimeoutException:
        client.close()
        raise _unreachable(name, f"{place} sent no response within {READ_SECONDS:.0f} s") from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        client.close()
        raise ConfigError(f"{name}: {hide(str(error), uri)}", code="config.uri") from None
    except httpx.HTTPError as error:
        client.close()
        raise _unreachable(name, f"GET from {place}: {hide(str(error), uri)}") from None
    except BaseException:
        client.close()
        raise
    status = response.status_code
    if status == 200:
        body = _RedirectedBody(client, response, name)
        body.path = response.url.path
        return body
    response.close()
    client.close()
    reason = f"HTTP {status} {response.reason_phrase}".rstrip()
    if status in (404, 410):
        raise InputError(f"{name}: the server has no such file ({reason})", code="input.missing",
                         input=name)  # fmt: skip
    raise _unreachable(name, f"{place} responded {reason}")


def _filesystem_inputs(
    uri: str, options: Options, local: Callable[[str, Options], Iterable[Input]]
) -> Iterable[Input]:
    """The inputs at a URI that pyarrow or fsspec opens."""
    from pyarrow import fs

    name = shown(uri)

    def hidden(text: str) -> str:
        return hide(text, uri)

    filesystem, path, info = _contact(uri, name)
    if isinstance(filesystem, fs.LocalFileSystem):
        return local(path, options)
    if info.type == fs.FileType.NotFound:
        raise InputError(f"{name}: there is no such file", code="input.missing", input=name)
    format = options.format or by_ending(urlsplit(uri).path)
    if info.type == fs.FileType.Directory and format is None:
        format = "parquet"
    if format == "parquet":
        return [interruptible(lambda: dataset_input(path, name, options, filesystem, hidden))]
    if info.type == fs.FileType.Directory:
        raise InputError(
            f"{name}: is a folder; pass its files, or --format parquet for a dataset",
            code="input.format",
            input=name,
        )

    def opened() -> Input:
        with as_input_error(name, hidden, remote=True):
            stream = Stream(filesystem.open_input_stream(path, compression=None))
            stream.peek(16)
        if options.format is None and stream.peek(16).startswith(b"PAR1"):
            stream.close()
            return dataset_input(path, name, options, filesystem, hidden)
        return stream_input(stream, name, options, path=urlsplit(uri).path, hide=hidden)

    return [interruptible(opened)]


def _contact(uri: str, name: str) -> tuple[Any, str, Any]:
    """The filesystem of a URI, the path in it, and its information about the path."""

    def ask() -> tuple[Any, str, Any]:
        filesystem, path = _filesystem(uri, name)
        return filesystem, path, filesystem.get_file_info(path)

    try:
        return interruptible(ask, OPEN_SECONDS)
    except CallTimeout:
        raise _unreachable(
            name, f"no response within {OPEN_SECONDS:.0f} s; check the network and the"
            " credentials"
        ) from None  # fmt: skip
    except (ConfigError, InputError):
        raise
    except FileNotFoundError:
        raise InputError(
            f"{name}: there is no such file", code="input.missing", input=name
        ) from None
    except Exception as error:  # noqa: BLE001 - any exception of a filesystem
        lines = hide(str(error), uri).strip().splitlines()
        raise _unreachable(name, lines[0] if lines else type(error).__name__) from None


def _filesystem(uri: str, name: str) -> tuple[Any, str]:
    """The filesystem of pyarrow, or of fsspec if pyarrow does not know the scheme."""
    from pyarrow import ArrowInvalid, fs

    scheme = urlsplit(uri).scheme.lower()
    if scheme in ("gs", "gcs") and "retry_limit_seconds" not in uri:
        # without a limit the client retries for 15 minutes
        sign = "&" if "?" in uri else "?"
        uri = f"{uri}{sign}retry_limit_seconds={OPEN_SECONDS:.0f}"
    if scheme != "hf":
        try:
            found: tuple[Any, str] = fs.FileSystem.from_uri(uri)
            return found
        except ArrowInvalid as error:
            if "Unrecognized filesystem" not in str(error):
                raise ConfigError(f"{name}: {hide(str(error), uri)}", code="config.uri") from None
    packages = ["'urlset[fsspec]'", *([PACKAGES[scheme]] if scheme in PACKAGES else [])]
    needed = f"pip install {' '.join(packages)}"
    try:
        import fsspec

        opener, path = fsspec.core.url_to_fs(uri)
    except ImportError as error:
        why = "fsspec is not installed" if error.name == "fsspec" else hide(str(error), uri)
        raise ConfigError(
            f"{name}: {scheme}:// needs a package that is not installed ({why}): {needed}",
            code="config.uri",
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"{name}: {hide(str(error), uri)}; write a path, or a URI such as s3://, gs://,"
            " https:// or another scheme of fsspec",
            code="config.uri",
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(opener)), path

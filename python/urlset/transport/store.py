"""Object stores: S3, Google Cloud Storage and Azure, by their addresses, through obstore.

A :class:`Location` is a bucket and a prefix in it. All keys are relative to the prefix. Its methods
can be called from any thread; in the main thread a signal ends the wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import ConfigError, Error, InputError
from ..interruptible import interruptible
from ..outfile import STORE_SCHEMES, is_store
from .store_errors import NotFoundError, StoreFailure, VersionError, failure_of

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

__all__ = [
    "Location", "NotFoundError", "Object", "StoreFailure", "Stored", "VersionError", "address_of",
    "is_store", "open_store", "stored_of",
]  # fmt: skip

INSTALL = "pip install 'urlset[cloud]'"
#: seconds to connect, and without any progress (the environment variable URLSET_STORE_TIMEOUT)
CONNECT_SECONDS, STALL_SECONDS = 10.0, 30.0
#: seconds for one request with its body: a shard over a slow line
REQUEST_SECONDS = 300.0
#: further attempts after a refused connection, a reset, a timeout, 429 or 5xx, and seconds for them
MAX_RETRIES, RETRY_SECONDS = 4, 60.0
#: objects of a listing that are requested at once: the limit of the providers
LIST_CHUNK = 1_000

#: the variables of a provider with the address of its endpoint
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL", "GOOGLE_STORAGE_BASE_URL"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_ALLOW_HTTP = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}
_TRUE = ("1", "true", "yes", "on")
#: with one of these set, obstore finds credentials without a profile
_AWS_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_SKIP_SIGNATURE",
)  # fmt: skip

#: the processes that have sent requests: this one, and those that it is a fork of
_used_by: set[int] = set()

T = TypeVar("T")
#: the code of an error, or the code by the kind of the failure
Codes = str | Callable[[str], str] | None


class Address(NamedTuple):
    """The parts of ``s3://bucket/key``; the key has no slash at its ends."""

    scheme: str
    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.key}".rstrip("/")


class Stored(NamedTuple):
    """An object without its content: key, size in bytes, version (ETag, for Google generation)."""

    key: str
    size: int
    version: Any
    modified: Any


class Object(NamedTuple):
    """The content of an object, what identifies this version of it, and its headers."""

    data: bytes
    version: Any
    attributes: Mapping[str, str]


def address_of(url: str) -> Address:
    """The parts of an address.

    Raises:
        ConfigError: ``config.store``: no bucket, or something else than a bucket and a key.
    """
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    scheme = STORE_SCHEMES[scheme.lower()]
    if "@" in bucket or "?" in rest:
        raise ConfigError(
            f"{scheme}://...: an address has no credentials and no options; set the environment"
            " variables of the provider (docs/destinations.md)",
            code="config.store",
        )
    if not bucket:
        raise ConfigError(
            f"{url}: has no bucket; write {scheme}://bucket/prefix", code="config.store"
        )
    parts = [part for part in key.split("/") if part]
    if any(part in (".", "..") for part in parts) or not key.isprintable():
        raise ConfigError(
            f"{url!r}: a key has no . or .. and no control characters", code="config.store"
        )
    return Address(scheme, bucket, "/".join(parts))


def endpoint_of(scheme: str) -> str | None:
    """The endpoint that the environment names; None for that of the provider."""
    for name in _ENDPOINTS[scheme]:
        if os.environ.get(name):
            return os.environ[name]
    return None


def open_store(target: Any, *, error: type[Error] = InputError, code: Codes = None) -> Location:
    """The location of an address or of a store object of obstore. Sends no request.

    Args:
        error: what the methods of the location raise if a request fails.
        code: its code, also as a function of the kind of the failure; by default ``store.`` and
            the kind.

    Raises:
        ConfigError: ``config.store``: the address; ``config.package``: obstore is not installed.
    """
    try:
        import obstore
    except ImportError:
        raise ConfigError(
            f"{target if isinstance(target, str) else 'the store'}: object stores need obstore:"
            f" {INSTALL}",
            code="config.package",
        ) from None
    del obstore
    if not isinstance(target, str):
        return Location(target, _address_of_object(target), error, code)
    address = address_of(target)
    try:
        return Location(_build(address), address, error, code)
    except ConfigError:
        raise
    except Exception as reason:  # noqa: BLE001 - obstore raises exceptions of several kinds
        failure = failure_of(reason, address, "open", endpoint_of(address.scheme))
        raise ConfigError(f"{address}: {failure}", code="config.store") from None


def _address_of_object(store: Any) -> Address:
    config = getattr(store, "config", None) or {}
    kinds = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}
    scheme = kinds.get(type(store).__name__, type(store).__name__.removesuffix("Store").lower())
    bucket = config.get("bucket") or config.get("container_name") or ""
    return Address(scheme, str(bucket), str(getattr(store, "prefix", None) or "").strip("/"))


def _build(address: Address) -> Any:
    from obstore import store

    options: dict[str, Any] = {
        "prefix": address.key or None,
        "client_options": client_options(address.scheme),
        "retry_config": retry_config(),
    }
    if address.scheme == "gs":
        if (endpoint := endpoint_of("gs")) is not None:
            options["base_url"] = endpoint
        return store.GCSStore(address.bucket, **options)
    if address.scheme == "az":
        return store.AzureStore(address.bucket, **options)
    if (endpoint := endpoint_of("s3")) is not None:
        options["endpoint"] = endpoint
    provider = _profile()
    if provider is not None:
        options["credential_provider"] = provider
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        options["region"] = region
    return store.S3Store(address.bucket, **options)


def client_options(scheme: str) -> ClientConfig:
    """Timeouts, and plain http only where the environment asks for it."""
    stall = STALL_SECONDS
    if text := os.environ.get("URLSET_STORE_TIMEOUT"):
        try:
            stall = float(text)
            if not 0 < stall <= 3_600:
                raise ValueError
        except ValueError:
            raise ConfigError(
                f"URLSET_STORE_TIMEOUT: {text!r} is not a number of seconds from 0 to 3600",
                code="config.store",
            ) from None
    allowed = os.environ.get(_ALLOW_HTTP[scheme], "").lower() in _TRUE
    emulator = scheme == "az" and os.environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower() in _TRUE
    plain = (endpoint_of(scheme) or "").startswith("http://")
    return {
        "connect_timeout": timedelta(seconds=min(stall, CONNECT_SECONDS)),
        "read_timeout": timedelta(seconds=stall),
        "timeout": timedelta(seconds=max(REQUEST_SECONDS, stall)),
        "allow_http": allowed or plain or emulator,
        "user_agent": "urlset",
    }


def retry_config() -> RetryConfig:
    """Bounded attempts: the providers answer 500 and 503 under load."""
    return {"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)}


def _profile() -> Any:
    """The credentials of a profile, if the environment has none of its own; None without boto3."""
    named = os.environ.get("AWS_PROFILE")
    if not named and any(os.environ.get(name) for name in _AWS_CREDENTIALS):
        return None
    try:
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        if named:
            raise ConfigError(
                "AWS_PROFILE is set, and profiles need boto3: pip install boto3",
                code="config.package",
            ) from None
        return None
    try:
        return Boto3CredentialProvider()
    except BotoCoreError as error:
        raise ConfigError(f"AWS_PROFILE: {error}", code="config.store") from None
    except ValueError:  # no credentials; obstore asks the service of the machine
        return None


class Location:
    """A prefix in a bucket.

    Attributes:
        store: the store object of obstore; its prefix is the prefix of the location.
        address: for messages and reports, without secrets.
    """

    def __init__(
        self, store: Any, address: Address, error: type[Error] = InputError, code: Codes = None
    ) -> None:
        self.store = store
        self.address = address
        self._error = error
        self._code = code

    def __str__(self) -> str:
        return str(self.address)

    def url(self, key: str) -> str:
        """The address of an object."""
        return f"{self.address}/{key}" if key else str(self.address)

    def get(self, key: str) -> Object | None:
        """A small object; None if there is none."""

        def get() -> Object:
            found = self.store.get(key)
            data = bytes(found.bytes())
            return Object(data, _version(found.meta), dict(found.attributes))

        try:
            found = self.call(get, "read", key)
        except NotFoundError:
            return None
        if self.address.scheme == "s3" and found.version["e_tag"] is None:
            failure = StoreFailure.not_a_store(self.address, endpoint_of("s3"))
            raise self.error(key, failure.kind, failure.reason)
        return found

    def head(self, key: str) -> Stored | None:
        """What is known of an object; None if there is none."""
        try:
            return stored_of(self.call(lambda: self.store.head(key), "read", key))
        except NotFoundError:
            return None
        except Error:  # a response to HEAD has no body: that to GET contains the reason
            self.get_range(key, 0, 1)
            raise

    def get_range(self, key: str, start: int, length: int, version: Any = None) -> Any:
        """A part of an object, as a buffer.

        Raises:
            NotFoundError: there is no such object.
            VersionError: it is no longer ``version``.
        """
        options: dict[str, Any] = {"range": (start, start + length)}
        if version and version.get("e_tag"):
            options["if_match"] = version["e_tag"]
        return self.call(
            lambda: self.store.get(key, options=options).bytes(), "read", key,
            conditional="if_match" in options,
        )  # fmt: skip

    def put(
        self,
        key: str,
        data: Any,
        *,
        only: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Writes an object in one request; returns its version.

        Args:
            data: bytes, or a binary file.
            only: ``create`` to write only if there is no such object; a version to replace only
                that one; None to replace any.
            headers: the names of obstore's attributes, ``Content-Type`` and others.

        Raises:
            VersionError: it exists, or it is another version, or the store asks to try again.
        """
        options: dict[str, Any] = {"attributes": dict(headers or {}), "use_multipart": False}
        if isinstance(only, dict):  # obstore takes no None for what the store does not have
            only = {name: value for name, value in only.items() if value is not None}
        if only is not None:
            options["mode"] = only
        is_version = isinstance(only, dict)
        try:
            done = self.call(
                lambda: self.store.put(key, data, **options), "write", key, conditional=bool(only)
            )
        except NotFoundError:
            if is_version:
                raise VersionError(404) from None
            raise self.error(key, "failed", "the store responded HTTP 404") from None
        return {"e_tag": done["e_tag"], "version": done["version"]}

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """The objects below a prefix, which ends at a slash; in any order."""
        for page in self.pages(prefix):
            yield from page

    def pages(self, prefix: str = "", after: str | None = None) -> Iterator[Sequence[Stored]]:
        """The objects below a prefix, behind the name ``after``, as the store lists them."""
        stream = self.store.list(prefix or None, offset=after, chunk_size=LIST_CHUNK)
        while (chunk := self.call(lambda: next(stream, None), "list", prefix)) is not None:
            yield [stored_of(one) for one in chunk]

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes objects; those that do not exist are no error."""
        keys = list(keys)
        if not keys:
            return
        with suppress(NotFoundError):  # then the others were perhaps not deleted
            self.call(lambda: self.store.delete(keys), "delete", keys[0])
            return
        for key in keys if len(keys) > 1 else ():
            with suppress(NotFoundError):
                self.call(lambda key=key: self.store.delete(key), "delete", key)  # type: ignore[misc]

    def call(
        self, request: Callable[[], T], action: str, key: str = "", *, conditional: bool = False
    ) -> T:
        """The result of a request; a signal ends the wait.

        Args:
            action: ``read``, ``write``, ``list`` or ``delete``, for the message.
            conditional: the request has a condition.

        Raises:
            NotFoundError: there is no such object.
            VersionError: the condition does not hold.
            ConfigError: ``store.forked``: a fork has no threads of obstore: a request would wait
                for ever.
            Error: the class and the code of this location: one line with cause and remedy.
        """
        _used_by.add(os.getpid())
        if len(_used_by) > 1:
            raise ConfigError(
                f"{self.url(key)}: this process is a fork of one that has used a store; start"
                " processes with multiprocessing.get_context('spawn')",
                code="store.forked",
            )
        try:
            if threading.current_thread() is threading.main_thread():
                return interruptible(request)
            return request()
        except Error:
            raise
        except Exception as error:  # noqa: BLE001 - obstore raises exceptions of several kinds
            endpoint = endpoint_of(self.address.scheme) if self.address.scheme in _ENDPOINTS else ""
            failure = failure_of(error, self.address, action, endpoint)
            if isinstance(failure, VersionError) and not conditional:
                why = f"the store refused (HTTP {failure.status}), though there is no condition"
                failure = StoreFailure("busy", f"{why}; try again", failure.status)
            elif isinstance(failure, NotFoundError) and action == "list":
                failure = StoreFailure("failed", "the store responded HTTP 404", 404)
            if isinstance(failure, StoreFailure):
                raise self.error(key, failure.kind, failure.reason) from None
            raise failure from None

    def error(self, key: str, kind: str, message: str) -> Error:
        """The exception for a failure with an object.

        Args:
            kind: of the failure; as :class:`StoreFailure`, or another.
        """
        code = self._code(kind) if callable(self._code) else self._code
        return self._error(f"{self.url(key)}: {message}", code=code or f"store.{kind}")


def _version(meta: Any) -> dict[str, Any]:
    return {"e_tag": meta.get("e_tag"), "version": meta.get("version")}


def stored_of(meta: Any) -> Stored:
    """What obstore knows of an object."""
    return Stored(meta["path"], meta["size"], _version(meta), meta["last_modified"])

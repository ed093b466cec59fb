"""What a failed request of an object store means, in one line with its remedy.

obstore describes a failure as text: a first paragraph with the status and the body of the response,
then the error values of Rust. Only the status, the code and the kind are used: a body may repeat
parts of the credentials.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>\s*([A-Za-z0-9_.]{1,60})\s*</Code>|\"code\":\s*\"(\w{1,60})\"")
_KIND = re.compile(r"kind: (Timeout|Connect|Request|Decode|Interrupted|Unknown)\b")
_REGION = re.compile(r"(?:expecting '|<Region>|bucket-region\W+)([a-z]{2}(?:-[a-z0-9]+)+)")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)

_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with boto3 installed",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
    "az": "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
}
_ENDPOINT = {"s3": "AWS_ENDPOINT_URL", "gs": "GOOGLE_BASE_URL", "az": "AZURE_STORAGE_ENDPOINT"}
_SERVICE = {"s3": "S3", "gs": "Google Cloud Storage", "az": "Azure Blob Storage"}
_PERMISSION = {
    ("s3", "read"): "s3:GetObject and s3:ListBucket", ("s3", "write"): "s3:PutObject",
    ("s3", "list"): "s3:ListBucket", ("s3", "delete"): "s3:DeleteObject",
    ("gs", "read"): "storage.objects.get", ("gs", "write"):
    "storage.objects.create and storage.objects.delete", ("gs", "list"): "storage.objects.list",
    ("gs", "delete"): "storage.objects.delete",
}  # fmt: skip
#: codes of the providers for credentials that are known and not valid
_INVALID = {
    "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken",
    "AuthenticationFailed", "RequestTimeTooSkewed", "InvalidSecurity", "AuthorizationFailure",
    "XAdminUserNotFound",
}  # fmt: skip
_WRONG_REGION = {
    "PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect",
    "IllegalLocationConstraintException",
}  # fmt: skip


class NotFoundError(Exception):
    """There is no such object; the bucket may exist."""


class VersionError(Exception):
    """The condition of a request does not hold: the object exists, or is another version.

    Attributes:
        status: 412, or 409 if another request for the same key is under way, or 304.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status


class StoreFailure(Exception):
    """A request failed.

    Attributes:
        kind: ``bucket``, ``permission``, ``credentials``, ``region``, ``endpoint``, ``timeout``,
            ``unreachable``, ``busy``, ``unsupported``, ``key`` or ``failed``.
        reason: one line with the remedy.
        status: of the response, if there was one.
    """

    def __init__(self, kind: str, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.status = status

    @classmethod
    def not_a_store(cls, address: Any, endpoint: str | None) -> StoreFailure:
        """The response is not one of such a service."""
        service, variable = _SERVICE[address.scheme], _ENDPOINT[address.scheme]
        return cls(
            "endpoint",
            f"{_host(endpoint)} does not respond as {service} does; correct {variable}",
        )


def failure_of(
    error: Exception, address: Any, action: str, endpoint: str | None
) -> NotFoundError | VersionError | StoreFailure:
    """The meaning of an exception of obstore.

    Args:
        action: ``read``, ``write``, ``list`` or ``delete``.
        endpoint: that of the environment; None for that of the provider.
    """
    name, text = type(error).__name__, str(error)
    scheme = address.scheme
    status = int(found[1]) if (found := _STATUS.search(text)) else None
    code = (found[1] or found[2]) if (found := _CODE.search(text)) else None
    what = f"HTTP {status}{f' {code}' if code else ''}"
    variable = _ENDPOINT.get(scheme, "the endpoint")
    credentials = _CREDENTIALS.get(scheme, "its credentials")

    if scheme not in _SERVICE:  # a store object in memory, or of a folder
        if isinstance(error, FileNotFoundError):
            return NotFoundError()
        if name in ("AlreadyExistsError", "PreconditionError"):
            return VersionError(412)
        return StoreFailure("failed", _first_line(text), status)
    if "169.254.169.254" in text or "metadata.google.internal" in text:
        return StoreFailure("credentials", f"no credentials were found; set {credentials}")
    if status in (404, 400) and _NO_BUCKET.search(text):
        return StoreFailure(
            "bucket", f"there is no bucket {address.bucket!r} ({what}); create it, or correct its"
            " name", status,
        )  # fmt: skip
    if code in _WRONG_REGION or "redirect without LOCATION" in text or status in (301, 307):
        region = f" to {found[1]}" if (found := _REGION.search(text)) else " to that of the bucket"
        return StoreFailure("region", f"wrong region ({code or what}); set AWS_REGION{region}",
                            status)  # fmt: skip
    if status == 401 or code in _INVALID or name == "UnauthenticatedError":
        why = code or what
        return StoreFailure("credentials", f"the credentials are not valid ({why}); check"
                            f" {credentials}", status)  # fmt: skip
    if isinstance(error, FileNotFoundError):
        if scheme == "s3" and not code and not _has_no_body(text):  # a page of another server
            return StoreFailure.not_a_store(address, endpoint)
        if action == "write":  # what else can be missing is a bucket
            return StoreFailure("bucket", f"there is no bucket {address.bucket!r} ({what}); create"
                                " it, or correct its name", status)  # fmt: skip
        return NotFoundError()
    if name == "NotModifiedError":
        return VersionError(304)
    if name in ("AlreadyExistsError", "PreconditionError"):
        return VersionError(status or 412)
    if status == 403:
        needed = _PERMISSION.get((scheme, action))
        remedy = f"the credentials need {needed}" if needed else "check the role of the credentials"
        return StoreFailure("permission", f"no permission to {action} ({what}); {remedy}", status)
    if status in (429, 503) or code == "SlowDown":
        return StoreFailure("busy", f"the store is busy ({what}); try again later", status)
    if status == 501 or code == "NotImplemented":
        return StoreFailure("unsupported", f"the store does not support this request ({what})",
                            status)  # fmt: skip
    if status is not None:
        if code is None and status in (200, 400, 404, 405, 406):
            return StoreFailure.not_a_store(address, endpoint)
        return StoreFailure("failed", f"the store responded {what}", status)
    if "Header missing" in text or "invalid list response" in text.lower():
        return StoreFailure.not_a_store(address, endpoint)
    if "BadScheme" in text:
        return StoreFailure("endpoint", f"{_host(endpoint)} is plain http; use https, or set"
                            f" {'AWS' if scheme == 's3' else variable.partition('_')[0]}"
                            "_ALLOW_HTTP=true")  # fmt: skip
    kind = found[1] if (found := _KIND.search(text)) else ""
    if kind == "Timeout" or "TimedOut" in text:
        return StoreFailure("timeout", f"{_host(endpoint)} did not respond in time; check the"
                            f" network and {variable}")  # fmt: skip
    if kind == "Connect":
        return StoreFailure("unreachable", f"cannot connect to {_host(endpoint)}; check the network"
                            f" and {variable}")  # fmt: skip
    if kind:
        return StoreFailure("unreachable", "the connection ended before the response was complete;"
                            " try again")  # fmt: skip
    if isinstance(error, ValueError) or name == "InvalidPathError":
        return StoreFailure("key", f"a name that cannot be used as a key: {_first_line(text)}")
    if "Account must be specified" in text:
        return StoreFailure("credentials", f"no storage account; set {credentials}")
    return StoreFailure("failed", _first_line(text))


def _has_no_body(text: str) -> bool:
    """Whether the response had no body, as that to HEAD."""
    line = _first_line(text)
    return line.endswith(("404 Not Found:", "404 Not Found"))


def _host(endpoint: str | None) -> str:
    """The endpoint for messages: host and port, no user information."""
    if not endpoint:
        return "the service"
    try:
        parts = urlsplit(endpoint)
        return parts.netloc.rpartition("@")[2] or "the endpoint"
    except ValueError:
        return "the endpoint"


def _first_line(text: str) -> str:
    """The first line without the queries of URLs, which contain signatures."""
    line = text.strip().partition("\n")[0].strip()
    line = re.sub(r"(https?://)(?:[^\s/@]*@)?([^\s?]*)\?\S*", r"\1\2?***", line)
    return "".join(c if c.isprintable() else " " for c in line)[:300]

"""robots.txt: a block of our own with the ``Sitemap:`` lines (PROTOCOL section 1)."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

from ..errors import AnnounceError, ConfigError, InputError, PublishError
from ..outfile import sync_folder
from ..wording import count
from .address import origin_of, split
from .http import Again, Answer, Request
from .report import Outcome

if TYPE_CHECKING:
    from .session import Session

BEGIN, END = b"# urlset begin", b"# urlset end"

#: bytes that Google reads of a robots.txt: 500 KiB
READ_BY_GOOGLE = 512_000
#: bytes of the largest file that is edited
LARGEST = 16 * 1024 * 1024
#: RFC 9309, 2.3.1.2: redirects to follow
REDIRECTS = 5

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_SITEMAP = re.compile(rb"[ \t]*sitemap[ \t]*:[ \t]*([^#\r\n]*)", re.IGNORECASE)


def sitemap_lines(text: bytes) -> list[str]:
    """The addresses on all ``Sitemap:`` lines: any case of the name, comments cut off."""
    found = []
    for line in re.split(rb"\r\n|\n|\r", text.removeprefix(b"\xef\xbb\xbf")):
        if match := _SITEMAP.match(line):
            found.append(match[1].strip().decode("utf-8", "replace"))
    return found


def with_block(text: bytes, indexes: Sequence[str]) -> bytes:
    """``text`` with the block as it must be; every byte outside of the block stays.

    An address that stands on a line of its own outside of the block is not repeated in it.

    Raises:
        InputError: ``robots.block``: markers that do not pair; ``robots.encoding``.
    """
    if b"\0" in text:
        raise InputError("robots.txt is not UTF-8 text", code="robots.encoding")
    lines = [line for line in _LINE.findall(text) if line]
    begins = [i for i, line in enumerate(lines) if line.strip() == BEGIN]
    ends = [i for i, line in enumerate(lines) if line.strip() == END]
    if len(begins) != len(ends) or len(begins) > 1 or (begins and begins[0] > ends[0]):
        raise InputError(
            f"robots.txt holds {count(len(begins), 'line')} '{BEGIN.decode()}' and"
            f" {count(len(ends), 'line')} '{END.decode()}': repair it by hand to one of"
            " each, or none",
            code="robots.block",
        )
    at, after = (begins[0], ends[0] + 1) if begins else (len(lines), len(lines))
    head, tail = b"".join(lines[:at]), b"".join(lines[after:])
    newline = b"\r\n" if text.count(b"\r\n") * 2 > text.count(b"\n") else b"\n"
    by_hand = set(sitemap_lines(head) + sitemap_lines(tail))
    missing = [url for url in dict.fromkeys(indexes) if url not in by_hand]
    if not missing:
        return head + tail
    block = [BEGIN, *(b"Sitemap: " + url.encode("ascii") for url in missing), END]
    if not begins and head and head != b"\xef\xbb\xbf":
        head += (newline if not head.endswith((b"\n", b"\r")) else b"") + newline
    last = b"" if begins and not lines[after - 1].endswith((b"\n", b"\r")) else newline
    return head + newline.join(block) + last + tail


def write(session: Session, path: Path) -> Outcome:
    """Bring the block of the file ``path`` up to date, whole or not at all."""
    indexes = session.target.need_indexes()
    if path.is_symlink() and not path.exists():
        raise PublishError(
            f"{path}: is a symbolic link to nothing; remove it, or make the file that it names",
            code="robots.unwritable",
        )
    real = path.resolve()  # a link stays a link
    old: bytes | None = None
    with contextlib.suppress(FileNotFoundError):
        old = _read(real)
    new = with_block(old or b"", indexes)
    at = new.find(BEGIN)
    if at >= 0 and new.find(END, at) + len(END) > READ_BY_GOOGLE:
        raise InputError(
            f"{path}: the Sitemap lines would lie beyond the first {READ_BY_GOOGLE:,} bytes,"
            " and crawlers read no further",
            code="robots.too_large",
        )
    made = "unchanged" if new == old else "made" if old is None else "updated"
    if session.dry_run:
        session.show(f"write {path}: {made}\n\n{new.decode('utf-8', 'replace')}")
        return Outcome("robots", str(path), "planned", len(indexes), detail=made)
    if new != old:
        _replace(real, new, fresh=old is None)
    return Outcome("robots", str(path), "accepted", len(indexes), len(indexes), detail=made)


def check(session: Session) -> Outcome:
    """Whether the live robots.txt of the site lists all indexes."""
    base = session.endpoint("robots", session.target.site)
    url = origin_of(urlsplit(base)) + "/robots.txt"
    indexes = session.target.need_indexes()
    if session.dry_run:
        session.show(Request("GET", url).text())
        return Outcome("robots", url, "planned", len(indexes), detail="would be asked for")
    answer, requests = _fetch(session, url)
    listed = set(sitemap_lines(answer.body[:READ_BY_GOOGLE]) if answer.status == 200 else [])
    missing = [index for index in indexes if index not in listed]
    count = len(indexes) - len(missing)
    if not missing:
        return Outcome(
            "robots", url, "accepted", count, count, requests=requests, detail="lists all indexes"
        )
    why = f"does not list {missing[0]}"
    why += f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    if answer.status != 200:
        why = f"HTTP {answer.status}: the site has no robots.txt that lists {missing[0]}"
    return Outcome(
        "robots", url, "refused", len(indexes), count, requests=requests, detail=why,
        code="robots.not_listed",
    )  # fmt: skip


def _fetch(session: Session, url: str) -> tuple[Answer, int]:
    """Get a robots.txt as crawlers do: redirects are followed, for no key is sent.

    The site's own host may be a private one. What it redirects to is chosen by the site and not by
    the user, and so is a host that is known from nothing but the data: these must be public.
    """
    requests = 0
    named = "robots" in session.options.endpoints or not session.target.derived
    own = urlsplit(url).hostname if named else None
    for _ in range(REDIRECTS + 1):
        parts = split(url)
        if parts is None:
            break
        private = parts.hostname == own
        with session.http("robots", origin_of(parts), follows=True, allow_private=private) as http:
            answer = http.call(Request("GET", url), _any)
            requests += http.requests
        if answer.status not in (301, 302, 303, 307, 308):
            return answer, requests
        try:
            url = urljoin(url, answer.headers.get("location", ""))
        except ValueError:
            break
    raise AnnounceError(
        f"robots.txt: more than {REDIRECTS} redirects, or one to nowhere", code="robots.redirect"
    )


def _any(answer: Answer) -> Again | None:
    return None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", code="robots.unreadable"
        ) from None
    if len(text) > LARGEST:
        raise InputError(f"{path}: larger than {LARGEST:,} bytes", code="robots.too_large")
    return text


def _replace(path: Path, text: bytes, *, fresh: bool) -> None:
    """Write beside, sync, rename: at every instant the file is the old one or the new one."""
    temporary = path.with_name(f".robots-{uuid4().hex}")
    # the kernel applies the umask; asking for it would change it for all threads
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(temporary, flags, 0o666 if fresh else 0o600)
        with os.fdopen(handle, "wb") as file:
            if not fresh:
                before = path.stat()
                with contextlib.suppress(PermissionError):  # only root may give a file away
                    os.fchown(handle, before.st_uid, before.st_gid)
                os.fchmod(handle, before.st_mode & 0o7777)
            file.write(text)
            file.flush()
            os.fsync(handle)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise PublishError(
            f"{path}: cannot be written: {error.strerror}", code="robots.unwritable"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def prepare(session: Session) -> Callable[[], None]:
    """With ``check`` ask the live file, otherwise write the local one."""
    session.target.need_indexes()
    if session.options.check:
        return lambda: session.add(check(session))
    path = session.options.robots
    if path is None:
        raise ConfigError(
            "--to robots needs --robots PATH (the robots.txt to write) or --check",
            code="robots.no_path",
        )
    return lambda: session.add(write(session, path))

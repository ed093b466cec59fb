"""robots.txt: the block with the ``Sitemap:`` lines that urlset maintains."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AnnounceError, ConfigError, InputError, PublishError
from ..outfile import replacing
from ..transport.retry import MAX_REDIRECTS, is_redirect, redirected
from ..wording import count
from .address import check_page, split
from .client import Answer, Request, Retry
from .report import EngineOutcome

if TYPE_CHECKING:
    from .session import Session

BEGIN, END = b"# urlset begin", b"# urlset end"

#: bytes that Google reads of a robots.txt: 500 KiB
READ_BY_GOOGLE = 512_000
#: bytes of a file that is edited
MAX_BYTES = 16 << 20

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_SITEMAP = re.compile(rb"[ \t]*sitemap[ \t]*:[ \t]*([^#\r\n]*)", re.IGNORECASE)


def sitemap_lines(text: bytes) -> list[str]:
    """The URLs of all ``Sitemap:`` lines: any case of the name, without comments."""
    found = []
    for line in re.split(rb"\r\n|\n|\r", text.removeprefix(b"\xef\xbb\xbf")):
        if match := _SITEMAP.match(line):
            found.append(match[1].strip().decode("utf-8", "replace"))
    return found


def with_block(text: bytes, indexes: Sequence[str]) -> bytes:
    """``text`` with the current block; every byte outside of the block stays.

    The block does not repeat a URL that has a line outside of it.

    Raises:
        InputError: ``robots.block``: markers without a partner; ``robots.encoding``.
    """
    if b"\0" in text:
        raise InputError("robots.txt is not UTF-8 text", code="robots.encoding")
    lines = [line for line in _LINE.findall(text) if line]
    begins = [i for i, line in enumerate(lines) if line.strip() == BEGIN]
    ends = [i for i, line in enumerate(lines) if line.strip() == END]
    if len(begins) != len(ends) or len(begins) > 1 or (begins and begins[0] > ends[0]):
        raise InputError(
            f"robots.txt contains {count(len(begins), 'line')} '{BEGIN.decode()}' and"
            f" {count(len(ends), 'line')} '{END.decode()}': edit it so that there is one of"
            " each, or none",
            code="robots.block",
        )
    start, end = (begins[0], ends[0] + 1) if begins else (len(lines), len(lines))
    head, tail = b"".join(lines[:start]), b"".join(lines[end:])
    newline = b"\r\n" if text.count(b"\r\n") * 2 > text.count(b"\n") else b"\n"
    by_hand = set(sitemap_lines(head) + sitemap_lines(tail))
    missing = [url for url in dict.fromkeys(indexes) if url not in by_hand]
    if not missing:
        return head + tail
    block = [BEGIN, *(b"Sitemap: " + url.encode("ascii") for url in missing), END]
    if not begins and head and head != b"\xef\xbb\xbf":
        head += (newline if not head.endswith((b"\n", b"\r")) else b"") + newline
    last = b"" if begins and not lines[end - 1].endswith((b"\n", b"\r")) else newline
    return head + newline.join(block) + last + tail


def write(session: Session, path: Path) -> EngineOutcome:
    """Updates the block of the file ``path``: completely or not at all."""
    indexes = session.target.need_indexes()
    if path.is_symlink() and not path.exists():
        raise PublishError(
            f"{path}: is a symbolic link to nothing; remove it, or create its target",
            code="robots.unwritable",
        )
    real = path.resolve()  # a link stays a link
    old: bytes | None = None
    with contextlib.suppress(FileNotFoundError):
        old = _read(real)
    new = with_block(old or b"", indexes)
    begin = new.find(BEGIN)
    if begin >= 0 and new.find(END, begin) + len(END) > READ_BY_GOOGLE:
        raise InputError(
            f"{path}: the Sitemap lines would be after the first {READ_BY_GOOGLE:,} bytes,"
            " and crawlers read no further",
            code="robots.too_large",
        )
    made = "unchanged" if new == old else "made" if old is None else "updated"
    if session.dry_run:
        session.show(f"write {path}: {made}\n\n{new.decode('utf-8', 'replace')}")
        return EngineOutcome("robots", str(path), "planned", len(indexes), detail=made)
    if new != old:
        try:
            with replacing(real, keep_owner=True) as file:
                file.write(new)
        except OSError as error:
            raise PublishError(
                f"{real}: cannot be written: {error.strerror}", code="robots.unwritable"
            ) from None
    return EngineOutcome("robots", str(path), "accepted", len(indexes), len(indexes), detail=made)


def check(session: Session) -> EngineOutcome:
    """Whether the live robots.txt of the site lists all indexes."""
    base = session.endpoint("robots", session.target.site)
    url = check_page(base, what="the URL of the site").origin + "/robots.txt"
    indexes = session.target.need_indexes()
    if session.dry_run:
        session.show(Request("GET", url).text())
        return EngineOutcome("robots", url, "planned", len(indexes), detail="would be fetched")
    answer, requests = _fetch(session, url)
    listed = set(sitemap_lines(answer.body[:READ_BY_GOOGLE]) if answer.status == 200 else [])
    missing = [index for index in indexes if index not in listed]
    count = len(indexes) - len(missing)
    if not missing:
        return EngineOutcome(
            "robots", url, "accepted", count, count, requests=requests, detail="lists all indexes"
        )
    why = f"does not list {missing[0]}"
    why += f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    if answer.status != 200:
        why = f"HTTP {answer.status}: the site has no robots.txt that lists {missing[0]}"
    return EngineOutcome(
        "robots", url, "refused", len(indexes), count, requests=requests, detail=why,
        code="robots.not_listed",
    )  # fmt: skip


def _fetch(session: Session, url: str) -> tuple[Answer, int]:
    """Fetches a robots.txt as crawlers do, with redirects: no key is sent.

    The host that the user names may have a private address. The target of a redirect, and a host
    that only the data names, must be public.
    """
    requests = 0
    named = "robots" in session.options.endpoints or not session.target.derived
    own = check_page(url, what="the URL of robots.txt").host if named else None
    for _ in range(MAX_REDIRECTS + 1):
        parts = split(url)
        if parts is None:
            break
        private = parts.host == own
        with session.client("robots", url, redirects=True, allow_private=private) as client:
            answer = client.call(Request("GET", url), _accept)
            requests += client.requests
        if not is_redirect(answer.status):
            return answer, requests
        url = redirected(url, answer.headers.get("location", "")) or ""
    raise AnnounceError(
        f"robots.txt: more than {MAX_REDIRECTS} redirects, or one without a legal URL",
        code="robots.redirect",
    )


def _accept(answer: Answer) -> Retry | None:
    return None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", code="robots.unreadable"
        ) from None
    if len(text) > MAX_BYTES:
        raise InputError(f"{path}: larger than {MAX_BYTES:,} bytes", code="robots.too_large")
    return text


def prepare(session: Session) -> Callable[[], None]:
    """With ``check`` reads the live file, otherwise writes the local one."""
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

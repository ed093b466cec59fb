"""One self-contained page: templates, escaping, and the file.

For maintainers: values come from catalogs, from sitemaps of any producer and from servers, so all
are hostile. Three rules keep them text. Jinja2 escapes every value. Values from outside go through
the filter ``visible``, which shows control characters instead of obeying them. A policy in the page
forbids every load, script and style except for the style of the template, by its digest. No value
becomes a link. ``test_report_page.py`` fails if one of them is broken.
"""

from __future__ import annotations

import base64
import hashlib
import os
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import ConfigError, PublishError
from ..outfile import check_page, is_store, must_be_local
from ..transport.target import check_writable, replacing, target_of
from ..wording import count, one_line

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
#: characters of a value that are shown
MAX_TEXT = 400


def visible(text: object, limit: int = MAX_TEXT) -> str:
    """Text from outside: control characters and those that change its direction are escaped."""
    value = str(text)
    if len(value) <= limit:
        return one_line(value)
    return f"{one_line(value[:limit])}… ({len(value):,} characters)"


def size(number: float) -> str:
    """Bytes with a decimal unit: ``12.3 MB``."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return count(int(number), "byte")


def round_size(number: float) -> str:
    """As :func:`size`, for round numbers: ``12 MB``."""
    return size(number).replace(".0 ", " ")


def percent(part: float, whole: float) -> str:
    """A share: ``2.1 %``; a small one is not 0."""
    share = 100 * part / whole if whole else 0.0
    return "under 0.1 %" if 0 < share < 0.1 else f"{share:.1f} %"


def duration(seconds: float) -> str:
    """A time: ``1 h 2 min``, ``3 min 5 s``, ``4.2 s``, ``6 ms``."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def signed(number: int) -> str:
    """A difference, with a typographic minus sign."""
    return f"+{number:,}" if number > 0 else f"{number:,}".replace("-", "\u2212")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "visible": visible, "size": size, "percent": percent, "duration": duration,
        "signed": signed, "number": lambda number: f"{number:,}", "count": count,
    }  # fmt: skip
    return environment


def render(template: str, **values: Any) -> str:
    """The page of a template."""
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    now = datetime.now(UTC)
    return _environment().get_template(template).render(
        style=style, digest=digest, version=_core.__version__, now=now, **values
    )  # fmt: skip


def check_target(target: str | os.PathLike[str], inputs: tuple[object, ...], undone: str) -> None:
    """Checks that a page can be written, and replaces no input, before any work is done.

    Args:
        undone: the end of the message: the work that was not done.

    Raises:
        ConfigError: ``config.report``.
        PublishError: ``output.report``.
    """
    check_page(target)
    if not is_store(target):
        must_be_local("report", target)
    for one in inputs:
        if isinstance(one, (str, os.PathLike)) and _is_same(os.fspath(one), os.fspath(target)):
            raise ConfigError(
                f"report: {os.fspath(target)!r} is an input; write it elsewhere",
                code="config.report",
            )
    try:
        check_writable(target_of(target), will_exist=())
    except OSError as error:
        raise PublishError(
            f"report: {error.filename or target}: {error.strerror}; {undone}", code="output.report"
        ) from None


def _is_same(one: str, other: str) -> bool:
    with suppress(OSError):
        return one == other or Path(one).samefile(other)
    return False


def write_page(target: str | os.PathLike[str], page: str, *, undone: str = "") -> None:
    """Writes a page: a file appears complete, or not at all.

    Args:
        undone: the end of the message of an error.

    Raises:
        PublishError: ``output.report``.
    """
    place = target_of(target)
    try:
        if isinstance(place, Path):
            place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as file:
            file.write(page.encode())
    except OSError as error:
        raise PublishError(
            f"report: {error.filename or target}: {error.strerror}{undone}", code="output.report"
        ) from None

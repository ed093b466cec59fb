"""Rules for retries and redirects."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

#: RFC 9309, 2.3.1.2: redirects that are followed
MAX_REDIRECTS = 5
#: characters of a date in a header; longer ones are not parsed
MAX_DATE = 100
#: digits of Retry-After that are read
MAX_DIGITS = 12


def is_redirect(status: int) -> bool:
    return status in (301, 302, 303, 307, 308)


def redirected(base: str, location: str) -> str | None:
    """The URL that a Location header of ``base`` names, ``None`` if it is not a URL."""
    try:
        return urljoin(base, location)
    except ValueError:
        return None


def is_transient(status: int) -> bool:
    """Whether the same request can get another status later."""
    return status in (408, 429) or (500 <= status < 600 and status not in (501, 505))


def backoff(attempt: int, first: float, cap: float) -> float:
    """Seconds before the next attempt: ``first``, doubled each time, times 0.5 to 1 (jitter).

    Args:
        attempt: attempts since the first, from 0.
        cap: no more seconds than this.
    """
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
    return min(cap, first * 2.0 ** min(attempt, 60)) * jitter


def retry_after(headers: Mapping[str, str], default: float | None = None) -> float | None:
    """Seconds that ``Retry-After`` asks for (RFC 9110, 10.2.3); ``default`` without a legal one.

    A date is measured against the ``Date`` of the same answer, so that a wrong clock of this
    machine neither shortens nor extends the wait.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:MAX_DIGITS])
    moment = http_date(text)
    if moment is None:
        return default
    now = http_date(headers.get("date")) or datetime.now(UTC)
    return max(0.0, (moment - now).total_seconds())


def http_date(text: str | None) -> datetime | None:
    """A date of a header in UTC, ``None`` if it is missing or invalid."""
    if not text or len(text) > MAX_DATE:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment

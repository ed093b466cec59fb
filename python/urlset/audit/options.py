"""The options of ``audit``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from ..option_table import check_values, option
from ..options import parse_percent

_SAMPLE, _FETCH, _JUDGE, _RESULT = "Sample", "Fetching", "Judgement", "Result"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditOptions:
    """The options of :func:`urlset.audit`."""

    sample: str | int = option(
        1_000, _SAMPLE, "Number of URLs to fetch, or all.", metavar="N|all", show_default=True
    )
    by: str | None = option(
        None, _SAMPLE, "Strata with a sample and an estimate each: shard, path (the first part of"
        " the path), host, none, or a column. Default: shard; none for a table.", metavar="COL",
    )  # fmt: skip
    loc: str = option("loc", _SAMPLE, "Column of the URL, if TARGET is a table.", metavar="COL")
    seed: int = option(
        0, _SAMPLE, "Another seed selects another sample.", limits=(0, (1 << 63) - 1)
    )
    lenient: bool = option(False, _SAMPLE, "Omit what cannot be read of the sitemaps.")

    rate: float = option(
        20.0, _FETCH, "Maximum number of requests per second and host; 0 for no limit.",
        metavar="N", show_default=True,
    )  # fmt: skip
    concurrency: int = option(
        16, _FETCH, "Maximum number of requests at the same time.", metavar="N", limits=(1, 1_000),
        show_default=True,
    )  # fmt: skip
    timeout: float = option(
        30.0, _FETCH, "For one page with its redirects.", metavar="SECONDS", show_default=True
    )
    max_wait: float = option(
        900.0, _FETCH, "Maximum total wait for a host that answers 429 or 503.",
        metavar="SECONDS", show_default=True,
    )  # fmt: skip
    hosts: str | Sequence[str] | None = option(
        None, _FETCH, "Hosts that may be fetched from: any, or a list a,b. Default: those of the"
        " set.", metavar="HOSTS",
    )  # fmt: skip
    allow_private: bool = option(False, _FETCH, "Fetch from private addresses, too.")
    resume: str | os.PathLike[str] | None = option(
        None, _FETCH, "Keep what was judged in this file; if it exists, continue with it.",
        metavar="FILE", kind="file",
    )  # fmt: skip

    bot: str = option(
        "googlebot", _JUDGE, "Crawler whose rules apply in robots.txt, X-Robots-Tag and meta"
        " elements.", metavar="NAME",
    )  # fmt: skip
    soft_404: str | None = option(
        None, _JUDGE, "Pages whose HTML contains this regular expression (RE2, any case) are error"
        " pages.", metavar="REGEX", flag="--soft-404",
    )  # fmt: skip
    check_lastmod: bool = option(
        False,
        _JUDGE,
        "Compare lastmod with the date of the page: article:modified_time,"
        " dateModified, else Last-Modified.",
    )

    output: str | os.PathLike[str] | None = option(
        None, _RESULT, "Write a row for each finding, .parquet, .csv, .jsonl or .arrow.",
        metavar="PATH",
    )  # fmt: skip
    drop_list: str | os.PathLike[str] | None = option(
        None, _RESULT, "Write the URLs that redirect, are missing (404, 410), or have noindex or"
        " another canonical as CSV, for build --exclude.", metavar="PATH",
    )  # fmt: skip
    report: str | os.PathLike[str] | None = option(
        None, _RESULT, "Write a page with charts of the estimates and the findings, .html.",
        metavar="PATH",
    )  # fmt: skip
    max_bad: str | None = option(
        None, _RESULT, "Exit status 1 if a larger share of the URLs is bad or could not be judged.",
        metavar="P%",
    )  # fmt: skip

    def checked(self) -> AuditOptions:
        """The same options, each checked.

        Raises:
            ConfigError: for the first wrong value.
        """
        check_values(self)
        _ = self.sample_size, self.max_bad_share
        for name, least, most in (("rate", 0, 1e6), ("timeout", 0.1, 3600), ("max_wait", 0, 86400)):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ConfigError(
                    f"{name}: {value:g} is not from {least:g} to {most:g}", code="config.limit"
                )
        return self

    @property
    def sample_size(self) -> int | None:
        """The number of URLs; None for all.

        Raises:
            ConfigError: ``config.sample``.
        """
        text = str(self.sample).strip()
        if text == "all":
            return None
        if not text.isascii() or not text.isdecimal() or int(text) < 1:
            raise ConfigError(
                f"sample: {text!r} is neither a whole number from 1 nor all", code="config.sample"
            )
        return int(text)

    @property
    def max_bad_share(self) -> float | None:
        """The limit from 0 to 1.

        Raises:
            ConfigError: ``config.percent``.
        """
        return None if self.max_bad is None else parse_percent("max_bad", self.max_bad)

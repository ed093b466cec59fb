"""The options of ``announce``, checked before anything is read or sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import ConfigError
from ..option_table import option
from ..outfile import must_be_local
from .address import is_loopback

ENGINES = ("robots", "indexnow", "google", "bing", "yandex")

#: engines and services that users name and that urlset cannot announce to
_HINTS = {
    "yahoo": "Yahoo uses Bing's index: --to bing",
    "msn": "MSN is Bing today: --to bing",
    "duckduckgo": "DuckDuckGo uses Bing's index: --to bing",
    "baidu": "Baidu has refused sitemap indexes since 2020: list the sitemaps in its console",
    "ping": "the ping addresses are gone: Google's since 2023, Bing's since 2022",
    "naver": "Naver takes part in IndexNow: --to indexnow",
    "seznam": "Seznam takes part in IndexNow: --to indexnow",
}

StrPath = str | os.PathLike[str]
_PATH = "str | os.PathLike[str] | None"
_BY_ENGINE = "str | Mapping[str, str] | None"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AnnounceOptions:
    """The options of :func:`urlset.announce`.

    Raises:
        ConfigError: ``announce.engine``, ``config.robots``, ``config.state``.
    """

    to: tuple[str, ...] = option(
        (), "Options", "Engine to announce to: robots, indexnow, google, bing (also feeds Yahoo) or"
        " yandex. Repeatable.", metavar="ENGINE", keyword="str | Iterable[str]",
    )  # fmt: skip
    robots: Path | None = option(
        None, "Options", "The robots.txt in which the block of Sitemap lines is updated.",
        metavar="PATH", kind="file", keyword=_PATH,
    )  # fmt: skip
    check: bool = option(
        False, "Options", "robots: check whether the live robots.txt lists all indexes."
    )
    changes: Path | None = option(
        None, "Options", "indexnow, bing: the change feed of a build (.csv, .jsonl, .parquet).",
        metavar="PATH", kind="path", keyword=_PATH,
    )  # fmt: skip
    urls: Path | None = option(
        None, "Options", "indexnow, bing: a list of URLs, one per line, or in a format by its"
        " extension as above.", metavar="PATH", kind="path", keyword=_PATH,
    )  # fmt: skip
    all: bool = option(
        False, "Options", "indexnow: allow a full set: more than half of the live URLs. Only after"
        " a move.",
    )  # fmt: skip
    hosts: str | Iterable[str] = option(
        "same", "Options", "indexnow: hosts for which the key may be used. Each host in the change"
        " feed learns the key.", metavar="same|any|LIST", show_default=True,
    )  # fmt: skip
    init_key: bool = option(
        False, "Options", "indexnow: create a key and the file that proves it to the site; send"
        " nothing.",
    )  # fmt: skip
    key_file: StrPath | Mapping[str, StrPath] | None = option(
        None, "Options", "Read a key from a file; without ENGINE the key of IndexNow. Repeatable.",
        metavar="[ENGINE=]PATH", kind="engine",
        keyword="str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None",
    )  # fmt: skip
    key_location: str | None = option(
        None, "Options", "indexnow: address of the key file, if not https://HOST/KEY.txt.",
        metavar="URL",
    )  # fmt: skip
    property: str | Mapping[str, str] | None = option(
        None, "Options", "google: sc-domain:HOST or a URL prefix; bing: the site as Bing lists it;"
        " yandex: https:HOST:443. By default the root of the site.", metavar="[ENGINE=]NAME",
        kind="engine",
    )  # fmt: skip
    status: bool = option(
        False, "Options", "google: show errors, warnings and last download of each sitemap; submit"
        " nothing.",
    )  # fmt: skip
    yandex_user: str | None = option(
        None, "Options", "yandex: the user; requested from Yandex by default.", metavar="NUMBER"
    )
    sitemap_url: str | None = option(
        None, "Options", "Address of the folder, if there is no manifest with it.", metavar="URL"
    )
    state: Path | None = option(
        None, "Options", "Folder for manifest, journal and key instead of TARGET/.urlset.",
        metavar="DIR", kind="folder", keyword=_PATH,
    )  # fmt: skip
    endpoint: str | Mapping[str, str] | None = option(
        None, "Options", "Another address of an engine: https, or http to this machine.",
        metavar="[ENGINE=]URL", kind="engine",
    )  # fmt: skip
    timeout: float = option(
        30.0, "Options", "For one request and its response.", metavar="SECONDS", show_default=True
    )
    retries: int = option(
        4, "Options", "How often a failed request is sent again.", metavar="N", show_default=True
    )
    max_wait: float = option(
        900.0, "Options", "Maximum total wait when an engine asks to retry later.",
        metavar="SECONDS", show_default=True,
    )  # fmt: skip
    dry_run: bool = option(
        False, "Options", "Print the exact requests with masked keys; send none."
    )

    def __post_init__(self) -> None:
        for name in ("robots", "state"):
            if (place := getattr(self, name)) is not None:
                must_be_local(name, place)
        object.__setattr__(self, "to", read_engines(self.to))
        for name in ("robots", "changes", "urls", "state"):
            if (place := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(place))

    @cached_property
    def allowed_hosts(self) -> frozenset[str] | None:
        """Further hosts that the key may be used for; None for any."""
        return read_hosts(self.hosts)

    @cached_property
    def key_files(self) -> dict[str, Path]:
        """By engine; without one for IndexNow, or for the only engine with a key."""
        engines = ("indexnow", "google", "bing", "yandex")
        found = per_engine(
            self.key_file,
            option="--key-file",
            plain=lambda _value: _one("--key-file", "indexnow", self.to, engines),
            engines=engines,
        )
        return {name: Path(value) for name, value in found.items()}

    @cached_property
    def properties(self) -> dict[str, str]:
        """By engine; without one for Google, or for the only engine with a property."""
        engines = ("google", "bing", "yandex")
        return per_engine(
            self.property,
            option="--property",
            plain=lambda _value: _one("--property", "google", self.to, engines),
            engines=engines,
        )

    @cached_property
    def endpoints(self) -> dict[str, str]:
        """By engine; without one for all, if it is an address of this machine.

        Any other address needs an engine if there are several: no engine may receive the key of
        another.
        """

        def plain(value: str) -> Iterable[str]:
            if len(self.to) > 1 and not is_loopback(value):
                raise ConfigError(
                    "--endpoint URL with several engines would send each of their keys there:"
                    " write --endpoint ENGINE=URL",
                    code="announce.options",
                )
            return self.to

        return per_engine(self.endpoint, option="--endpoint", plain=plain, engines=ENGINES)

    def check_all(self) -> None:
        """Checks all options.

        Raises:
            ConfigError: ``announce.options``.
        """
        _ = self.key_files, self.properties, self.endpoints  # raise if they are wrong

        def wrong(why: str) -> ConfigError:
            return ConfigError(why, code="announce.options")

        if not self.to and not self.init_key:
            raise wrong(f"no engine is given: use --to with one of {', '.join(ENGINES)}")
        if self.changes is not None and self.urls is not None:
            raise wrong("--changes and --urls both select the URLs to send: use one of them")
        if self.status and self.to != ("google",):
            raise wrong("--status reads from Search Console: use it with --to google alone")
        if self.check and "robots" not in self.to:
            raise wrong("--check reads the live robots.txt: use it with --to robots")
        if "indexnow" in self.to and not self.init_key and not (self.changes or self.urls):
            raise wrong(
                "--to indexnow needs the URLs that changed: --changes PATH, the change feed that"
                " `urlset build --changes PATH` writes, or --urls PATH, a list"
            )
        if not 0 < self.timeout <= 3_600:
            raise wrong("--timeout must be more than 0 and at most 3,600 seconds")
        if not 0 <= self.retries <= 100:
            raise wrong("--retries must be between 0 and 100")
        if not 0 <= self.max_wait <= 86_400:
            raise wrong("--max-wait must be between 0 and 86,400 seconds")

    def allows(self, host: str, own: str) -> bool:
        """Whether a key may be used for URLs of ``host``; ``own`` is the host of the target."""
        allowed = self.allowed_hosts
        return allowed is None or host == own or host in allowed


def read_engines(to: str | Iterable[str]) -> tuple[str, ...]:
    """The engines, each once.

    Raises:
        ConfigError: ``announce.engine``.
    """
    names = tuple(dict.fromkeys([to] if isinstance(to, str) else to))
    for name in names:
        if name not in ENGINES:
            hint = _HINTS.get(str(name).lower(), f"choose from {', '.join(ENGINES)}")
            raise ConfigError(
                f"cannot announce to {str(name)[:40]!r}: {hint}", code="announce.engine"
            )
    return names


def read_hosts(hosts: str | Iterable[str]) -> frozenset[str] | None:
    """``same`` is no further host, ``any`` is ``None``, anything else is a list."""
    if isinstance(hosts, str):
        if hosts in ("same", "any"):
            return None if hosts == "any" else frozenset()
        hosts = hosts.split(",")
    return frozenset(host.strip().lower() for host in hosts if host.strip())


def per_engine(
    given: StrPath | Mapping[str, StrPath] | None,
    *,
    option: str,
    plain: Callable[[str], Iterable[str]],
    engines: Iterable[str],
) -> dict[str, str]:
    """A value for each engine: from a mapping, or one plain value.

    Args:
        given: a mapping, or a plain value. The key ``""`` of a mapping has a plain value, too.
        plain: returns the engines that a plain value is for.

    Raises:
        ConfigError: ``announce.options``.
    """
    if given is None:
        return {}
    values: dict[str, StrPath] = dict(given) if isinstance(given, Mapping) else {"": given}
    found: dict[str, str] = {}
    if "" in values:
        value = os.fspath(values.pop(""))
        found.update(dict.fromkeys(plain(value), value))
    for name, path in values.items():
        if name not in engines:
            raise ConfigError(
                f"{option} is not for {name[:40]!r}: choose from {', '.join(engines)}",
                code="announce.options",
            )
        found[name] = os.fspath(path)
    return found


def _one(option: str, preferred: str, to: tuple[str, ...], engines: tuple[str, ...]) -> list[str]:
    fits = [name for name in to if name in engines]
    if preferred in fits or not fits:
        return [preferred]
    if len(fits) > 1:
        raise ConfigError(
            f"{option} does not name an engine: write {option} ENGINE=VALUE",
            code="announce.options",
        )
    return fits

"""What the caller asked for, checked before anything is read or sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError
from .address import is_loopback

ENGINES = ("robots", "indexnow", "google", "bing", "yandex")

# asked for often enough that the answer should help
_HINTS = {
    "yahoo": "Yahoo is served from Bing's index: --to bing",
    "msn": "MSN is Bing today: --to bing",
    "duckduckgo": "it is served from Bing's index: --to bing",
    "baidu": "it has refused sitemap indexes since 2020: list the sitemaps in its console",
    "ping": "the ping addresses are dead: Google's since 2023, Bing's since 2022",
    "naver": "it takes part in IndexNow: --to indexnow",
    "seznam": "it takes part in IndexNow: --to indexnow",
}

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The options of :func:`urlset.announce`, each with one meaning."""

    to: tuple[str, ...]
    robots: Path | None = None
    check: bool = False
    changes: Path | None = None
    urls: Path | None = None
    key_files: Mapping[str, Path] = field(default_factory=dict)
    key_location: str | None = None
    init_key: bool = False
    hosts: frozenset[str] | None = frozenset()
    all: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    status: bool = False
    yandex_user: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0
    retries: int = 4
    max_wait: float = 900.0
    dry_run: bool = False

    def check_all(self) -> None:
        """
        Raises:
            ConfigError: ``announce.engine``, ``announce.options``.
        """

        def wrong(why: str) -> ConfigError:
            return ConfigError(why, code="announce.options")

        if not self.to and not self.init_key:
            raise wrong(f"nobody to tell: give --to with one of {', '.join(ENGINES)}")
        if self.changes is not None and self.urls is not None:
            raise wrong("--changes and --urls both name the URLs to send: give one of them")
        if self.status and self.to != ("google",):
            raise wrong("--status asks Search Console: give it with --to google alone")
        if self.check and "robots" not in self.to:
            raise wrong("--check asks for the live robots.txt: give it with --to robots")
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
        return self.hosts is None or host == own or host in self.hosts


def read_engines(to: str | Iterable[str]) -> tuple[str, ...]:
    """
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
        given: a mapping; its key ``""``, or a value that is no mapping, is the plain one.
        plain: which engines a plain value is for.

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


def _one(option: str, favourite: str, to: tuple[str, ...], engines: tuple[str, ...]) -> list[str]:
    fits = [name for name in to if name in engines]
    if favourite in fits or not fits:
        return [favourite]
    if len(fits) > 1:
        raise ConfigError(
            f"{option} does not tell for whom: give {option} ENGINE=VALUE", code="announce.options"
        )
    return fits


def key_files(
    given: StrPath | Mapping[str, StrPath] | None, to: tuple[str, ...]
) -> dict[str, Path]:
    """A plain key file is IndexNow's, or of the only engine that has a key."""
    engines = ("indexnow", "google", "bing", "yandex")
    found = per_engine(
        given,
        option="--key-file",
        plain=lambda _value: _one("--key-file", "indexnow", to, engines),
        engines=engines,
    )
    return {name: Path(value) for name, value in found.items()}


def properties(given: str | Mapping[str, str] | None, to: tuple[str, ...]) -> dict[str, str]:
    """A plain property is Google's, or of the only engine that has one."""
    engines = ("google", "bing", "yandex")
    return per_engine(
        given,
        option="--property",
        plain=lambda _value: _one("--property", "google", to, engines),
        engines=engines,
    )


def endpoints(given: str | Mapping[str, str] | None, to: tuple[str, ...]) -> dict[str, str]:
    """A plain endpoint is of all engines when it is this machine; else there must be one engine.

    So no engine is ever sent the key of another one.
    """

    def plain(value: str) -> Iterable[str]:
        if len(to) > 1 and not is_loopback(value):
            raise ConfigError(
                "--endpoint URL with several engines would send each of their keys there:"
                " give --endpoint ENGINE=URL",
                code="announce.options",
            )
        return to

    return per_engine(given, option="--endpoint", plain=plain, engines=ENGINES)

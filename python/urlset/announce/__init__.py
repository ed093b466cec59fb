"""Announcing sitemaps and changed URLs to search engines.

::

    target, options --> prepare of each engine --> send --> report
                        robots indexnow google bing yandex

Each engine has a module with a function ``prepare``, which checks all that can be checked on this
machine and returns the function that sends. All engines are prepared before the first request.
``session`` is what they share. The modules are imported by the call, because start-up time counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from .report import AnnounceReport, Outcome, SitemapStatus
    from .session import Session

    StrPath = str | os.PathLike[str]

__all__ = ["AnnounceReport", "Outcome", "SitemapStatus", "announce"]


def announce(
    target: StrPath,
    *,
    to: str | Iterable[str] = (),
    robots: StrPath | None = None,
    check: bool = False,
    changes: StrPath | None = None,
    urls: StrPath | None = None,
    key_file: StrPath | Mapping[str, StrPath] | None = None,
    key_location: str | None = None,
    init_key: bool = False,
    hosts: str | Iterable[str] = "same",
    all: bool = False,
    property: str | Mapping[str, str] | None = None,
    status: bool = False,
    yandex_user: str | None = None,
    endpoint: str | Mapping[str, str] | None = None,
    sitemap_url: str | None = None,
    state: StrPath | None = None,
    timeout: float = 30.0,
    retries: int = 4,
    max_wait: float = 900.0,
    dry_run: bool = False,
    notify: Callable[[str], None] | None = None,
    show: Callable[[str], None] | None = None,
    report: AnnounceReport | None = None,
) -> AnnounceReport:
    """Announces the sitemaps of ``target``, or the URLs that changed, to search engines.

    Keys come from files or from the environment: ``URLSET_INDEXNOW_KEY``, ``URLSET_BING_KEY``,
    ``URLSET_YANDEX_TOKEN``; ``URLSET_GOOGLE_KEY_FILE`` or ``GOOGLE_APPLICATION_CREDENTIALS`` name
    the JSON file of a service account.

    Args:
        target: the output folder of a build, a sitemap index, or the URL of one.
        to: any of ``robots``, ``indexnow``, ``google``, ``bing``, ``yandex``.
        robots: the robots.txt whose block of ``Sitemap`` lines is updated.
        check: check whether the live robots.txt lists all indexes, and write none.
        changes: the change feed of a build: its URLs are sent to IndexNow and Bing.
        urls: a list of URLs, instead of a change feed.
        key_file: the file with the IndexNow key, or ``{engine: path}``.
        key_location: URL of the IndexNow key file if it is not ``https://HOST/KEY.txt``.
        init_key: only create an IndexNow key and the file that proves it to the site.
        hosts: hosts for which the IndexNow key may be used: ``same`` as the target's, ``any``, or
            a list. Engines fetch the file of the key from each host: a foreign host in the data
            would receive the key.
        all: also send a full set to IndexNow, as after a move.
        property: ``sc-domain:HOST`` or the URL prefix of Search Console, by default the root of
            the site; or ``{engine: value}`` with the site URL of Bing or the host id of Yandex.
        status: read the status of the sitemaps from Search Console, and submit nothing.
        yandex_user: number of the Yandex user; requested from Yandex by default.
        endpoint: another URL of an engine, or ``{engine: url}``: https, or http to this machine.
        sitemap_url: URL of the folder, if there is no manifest.
        state: used instead of ``TARGET/.urlset``.
        timeout: seconds for one exchange.
        retries: of a request that failed.
        max_wait: seconds that one request may wait if an engine asks for it.
        dry_run: send and write nothing, ``show`` the requests.
        notify: receives one line for each step.
        show: receives each request of a dry run, with keys masked.
        report: is filled and returned; after an exception it contains what was done before.

    Returns:
        What each engine accepted; refusals are in it and are not raised.

    Raises:
        ConfigError: wrong options, a missing or malformed key; nothing was sent.
        InputError: the target or the list of URLs cannot be read; nothing was sent.
        KeyboardInterrupt: the journal contains what was accepted: the same call continues.
    """
    import time
    from pathlib import Path

    from ..outfile import must_be_local
    from ..transport.keyring import Keyring
    from .options import Options, endpoints, key_files, properties, read_engines, read_hosts
    from .report import AnnounceReport
    from .session import Session
    from .target import read_target

    for option, place in (("robots", robots), ("state", state)):
        if place is not None:
            must_be_local(option, place)
    started = time.monotonic()
    report = AnnounceReport() if report is None else report
    names = read_engines(to)
    options = Options(
        to=names,
        robots=_path(robots),
        check=check,
        changes=_path(changes),
        urls=_path(urls),
        key_files=key_files(key_file, names),
        key_location=key_location,
        init_key=init_key,
        hosts=read_hosts(hosts),
        all=all,
        properties=properties(property, names),
        status=status,
        yandex_user=yandex_user,
        endpoints=endpoints(endpoint, names),
        timeout=timeout,
        retries=retries,
        max_wait=max_wait,
        dry_run=dry_run,
    )
    options.check_all()
    report.dry_run = dry_run
    found = read_target(
        target if isinstance(target, str) else Path(target),
        state=_path(state),
        sitemap_url=sitemap_url,
    )
    with Keyring() as keyring:
        session = Session(found, options, keyring, notify=notify, show=show, report=report)
        with session.stack:
            try:
                if init_key:
                    from . import indexnow

                    indexnow.init_key(session)
                else:
                    _run(session)
            except BaseException:
                session.stop.set()
                raise
            finally:
                report.seconds = time.monotonic() - started
    return report


def __getattr__(name: str) -> Any:
    if name in ("AnnounceReport", "Outcome", "SitemapStatus"):
        from . import report

        return getattr(report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _path(value: StrPath | None) -> Path | None:
    from pathlib import Path

    return None if value is None else Path(value)


def _run(session: Session) -> None:
    """Prepares all engines, then each one sends; a refusal does not stop the others."""
    from importlib import import_module

    from ..errors import AnnounceError, Error
    from .report import Outcome
    from .session import refusal

    actions: dict[str, Callable[[], None]] = {}
    for name in session.options.to:
        module = import_module(f".{name}", __package__)
        try:
            actions[name] = module.prepare(session)
        except AnnounceError as error:
            session.add(refusal(name, session.target.site, error, 0))
    for name, action in actions.items():
        try:
            action()
        except AnnounceError as error:
            session.add(refusal(name, session.target.site, error))
        except Error as error:
            session.report.environment_failed = True
            session.add(
                Outcome(name, session.target.site, "failed", detail=str(error), code=error.code)
            )

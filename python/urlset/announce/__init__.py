"""Telling the search engines.

``target`` says what, ``options`` to whom and how; each engine has a module with a ``prepare`` that
checks everything that can be checked on this machine and returns what sends. All engines are
prepared before the first request goes out. ``session`` is what they share, ``report`` what comes
of it. They are imported when the call is made: start-up counts.
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
    """Tell search engines of the sitemaps of ``target``, or of the URLs that changed.

    Keys come from files or from the environment: ``URLSET_INDEXNOW_KEY``, ``URLSET_BING_KEY``,
    ``URLSET_YANDEX_TOKEN``; ``URLSET_GOOGLE_KEY_FILE`` or ``GOOGLE_APPLICATION_CREDENTIALS`` name
    the JSON file of a service account.

    Args:
        target: the output folder of a build, a sitemap index, or the address of one.
        to: of ``robots``, ``indexnow``, ``google``, ``bing``, ``yandex``.
        robots: the robots.txt whose block of ``Sitemap`` lines is brought up to date.
        check: ask whether the live robots.txt lists all indexes, and write none.
        changes: the change feed of a build: IndexNow and Bing are told of its URLs.
        urls: a list of URLs in its place.
        key_file: where a key is: IndexNow's, or ``{engine: path}``.
        key_location: address of the IndexNow key file where it is not ``https://HOST/KEY.txt``.
        init_key: only make an IndexNow key and the file that proves it to the site.
        hosts: for which hosts the IndexNow key may be used: ``same`` as the target's, ``any``, or
            a list. Engines fetch the key's file from each host: a foreign host in the data would
            learn the key.
        all: send a full set to IndexNow too, as after a move.
        property: Search Console's ``sc-domain:HOST`` or URL prefix, by default the site's root;
            or ``{engine: value}`` with Bing's site address or Yandex's host id.
        status: ask Search Console what became of the sitemaps, and submit nothing.
        yandex_user: number of the Yandex user; asked for when not given.
        endpoint: another address of an engine, or ``{engine: address}``: https, or http to this
            machine.
        sitemap_url: address of the folder, where no manifest tells it.
        state: in place of ``TARGET/.urlset``.
        timeout: seconds for one exchange.
        retries: of a request that failed.
        max_wait: seconds that one request may wait because an engine asks for patience.
        dry_run: send and write nothing, ``show`` the requests.
        notify: is told in one line what is going on.
        show: is given each request of a dry run, keys masked.
        report: is filled and returned; holds what was done so far when an exception is raised.

    Returns:
        What was accepted by whom; refusals of engines are in it and are not raised.

    Raises:
        ConfigError: wrong options, a missing or malformed key; nothing was sent.
        InputError: the target or the feed cannot be read; nothing was sent.
        KeyboardInterrupt: what was accepted is in the journal: the same call continues.
    """
    import time
    from pathlib import Path

    from ..outfile import must_be_local
    from .options import Options, endpoints, key_files, properties, read_engines, read_hosts
    from .report import AnnounceReport
    from .secrets import Keyring
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
    """Prepare all engines, then let each send; one that refuses does not stop the others."""
    from importlib import import_module

    from ..errors import AnnounceError, Error
    from .report import Outcome

    actions: dict[str, Callable[[], None]] = {}
    for name in session.options.to:
        module = import_module(f".{name}", __package__)
        try:
            actions[name] = module.prepare(session)
        except AnnounceError as error:
            session.add(session.refusal(name, session.target.site, error, 0))
    for name, action in actions.items():
        try:
            action()
        except AnnounceError as error:
            session.add(session.refusal(name, session.target.site, error))
        except Error as error:
            session.report.environment_failed = True
            session.add(
                Outcome(name, session.target.site, "failed", detail=str(error), code=error.code)
            )

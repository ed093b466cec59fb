"""Announcing sitemaps and changed URLs to search engines.

::

    target, options --> prepare of each engine --> send --> report
                        robots indexnow google bing yandex

Each engine has a module with a function ``prepare``, which makes all local checks and returns the
function that sends. All engines are prepared before the first request. ``session`` contains their
common state. The modules are imported by the call, to keep the start-up short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Unpack

    from ..keywords import AnnounceKeywords
    from .report import AnnounceReport, EngineOutcome, SitemapStatus
    from .session import Session

    StrPath = str | os.PathLike[str]

__all__ = ["AnnounceReport", "EngineOutcome", "SitemapStatus", "announce"]


def announce(
    target: StrPath,
    *,
    notify: Callable[[str], None] | None = None,
    show: Callable[[str], None] | None = None,
    report: AnnounceReport | None = None,
    **options: Unpack[AnnounceKeywords],
) -> AnnounceReport:
    """Announces the sitemaps of ``target``, or the URLs that changed, to search engines.

    Keys come from files or from the environment: ``URLSET_INDEXNOW_KEY``, ``URLSET_BING_KEY``,
    ``URLSET_YANDEX_TOKEN``; ``URLSET_GOOGLE_KEY_FILE`` or ``GOOGLE_APPLICATION_CREDENTIALS`` name
    the JSON file of a service account.

    Args:
        target: the output folder of a build, a sitemap index, or the URL of one.
        notify: receives one line for each step.
        show: receives each request of a dry run, with keys masked.
        report: is filled and returned; after an exception it contains what was done before.
        options: those of ``urlset announce --help``, with underscores. ``to`` and ``hosts`` also
            accept lists; ``key_file``, ``property`` and ``endpoint`` also ``{engine: value}``.

    Returns:
        What each engine accepted; refusals are in it and are not raised.

    Raises:
        ConfigError: wrong options, a missing or malformed key; nothing was sent.
        InputError: the target or the list of URLs cannot be read; nothing was sent.
        KeyboardInterrupt: the journal contains the accepted URLs: the same call continues.
    """
    import time
    from pathlib import Path

    from ..outfile import is_store
    from ..transport.keyring import Keyring
    from .options import AnnounceOptions
    from .report import AnnounceReport
    from .session import Session
    from .target import read_target

    started = time.monotonic()
    report = AnnounceReport() if report is None else report
    chosen = AnnounceOptions(**options)  # type: ignore[arg-type] # wider types, converted there
    chosen.check_all()
    report.dry_run = chosen.dry_run
    if is_store(target):
        from .store import read_store

        found = read_store(target, chosen.state, chosen.sitemap_url)
    else:
        place = target if isinstance(target, str) else Path(target)
        found = read_target(place, state=chosen.state, sitemap_url=chosen.sitemap_url)
    with Keyring() as keyring:
        session = Session(found, chosen, keyring, notify=notify, show=show, report=report)
        with session.stack:
            try:
                if chosen.init_key:
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
    if name in ("AnnounceReport", "EngineOutcome", "SitemapStatus"):
        from . import report

        return getattr(report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _run(session: Session) -> None:
    """Prepares all engines, then each one sends; a refusal does not stop the others."""
    from importlib import import_module

    from ..errors import AnnounceError, Error
    from .report import EngineOutcome
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
                EngineOutcome(
                    name, session.target.site, "failed", detail=str(error), code=error.code
                )
            )

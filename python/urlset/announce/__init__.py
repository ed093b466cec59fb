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
    from collections.abc import Callable
    from typing import Unpack

    from ..keywords import AnnounceKeywords
    from .report import AnnounceReport, Outcome, SitemapStatus
    from .session import Session

    StrPath = str | os.PathLike[str]

__all__ = ["AnnounceReport", "Outcome", "SitemapStatus", "announce"]


def announce(
    target: StrPath,
    *,
    notify: Callable[[str], None] | None = None,
    show: Callable[[str], None] | None = None,
    report: AnnounceReport | None = None,
    **options: Unpack[AnnounceKeywords],
) -> AnnounceReport:
    """Tell search engines of the sitemaps of ``target``, or of the URLs that changed.

    Keys come from files or from the environment: ``URLSET_INDEXNOW_KEY``, ``URLSET_BING_KEY``,
    ``URLSET_YANDEX_TOKEN``; ``URLSET_GOOGLE_KEY_FILE`` or ``GOOGLE_APPLICATION_CREDENTIALS`` name
    the JSON file of a service account.

    Args:
        target: the output folder of a build, a sitemap index, or the address of one.
        notify: is told in one line what is going on.
        show: is given each request of a dry run, keys masked.
        report: is filled and returned; holds what was done so far when an exception is raised.
        options: those of ``urlset announce --help``, with underscores. ``to`` and ``hosts`` also
            take lists; ``key_file``, ``property`` and ``endpoint`` also take ``{engine: value}``.

    Returns:
        What was accepted by whom; refusals of engines are in it and are not raised.

    Raises:
        ConfigError: wrong options, a missing or malformed key; nothing was sent.
        InputError: the target or the feed cannot be read; nothing was sent.
        KeyboardInterrupt: what was accepted is in the journal: the same call continues.
    """
    import time
    from pathlib import Path

    from .options import AnnounceOptions
    from .report import AnnounceReport
    from .secrets import Keyring
    from .session import Session
    from .target import read_target

    started = time.monotonic()
    report = AnnounceReport() if report is None else report
    chosen = AnnounceOptions(**options)  # type: ignore[arg-type] # wider types, converted there
    chosen.check_all()
    report.dry_run = chosen.dry_run
    found = read_target(
        target if isinstance(target, str) else Path(target),
        state=chosen.state,
        sitemap_url=chosen.sitemap_url,
    )
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
    if name in ("AnnounceReport", "Outcome", "SitemapStatus"):
        from . import report

        return getattr(report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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

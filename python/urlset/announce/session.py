"""One run of ``announce``: the common state of its engines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..errors import AnnounceError
from ..transport.keyring import Keyring
from .address import endpoint
from .client import EngineClient, Request
from .options import AnnounceOptions
from .report import AnnounceReport, EngineOutcome, Result
from .target import Target

_T = TypeVar("_T")

#: ends of the codes of errors for which the engine gave no verdict
_UNDECIDED = (".unanswered", ".throttled", ".redirect", ".interrupted")


class Session:
    """
    Attributes:
        stack: the resources that are open until the run ends.
        stop: set when the run is interrupted: every wait ends at once.
        report: filled while the engines work.
    """

    def __init__(
        self,
        target: Target,
        options: AnnounceOptions,
        keyring: Keyring,
        *,
        notify: Callable[[str], None] | None,
        show: Callable[[str], None] | None,
        report: AnnounceReport,
    ) -> None:
        self.target, self.options, self.keyring = target, options, keyring
        self.stop = threading.Event()
        self.stack = ExitStack()
        self.report = report
        self._notify = notify or (lambda _line: None)
        self._show = show or (lambda _text: None)

    @property
    def dry_run(self) -> bool:
        return self.options.dry_run

    def open(self, resource: AbstractContextManager[_T]) -> _T:
        """Enters a context that is left when the run ends."""
        return self.stack.enter_context(resource)

    def add(self, outcome: EngineOutcome) -> None:
        """Adds a line to the report, with keys masked."""
        hide = self.keyring.hide
        self.report.outcomes.append(
            replace(outcome, what=hide(outcome.what), detail=hide(outcome.detail))
        )

    def warn(self, line: str) -> None:
        self.report.warnings.append(self.keyring.hide(line))

    def notify(self, line: str) -> None:
        """Reports progress."""
        self._notify(self.keyring.hide(line))

    def show(self, text: str) -> None:
        """Reports a request of a dry run, with keys masked."""
        self._show(self.keyring.hide(text))

    def endpoint(self, engine: str, default: str) -> str:
        """The URL of ``engine``; only the option of that name can change it."""
        return endpoint(self.options.endpoints.get(engine), default)

    def key_file(self, engine: str) -> Path | None:
        return self.options.key_files.get(engine)

    def client(
        self, engine: str, base: str, *, redirects: bool = False, allow_private: bool = True
    ) -> EngineClient:
        options = self.options
        return EngineClient(
            engine,
            base,
            self.keyring,
            self.stop,
            timeout=options.timeout,
            retries=options.retries,
            max_wait=options.max_wait,
            notify=self.notify,
            redirects=redirects,
            allow_private=allow_private,
        )

    def submit_each(
        self,
        engine: str,
        indexes: Sequence[str],
        request: Callable[[str], Request],
        submit: Callable[[str], str | None],
    ) -> bool:
        """Submits and reports each index; in a dry run shows its request instead.

        After a refusal of one index the others are tried; any other error applies to all of them.

        Args:
            submit: sends the request; may return a detail of the success.

        Returns:
            Whether to go on with this engine.
        """
        for position, index in enumerate(indexes):
            if self.dry_run:
                self.show(request(index).text())
                self.add(EngineOutcome(engine, index, "planned"))
                continue
            try:
                detail = submit(index) or ""
            except AnnounceError as error:
                single = error.code in (f"{engine}.refused", f"{engine}.answer")
                for one in [index] if single else indexes[position:]:
                    self.add(refusal(engine, one, error))
                if not single:
                    return False
            else:
                self.add(EngineOutcome(engine, index, "accepted", 1, 1, requests=1, detail=detail))
        return True


def is_undecided(error: AnnounceError) -> bool:
    """Whether the engine gave no verdict: it was not reached, or the run was interrupted."""
    return error.code.endswith(_UNDECIDED)


def interrupted(engine: str) -> AnnounceError:
    return AnnounceError(
        "interrupted; the same command continues where it stopped", code=f"{engine}.interrupted"
    )


def refusal(engine: str, what: str, error: AnnounceError, total: int = 1) -> EngineOutcome:
    """The line of the report for an error."""
    result: Result = "failed" if is_undecided(error) else "refused"
    return EngineOutcome(engine, what, result, total, detail=str(error), code=error.code)

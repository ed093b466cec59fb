"""One run of ``announce``: what its engines share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..errors import AnnounceError
from .address import endpoint
from .http import Http, Request
from .options import AnnounceOptions
from .report import AnnounceReport, Outcome, Result
from .secrets import Keyring
from .target import Target

_T = TypeVar("_T")


class Session:
    """
    Attributes:
        stack: what is open until the run ends.
        stop: set when the run is interrupted: what waits ends at once.
        report: grows while the engines work.
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

    def open(self, thing: AbstractContextManager[_T]) -> _T:
        """``thing``, entered, and left when the run ends."""
        return self.stack.enter_context(thing)

    def add(self, outcome: Outcome) -> None:
        """Put a line into the report; no key passes."""
        hide = self.keyring.hide
        self.report.outcomes.append(
            replace(outcome, what=hide(outcome.what), detail=hide(outcome.detail))
        )

    def warn(self, line: str) -> None:
        self.report.warnings.append(self.keyring.hide(line))

    def notify(self, line: str) -> None:
        """Tell what is going on."""
        self._notify(self.keyring.hide(line))

    def show(self, text: str) -> None:
        """Print a request of a dry run, its keys masked."""
        self._show(self.keyring.hide(text))

    def endpoint(self, engine: str, default: str) -> str:
        """Where ``engine`` is asked: nothing but the option of that name can change it."""
        return endpoint(self.options.endpoints.get(engine), default)

    def key_file(self, engine: str) -> Path | None:
        return self.options.key_files.get(engine)

    def http(
        self, engine: str, base: str, *, follows: bool = False, allow_private: bool = True
    ) -> Http:
        options = self.options
        return Http(
            engine,
            base,
            self.keyring,
            self.stop,
            timeout=options.timeout,
            retries=options.retries,
            max_wait=options.max_wait,
            notify=self.notify,
            follows=follows,
            allow_private=allow_private,
        )

    def submit_each(
        self,
        engine: str,
        indexes: Sequence[str],
        request: Callable[[str], Request],
        submit: Callable[[str], str],
    ) -> bool:
        """Submit each index and report it; in a dry run show its request instead.

        A refusal of one index leaves the others to be tried; any other error is that of them all.

        Args:
            submit: returns what to say of the success.

        Returns:
            Whether to go on with this engine.
        """
        for position, index in enumerate(indexes):
            if self.dry_run:
                self.show(request(index).text())
                self.add(Outcome(engine, index, "planned"))
                continue
            try:
                said = submit(index)
            except AnnounceError as error:
                single = error.code in (f"{engine}.refused", f"{engine}.answer")
                for one in [index] if single else indexes[position:]:
                    self.add(self.refusal(engine, one, error))
                if not single:
                    return False
            else:
                self.add(Outcome(engine, index, "accepted", 1, 1, requests=1, detail=said))
        return True

    @staticmethod
    def refusal(engine: str, what: str, error: AnnounceError, total: int = 1) -> Outcome:
        """The line for an error."""
        unasked = error.code.endswith((".unanswered", ".throttled", ".redirect", ".interrupted"))
        result: Result = "failed" if unasked else "refused"
        return Outcome(engine, what, result, total, detail=str(error), code=error.code)

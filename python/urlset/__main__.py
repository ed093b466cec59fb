"""The command ``urlset``, and ``python -m urlset``."""

from __future__ import annotations

# Before all other imports, which take 100 ms. _signal is the C part of signal, which itself imports
# enum: that takes longer than everything else up to here.
import _signal  # type: ignore[import-not-found] # no stub
import os


def _leave(number: int, _frame: object) -> None:
    """Exits at once: there is nothing to clean up yet."""
    os._exit(128 + number)


def handle_early_signals() -> None:
    """Lets SIGINT and SIGTERM end the process until a command installs its handlers."""
    # an ignored signal stays ignored, as with nohup
    for number, usual in (
        (_signal.SIGINT, _signal.default_int_handler),
        (_signal.SIGTERM, _signal.SIG_DFL),
    ):
        if _signal.getsignal(number) == usual:
            _signal.signal(number, _leave)


def main() -> None:
    """Runs the command line; a signal ends the process also before a command runs."""
    handle_early_signals()
    from .cli import main as run

    run()


if __name__ == "__main__":
    main()

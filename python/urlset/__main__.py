"""The command ``urlset``, and ``python -m urlset``."""

from __future__ import annotations

# Before all other imports, which take a tenth of a second. It is what the module signal is made of,
# whose own imports take longer than all else until here.
import _signal  # type: ignore[import-not-found] # no stub
import os


def _leave(number: int, _frame: object) -> None:
    """Nothing has been done that would have to be cleaned up."""
    os._exit(128 + number)


def heed_signals() -> None:
    """Has SIGINT and SIGTERM end the process until a command has handlers of its own."""
    # one that is ignored, as under nohup, stays so
    for number, usual in (
        (_signal.SIGINT, _signal.default_int_handler),
        (_signal.SIGTERM, _signal.SIG_DFL),
    ):
        if _signal.getsignal(number) == usual:
            _signal.signal(number, _leave)


def main() -> None:
    """Run the command line; a signal ends the process, also before a command is there to see it."""
    heed_signals()
    from .cli import main as run

    run()


if __name__ == "__main__":
    main()

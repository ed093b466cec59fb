"""The command line: ``urlset init | build | verify | audit | read | diff | announce | clean``.

Each command is a module, imported when the command is called, to keep the start-up short.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from importlib import import_module

import click

from ..errors import Error
from ..wording import one_line

COMMANDS = {
    "init": "inspect the columns of an input and write a commented urlset.toml",
    "build": "turn a catalog into sitemaps and publish them",
    "verify": "check sitemaps of any producer: a file, a folder, a URL",
    "audit": "fetch a sample of the listed pages and estimate how many are bad",
    "read": "turn sitemaps back into rows",
    "diff": "show which URLs were added, changed, removed",
    "announce": "announce sitemaps and changes to search engines",
    "clean": "remove what killed builds left",
}


class _Lazy(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{name}", __package__), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from .. import __version__
    from ..build.gzip import encoder_name

    click.echo(f"urlset {__version__} (gzip by {encoder_name()})")
    ctx.exit()


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="urlset COMMAND --help shows options and examples.",
)
@click.option(
    "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True,
    help="Show the version and the gzip encoder.",
)  # fmt: skip
def cli() -> None:
    """Turn catalogs of millions of rows into sitemaps, and keep them valid."""


#: the address of the documentation, which is that in mkdocs.yml
DOCUMENTATION = "https://urlset.github.io/urlset/"
#: errors of a write
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main(argv: list[str] | None = None) -> None:
    """Runs the command line and exits with its status."""
    if argv is None:  # the main program of this process
        _open_streams()
        # pyarrow imports them if they are installed, which takes 0.3 s; urlset does not use them
        missing = dict.fromkeys(("numpy", "pandas"))
        sys.modules.update(missing)  # type: ignore[arg-type] # None: as if not installed
    try:
        status = cli.main(args=argv, prog_name="urlset", standalone_mode=False)
    except click.exceptions.Abort:
        status = 130
    except KeyboardInterrupt:
        status = 130
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())  # the help
        status = 2
    except click.ClickException as error:
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f" (see '{error.ctx.command_path} --help')"
        _print_error(f"{error.format_message()}{hint}")
        status = 2 if isinstance(error, click.UsageError) else 3
    except Error as error:
        _print_error(f"{error} [{error.code}]")
        _print_page(error.code)
        status = error.exit_status
    except BrokenPipeError:
        # the reader of the output has ended; Python must not fail again when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 3
    except Exception as error:
        if os.environ.get("URLSET_TRACEBACK"):
            raise
        status = _unexpected(error)
    status = status if isinstance(status, int) else 0
    if argv is not None:
        sys.exit(status)
    # everything is closed; Python would clean up for 8 ms more, and a signal in that time would
    # change the exit status
    try:
        if sys.stdout is not None:  # as with >&-
            sys.stdout.flush()
    except BrokenPipeError:
        status = 3
    except OSError as error:
        status = _unexpected(error)
    os._exit(status)


class _SafeStderr(io.TextIOWrapper):
    """Standard error that may be full or closed: a failed message does not fail the command."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def _open_streams() -> None:
    """Keeps the numbers of closed standard streams from the files that are opened next.

    Writing to a closed output and reading from a closed input still fail.
    """
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                # open() returns the lowest free number, which is this one
                os.open(os.devnull, mode)
    with suppress(AttributeError, OSError):  # not a stream of the operating system
        buffer = sys.stderr.buffer if sys.stderr is not None else os.fdopen(2, "wb", closefd=False)
        encoding = getattr(sys.stderr, "encoding", "utf-8")
        sys.stderr = _SafeStderr(buffer, encoding, "backslashreplace", line_buffering=True)


def _unexpected(error: Exception) -> int:
    """Prints an error that no other module explained; returns the exit status."""
    from ..threads import REFUSED, is_refused

    if isinstance(error, OSError):
        place = error.filename
        if place is None and error.errno in UNWRITABLE:
            place = "standard output"  # an error of a file has its name
        message = f"{f'{place}: ' if place else ''}{error.strerror or error}"
    elif isinstance(error, MemoryError):
        message = (
            "there is not enough memory; allow more (ulimit -v, or the limit of the container), or"
            " use fewer --threads [system.memory]"
        )
    elif is_refused(error):  # by a library
        message = f"{REFUSED} [system.threads]"
    else:
        message = (
            f"internal error: {type(error).__name__}: {error}; this is a bug in urlset,"
            " please report it with the traceback that URLSET_TRACEBACK=1 shows"
        )
    _print_error(message)
    return 3


def _print_error(message: str) -> None:
    click.echo(f"urlset: error: {one_line(message)}", err=True)


def _print_page(code: str) -> None:
    """Prints where a code is explained, on a terminal only: elsewhere an error is one line."""
    if sys.stderr.isatty():
        click.secho(f"see: {DOCUMENTATION}reference/codes/#{code}", dim=True, err=True)

"""Every way in which a command can end badly, as one line and an exit code: no traceback, no value from the rows."""

import errno
import functools
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer

from understudy.cli import screen
from understudy.errors import UnderstudyError

INTERRUPTED = 130
WRONG_USE = 2
PACKAGE = Path(__file__).parents[1]
debug: ContextVar[bool] = ContextVar("debug", default=False)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with its exceptions turned into messages and exit codes."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        code = 0
        try:
            with _own_warnings_only(), _no_stray_tracebacks():
                command(*arguments, **options)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            screen.note("\nstopped by Ctrl-C; no output was written")
            code = INTERRUPTED
        except UnderstudyError as error:
            screen.note(f"error: {error}", style="red")
            code = error.exit_code
        except Exception as error:
            screen.note(f"error: {_told(error)}", style="red")
            code = WRONG_USE
        if code:
            raise typer.Exit(code)

    return run


def _told(error: Exception) -> str:
    """What may be said of an exception that nobody expected: its kind and place. Its message may hold values."""
    if isinstance(error, MemoryError):
        return "not enough memory; use a machine with more, fewer rows at a time (-n), or fewer columns in the schema"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full; nothing was written, make room or choose another place"
    if isinstance(error, OSError) and error.strerror:
        return f"the system refused: {error.strerror}"
    if debug.get():
        screen.note("the traceback below may show private values: keep it to yourself", style="yellow")
        traceback.print_exc(file=sys.stderr)
    return (
        f"something unexpected happened ({type(error).__name__} in {_place(error)}). This is a defect: please report "
        "it with this line. `understudy --debug ...` shows more, but that may hold private values"
    )


def _place(error: Exception) -> str:
    """The innermost line of this package, without the path to it."""
    place = "the command line"
    for frame in traceback.extract_tb(error.__traceback__):
        if PACKAGE in Path(frame.filename).parents:
            place = f"{Path(frame.filename).relative_to(PACKAGE.parent).as_posix()}, line {frame.lineno}"
    return place


@contextmanager
def _own_warnings_only() -> Iterator[None]:
    """Shows what this package itself warns of; other libraries' warnings are for programmers, and may quote values."""

    def show(message: Warning | str, category: type[Warning], filename: str, *_: Any) -> None:
        if category is UserWarning and PACKAGE in Path(filename).parents:
            screen.note(f"warning: {message}", style="yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


@contextmanager
def _no_stray_tracebacks() -> Iterator[None]:
    """Exceptions that Python can only ignore (inside a library's callback, a finaliser) would else be printed whole."""
    usual = sys.unraisablehook
    if not debug.get():
        sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = usual

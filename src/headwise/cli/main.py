"""The table of commands, and what their failures look like: one line of cause and remedy, and an exit code."""

import logging
import os
import sys
from collections.abc import Callable, Sequence

import typer
from typer.exceptions import Abort, Exit, TyperException

from headwise import __version__
from headwise.cli.data import check
from headwise.cli.demo import demo
from headwise.cli.doctor import doctor
from headwise.cli.evaluate import evaluate, score
from headwise.cli.info import info
from headwise.cli.models import add, list_models, remove, verify
from headwise.cli.train import train, write_run_file
from headwise.cli.translate import translate
from headwise.errors import HeadwiseError, Interrupted

COMMANDS: dict[str, Callable[..., int | None]] = {
    "demo": demo,
    "train": train,
    "translate": translate,
    "evaluate": evaluate,
    "score": score,
    "info": info,
    "init": write_run_file,
    "doctor": doctor,
    "data check": check,
    "models list": list_models,
    "models add": add,
    "models verify": verify,
    "models remove": remove,
}

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
groups = {
    "data": typer.Typer(no_args_is_help=True, help="Look at parallel text."),
    "models": typer.Typer(no_args_is_help=True, help="List, add, verify and remove models by name."),
}
for group, verbs in groups.items():
    app.add_typer(verbs, name=group)
for name, command in COMMANDS.items():
    group, _, verb = name.rpartition(" ")
    groups.get(group, app).command(verb)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"headwise {__version__}")
        raise Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """The Transformer of "Attention Is All You Need", end to end."""


def main(arguments: Sequence[str]) -> int:
    """Run one command; 0 done, 1 our fault, 2 the user's, 130 and 143 for signals."""
    debug = "--debug" in arguments
    if sys.stderr.isatty():  # a person may wonder what takes so long
        logging.basicConfig(format="%(message)s")
        logging.getLogger("headwise").setLevel(logging.INFO)
    try:
        code = app(list(arguments) or ["--help"], prog_name="headwise", standalone_mode=False)
        sys.stdout.flush()
    except (HeadwiseError, TyperException) as error:
        if debug:
            raise
        for line in _explain(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 2
    except (Abort, KeyboardInterrupt):
        return 130
    except Interrupted as signal:
        return 128 + signal.number
    except (BrokenPipeError, SystemExit):  # the reader of a pipe has left, which typer and rich turn into an exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a disk, a permission, a name that no file can have
        if debug:
            raise
        print(f"error: cannot use {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return 2
    except Exception as error:
        if debug:
            raise
        print(f"internal error: {type(error).__name__}: {error}; add --debug for the traceback", file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> str:
    if isinstance(error, HeadwiseError):
        return str(error)
    message = " ".join(getattr(error, "format_message", error.__str__)().split())  # wrong arguments, found by typer
    return f"{message} (headwise --help shows how)" if message else ""  # without one, help was shown instead


def run() -> None:
    """The console script."""
    code = main(sys.argv[1:])
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:  # torch's threads of several processes may abort while Python ends
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)

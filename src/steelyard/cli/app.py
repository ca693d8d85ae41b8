"""The command-line program: its commands, its exit codes, and errors in one line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter, RepeatArgumentError

from .. import __version__
from ..errors import SteelyardError

app = App(
    name="steelyard",
    help="Identify and calibrate robot arms: from a robot description and recorded motion to parameters you can trust.",
    version=__version__,
    version_flags=["--version", "-V"],
    # Help texts say what happens by default; flags have no --no-... form.
    default_parameter=Parameter(show_default=False, negative=""),
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # reported in one line below
)
COMMANDS = (
    "robots", "model", "init", "check", "simulate", "design", "identify", "export", "gains", "payload", "predict",
    "compare", "calibrate", "apply", "poses", "montecarlo", "fleet", "papers", "show", "demo",
)  # fmt: skip
"""Each is a module of this package: options, work and printing. Only that of the command that runs is imported; the
packages that do the work are imported inside its functions, so that ``--help`` is instant."""

for _command in COMMANDS:
    app.command(f"{__package__}.{_command}:{_command}", name=_command)


Shell = Literal["bash", "zsh", "fish", "powershell"]


@app.command(name="--completion")
def completion(shell: Annotated[Shell, Parameter(help="The shell.")], /) -> None:
    """Print the completion script of a shell: eval "$(steelyard --completion bash)"."""
    print(app.generate_completion(shell=shell))


@app.command(name="--install-completion")
def install_completion(
    shell: Annotated[Shell | None, Parameter(help="The shell; default: the one that runs.")] = None, /
) -> None:
    """Install completion for a shell, in its own folder and start-up file."""
    from cyclopts.completion.detect import ShellDetectionError

    try:
        print(f"completion: {app.install_completion(shell=shell)}; open a new shell to use it")
    except ShellDetectionError:
        raise SteelyardError("which shell runs is not known; name it: --install-completion bash") from None
    except OSError as error:
        raise SteelyardError(f"completion cannot be installed ({error}); print it with --completion instead") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 when done and good, 1 after an error (one line on stderr), 2 for a poor verdict."""
    # Work is shared by threads of our own; those of BLAS would make the last digits depend on the number of cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names need not fit the terminal's encoding
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    if not tokens or tokens[0] in app.help_flags:
        app.resolved_commands()  # the list of commands has their summaries
    try:
        code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return code or 0
    except RepeatArgumentError as error:
        option = error.token.keyword or "an option"
        return _fail(tokens, "usage", f"{option}: given twice, or together with its opposite; give one of them")
    except CycloptsError as error:
        return _fail(tokens, "usage", " ".join(str(error).split()).rstrip(".") + "; see 'steelyard --help'")
    except SteelyardError as error:
        return _fail(tokens, type(error).__name__, str(error))
    except KeyboardInterrupt:
        return _fail(tokens, "interrupted", "interrupted; files that were written before are whole")
    except BrokenPipeError:
        # The reader of our output (such as head) has closed it; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(tokens: Sequence[str], kind: str, message: str) -> int:
    from .output import fail

    return fail(tokens, kind, message)

"""One case: a valid input, damaged as its number says, read within limits of time and memory."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType

from steelyard.errors import SteelyardError

from .kinds import KINDS, Files
from .mutations import mutated

LONGEST_MESSAGE = 500
MOST_SECONDS = 10.0
"""Of CPU: on a machine with other work a case may wait for much longer than it computes."""
MOST_MEMORY = 1e9
_STUCK = 60.0
"""After this [s] on the clock a case that waits, or that not even a signal stops, ends its process."""
_ADDRESS_SPACE = 8 << 30
_PEAK_RESET = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class TooSlow(BaseException):
    """Raised by the alarm; no handler of errors in a reader catches it."""


@dataclass(frozen=True)
class Outcome:
    """How a case went; ``fault`` is empty if all is as it should be."""

    seconds: float
    memory: float
    fault: str = ""


def case_files(kind: str, number: int) -> Files:
    """Return the files of a case, one of them damaged."""
    rng = Random(f"{kind}:{number}")
    files = dict(rng.choice(_examples(kind)))
    names = sorted(name for name in files if name.endswith(KINDS[kind].damaged))
    name = rng.choice(names)
    files[name] = mutated(rng, name, files[name])
    return files


@cache
def _examples(kind: str) -> tuple[Files, ...]:
    return tuple(KINDS[kind].examples())


def write_case(kind: str, number: int, folder: Path) -> None:
    """Write the files of a case into a folder; what else is in it goes."""
    folder.mkdir(parents=True, exist_ok=True)
    files = case_files(kind, number)
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def run_case(kind: str, number: int, folder: Path) -> Outcome:
    """Read one case in this process; the folder is used for its files."""
    faulthandler.dump_traceback_later(_STUCK, exit=True)
    write_case(kind, number, folder)
    printed = _stderr_size()
    memory = _start_of_memory()
    start = time.process_time()
    try:
        with _alarm(MOST_SECONDS):
            KINDS[kind].read(folder)
        fault = ""
    except SteelyardError as error:
        fault = _fault_of_message(str(error))
    except TooSlow:
        fault = f"takes more than {MOST_SECONDS:g} s"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a reader lets out is what is looked for; panics are no Exception
        fault = f"{type(error).__name__}: {str(error)[:200]} [{_place(error)}]"
    seconds, used = time.process_time() - start, _memory_used(memory)
    faulthandler.cancel_dump_traceback_later()
    if not fault and used > MOST_MEMORY:
        fault = f"takes {used / 1e6:.0f} MB"
    if not fault and _stderr_size() != printed:
        fault = "writes to stderr"
    return Outcome(seconds, used, fault)


def _fault_of_message(message: str) -> str:
    if len(message) > LONGEST_MESSAGE:
        return f"message of {len(message)} letters: {message[:100]}"
    return "" if message.isprintable() and message.strip() else f"message that is no line: {message[:100]!r}"


def _place(error: BaseException) -> str:
    """Return where in the package an error was raised."""
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if f"{os.sep}steelyard{os.sep}" in name:
            place = f"{Path(name).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def prepare_process() -> None:
    """Make warnings errors, bound the address space and send stderr to a file, so that what is printed is seen."""
    warnings.simplefilter("error")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, hard))
    with Path(os.environ["FUZZ_STDERR"]).open("ab") as errors:
        os.dup2(errors.fileno(), sys.stderr.fileno())


def _stderr_size() -> int:
    sys.stderr.flush()
    return os.fstat(sys.stderr.fileno()).st_size


def _start_of_memory() -> float:
    """Forget the largest memory so far where the system can (Linux), and return what is in use."""
    if _PEAK_RESET.exists():
        _PEAK_RESET.write_text("5")
    return _peak_memory()


def _memory_used(before: float) -> float:
    return max(0.0, _peak_memory() - before)


def _peak_memory() -> float:
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024.0 * int(line.split()[1])
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

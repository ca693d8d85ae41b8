"""Drive gains and payloads of real arms: gains of one pair of recordings, mass on the other; what is not identifiable.

    python -m benchmarks gains

A UR10e without and with 2.805 kg on two days (gains of one day, mass of the other), the same with published gains, the
AIRBOT whose drives report torques of unknown gain, and a gripper on a force/torque sensor. The recordings are not part
of the product: their folder is named by the environment variable STEELYARD_DATA.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.calibration_data import data_folder
from steelyard.cli import main as steelyard

SETUPS = Path(__file__).parent / "data"
MASS = 2.805
PAIRS = {
    "January": ("ur-20_01_31-unload", "ur-20_01_31-load"),
    "February": ("ur-20_02_19_14harm50sec", "ur-20_02_19_14harm50secLoad"),
}
FRICTION = ("--effects", "+Fgm,+Fd2m,+Fd3m,+Fvrm")


def called(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and JSON of a command."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        code = steelyard([*arguments, "--json"])
    return code, json.loads(printed.getvalue())


def _setup(name: str) -> list[str]:
    return ["--config", str(SETUPS / f"{name}.toml"), "--root", str(data_folder())]


def _log(name: str) -> str:
    return f"ur10e/identification/{name}.csv"


def gains_of(day: str, out: Path) -> dict[str, Any]:
    """Find and save the gains of the UR10e on one day."""
    logs = [_log(name) for name in PAIRS[day]]
    return called("gains", "ur10e", *logs, "--mass", str(MASS), *_setup("ur10e"), "--out", str(out))[1]


def mass_of(day: str, out: Path, *options: str) -> tuple[float, float]:
    """Return mass and sigma of the payload on one day, the arm identified on the same day."""
    unloaded, loaded = PAIRS[day]
    called("identify", "ur10e", _log(unloaded), *options, *_setup("ur10e"), "--out", str(out))
    found = called("payload", str(out), _log(loaded), *_setup("ur10e"))[1]["payload"]
    return found["mass"], found["mass_sigma"]


def run() -> None:
    """Print gains, masses and what is not identifiable."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for day in PAIRS:
            print(f"gains of {day} [N m/A], 95 % intervals")
            for one in gains_of(day, folder / day)["joints"]:
                low, high = one["interval_95"]
                print(f"  {one['joint']:20} {one['gain']:7.3f}  {low:.3f} to {high:.3f}  {one['grade']}")
        for known, judged in (("January", "February"), ("February", "January")):
            for label, options in (("plain friction", ()), ("all friction", FRICTION)):
                mass, sigma = mass_of(judged, folder / "arm", "--gains", str(folder / known), *options)
                print(f"gains of {known}, {label}: {_mass_text(mass, sigma)}")
        for day in PAIRS:
            print(f"published gains, {day}: {_mass_text(*mass_of(day, folder / 'arm'))}")
        _print_airbot(folder / "airbot")
    _print_gripper()


def _mass_text(mass: float, sigma: float) -> str:
    return f"{mass:.3f} +- {sigma:.3f} kg ({100 * (mass / MASS - 1):+.1f} %)"


def _print_airbot(out: Path) -> None:
    robot = str(data_folder() / "airbot_play/airbot_play_v3_0_gripper.urdf")
    called("identify", robot, "--table", "chirp", *_setup("airbot_play"), "--out", str(out))
    code, found = called("payload", str(out), "--table", "chirp_loaded", *_setup("airbot_play"))
    print(f"AIRBOT, exit code {code}: {found['error']['message']}")


def _print_gripper() -> None:
    options = ["--wrench", "--static", "--wrench-frame", "base", "--axis", "z"]
    found = called("payload", *options, *_setup("ft_gripper"))[1]
    bias = " ".join(f"{value:.5f}" for value in found["wrench"]["bias"])
    weight, height = 9.81 * found["payload"]["mass"], found["payload"]["centre"][2]
    print(f"gripper: weight {weight:.5f} N, centre z {height:.5f} m, bias {bias}")
    print("authors: weight 10.80391 N, centre z 0.05197 m, bias -2.13583 -2.76399 -13.07675 -0.15658 -0.07939 0.12979")


if __name__ == "__main__":
    run()

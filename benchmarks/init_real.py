"""Set-ups guessed from real logs beside those written by hand: right, unsure or wrong for every aspect.

    python -m benchmarks.init_real [--text]

The recordings are not part of the product: their folder is named by the environment variable STEELYARD_DATA.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.calibration_data import TABLES, data_folder
from steelyard.recording import SetupGuess, guess_setup

AIRBOT = "airbot_play/airbot_play_v3_0_gripper.urdf"


@dataclass(frozen=True)
class TrueChannel:
    """What the description of a set says of a channel.

    Attributes:
        columns: As a set-up selects them.
        unit: Unit of the numbers.
        side: ``joint`` or ``motor``; empty where it does not matter.
        kind: Torque kind; empty for others.
        sign: 1, -1, or 0 where joints differ.
    """

    columns: str | int
    unit: str
    side: str = ""
    kind: str = ""
    sign: int = 1


@dataclass(frozen=True)
class RealLogs:
    """Logs of one set and the truth about them.

    Attributes:
        name: Name of the set.
        robot: Catalogue name, file of the data folder, or file in ``benchmarks/data``.
        logs: Files or patterns of the data folder.
        truth: Channels by name; a torque by ``torque``.
    """

    name: str
    robot: str
    logs: tuple[str, ...]
    truth: dict[str, TrueChannel]


def _airbot(run: str, loaded: str = "") -> RealLogs:
    logs = tuple(f"airbot_play/{run}_motion_identification_{what}_real{loaded}.csv" for what in ("q", "tau"))
    torque = TrueChannel("tau{1..6}", "Nm", "joint", "motor_torque")
    return RealLogs(
        f"airbot_play {run}{loaded}", AIRBOT, logs, {"q": TrueChannel("q{0..5}", "rad", "joint"), "torque": torque}
    )


_LWR = {
    "time": TrueChannel("times", "s"), "q": TrueChannel("positions", "rad", "joint"),
    "qd": TrueChannel("velocities", "rad/s", "joint"), "torque": TrueChannel("torques", "Nm", "joint", "joint_torque"),
}  # fmt: skip
_UR = {
    "time": TrueChannel(1, "s"), "q": TrueChannel("2:7", "rad", "joint"), "qd": TrueChannel("8:13", "rad/s", "joint"),
    "torque": TrueChannel("14:19", "A", "", "motor_current"),
}  # fmt: skip
SETS = (
    RealLogs("franka_panda_gaz", "franka_panda", ("franka_panda_gaz/exciting_traj_*.txt",), {
        "time": TrueChannel(1, "s"), "q": TrueChannel("1:7", "rad", "joint"),
        "qd": TrueChannel("1:7", "rad/s", "joint"), "torque": TrueChannel("1:7", "Nm", "joint", "joint_torque"),
    }),
    RealLogs("kuka_lwr4", "kuka_lwr4", ("kuka_lwr4/measurements_*.npz",), _LWR),
    RealLogs("kuka_lwr4, own URDF", "kuka_lwr4/kuka_lwr4.urdf", ("kuka_lwr4/measurements_*.npz",), _LWR),
    RealLogs("staubli_tx40", "staubli_tx40", ("staubli_tx40/*.csv",), {
        "q": TrueChannel("Joint_{1..6}", "rad", "motor"),
        "torque": TrueChannel("Joint_{1..6}", "Nm", "motor", "motor_torque"),
    }),
    RealLogs("ur10e 30sec_12harm", "ur10e", ("ur10e/identification/ur-20_02_10-30sec_12harm.csv",), _UR),
    RealLogs("ur10e, all runs", "ur10e", ("ur10e/identification/*.csv",), _UR),
    _airbot("chirp"), _airbot("chirp", "_loaded"), _airbot("trapezoidal"),
)  # fmt: skip
ICUB = {
    "time": TrueChannel(1, "s"), "q": TrueChannel(2, "deg", "joint"), "qd": TrueChannel(3, "deg/s", "joint"),
    "torque": TrueChannel(4, "Nm", "joint", "joint_torque"),
}  # fmt: skip


def icub_logs(folder: Path) -> list[RealLogs]:
    """Write iCub's joints as text, a column for time and the six of each file without names; return them as logs."""
    from scipy.io import loadmat

    found = []
    for path in sorted((data_folder() / "icub_joint_friction" / "raw").glob("*.mat")):
        content = loadmat(path)
        log = folder / f"{path.stem}.csv"
        np.savetxt(log, np.column_stack([content["time"].ravel(), content["out"]]), delimiter=",")
        found.append(RealLogs(f"icub {path.stem}", str(TABLES / "one_joint.robot.toml"), (str(log),), ICUB))
    return found


def guess_of(case: RealLogs) -> SetupGuess:
    """Return the guess for a set."""
    folder = data_folder()
    own = folder / case.robot
    logs = [
        path
        for pattern in case.logs
        for path in (sorted(folder.glob(pattern)) if "*" in pattern else [folder / pattern])
    ]
    logs = [path for path in logs if path.name not in ("gen_q0.txt", "gen_params.txt")]
    return guess_setup(own if own.suffix in (".urdf", ".toml") else case.robot, logs, folder=folder)


def verdicts(case: RealLogs, guess: SetupGuess) -> list[tuple[str, str, str, str]]:
    """Return channel, aspect, confidence and ``right``, ``wrong`` or ``missing`` for all that the truth says."""
    rows = []
    for channel, true in case.truth.items():
        kinds = ("joint_torque", "motor_torque", "motor_current", "motor_pwm") if channel == "torque" else (channel,)
        item = next((one for one in guess.items if one.channel in kinds), None)
        if item is None:
            rows.append((channel, "columns", "unsure", "missing"))
            continue
        right = {
            "columns": item.columns == true.columns, "unit": item.unit == true.unit,
            "side": not true.side or item.side == true.side, "kind": not true.kind or item.channel == true.kind,
            "sign": all(sign == true.sign for sign in item.sign),
        }  # fmt: skip
        if channel == "time":
            right["unit"] = right["unit"] and right["columns"]
        for one in item.aspects:
            if one.aspect in right:
                rows.append((channel, one.aspect, one.confidence, "right" if right[one.aspect] else "wrong"))
    return rows


def table_row(case: RealLogs, rows: Sequence[tuple[str, str, str, str]]) -> str:
    """Return a line of the table: counts, and what is wrong or missing."""
    counts = [sum(row[2] == level and row[3] == "right" for row in rows) for level in ("sure", "likely", "unsure")]
    wrong = [f"{row[0]} {row[1]} ({row[2]})" for row in rows if row[3] != "right"]
    sure = sum(row[3] == "wrong" and row[2] == "sure" for row in rows)
    return f"{case.name:28} {counts[0]:5} {counts[1]:7} {counts[2]:7} {len(wrong):6} {sure:11}  {', '.join(wrong)}"


def run() -> None:
    """Print the table."""
    print(
        f"{'':28} right and                  wrong or  wrong\n{'set':28}  sure  likely  unsure missing  and sure  which"
    )
    with tempfile.TemporaryDirectory() as folder:
        for case in (*SETS, *icub_logs(Path(folder))):
            guess = guess_of(case)
            print(table_row(case, verdicts(case, guess)), flush=True)
            if "--text" in sys.argv:
                print(guess.text)


if __name__ == "__main__":
    run()

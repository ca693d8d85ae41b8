"""Real calibration measurements as files that one command can calibrate.

    python -m benchmarks.calibration_data OUT        writes OUT/fanuc, OUT/kr210, OUT/tiago and OUT/talos
    steelyard calibrate OUT/fanuc/robot.toml OUT/fanuc/measurements.csv --config OUT/fanuc/setup.toml

The data are not part of the product: their folder is named by the environment variable STEELYARD_DATA.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TABLES = Path(__file__).parent / "data"
"""Robot tables and set-ups of the sets."""


@dataclass(frozen=True)
class CalibrationCase:
    """The three files of a calibration.

    Attributes:
        name: Name of the set.
        robot: Description of the arm: a table or a URDF.
        measurements: What was measured.
        setup: How it was measured.
    """

    name: str
    robot: Path
    measurements: Path
    setup: Path


def data_folder() -> Path:
    """Return the folder of the real recordings."""
    named = os.environ.get("STEELYARD_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        raise SystemExit("the real recordings are not here; name their folder with STEELYARD_DATA")
    return folder


def calibration_case(name: str, out: Path) -> CalibrationCase:
    """Write the files of a set into a folder, which is made.

    Args:
        name: ``fanuc``, ``kr210``, ``tiago``, ``tiago_35`` (with the outlier its authors left out) or ``talos``.
        out: The folder.
    """
    if name not in CASES:
        raise SystemExit(f"unknown set '{name}'; allowed: {', '.join(CASES)}")
    out.mkdir(parents=True, exist_ok=True)
    return CASES[name](name, data_folder(), out)


def _fanuc(name: str, data: Path, out: Path) -> CalibrationCase:
    """Write 36 poses of three reflectors: blank-separated numbers without a header, as they came."""
    measurements = out / "measurements.txt"
    shutil.copyfile(data / "boby_fanuc_lasertracker" / "N1N2N3Jval.csv", measurements)
    return _with_tables(name, out, measurements)


def _kr210(name: str, data: Path, out: Path) -> CalibrationCase:
    """Write 20 poses of three markers: joint angles and points come in two files of numbers."""
    folder = data / "kuka_kr210_3markers"
    angles = np.loadtxt(folder / "configurations.txt")
    points = np.loadtxt(folder / "points.txt").reshape(len(angles), -1)
    header = [*(f"A{k}" for k in range(1, 7)), *(f"{axis}{k}" for k in (1, 2, 3) for axis in "xyz")]
    measurements = out / "measurements.csv"
    _write_table(measurements, header, np.hstack([angles, points]))
    return _with_tables(name, out, measurements)


def _tiago(name: str, data: Path, out: Path) -> CalibrationCase:
    rows = 35 if name == "tiago_35" else 34
    folder = data / "tiago_mocap_calib"
    source = folder / f"qualysis_base_hand_calibration_{rows}rows.csv"
    return _copied(name, out, folder / "tiago.urdf", source, TABLES / "tiago.setup.toml")


def _talos(name: str, data: Path, out: Path) -> CalibrationCase:
    folder = data / "talos_calib"
    source = folder / "talos_left_arm_02_10_contact.csv"
    return _copied(name, out, folder / "talos_full_v2.urdf", source, TABLES / "talos.setup.toml")


CASES: dict[str, Callable[[str, Path, Path], CalibrationCase]] = {
    "fanuc": _fanuc,
    "kr210": _kr210,
    "tiago": _tiago,
    "tiago_35": _tiago,
    "talos": _talos,
}


def _write_table(path: Path, header: Sequence[str], values: np.ndarray) -> None:
    np.savetxt(path, values, delimiter=",", header=",".join(header), comments="", fmt="%.10g")


def _with_tables(name: str, out: Path, measurements: Path) -> CalibrationCase:
    robot, setup = out / "robot.toml", out / "setup.toml"
    shutil.copyfile(TABLES / f"{name}.robot.toml", robot)
    shutil.copyfile(TABLES / f"{name}.setup.toml", setup)
    return CalibrationCase(name, robot, measurements, setup)


def _copied(name: str, out: Path, robot: Path, measurements: Path, setup: Path) -> CalibrationCase:
    case = CalibrationCase(name, out / "robot.urdf", out / "measurements.csv", out / "setup.toml")
    for source, target in ((robot, case.robot), (measurements, case.measurements), (setup, case.setup)):
        shutil.copyfile(source, target)
    return case


def main() -> int:
    """Write all sets into the folder named on the command line."""
    if len(sys.argv) != 2:
        print("name the folder to write to", file=sys.stderr)
        return 1
    for name in CASES:
        case = calibration_case(name, Path(sys.argv[1]) / name)
        print(f"steelyard calibrate {case.robot} {case.measurements} --config {case.setup}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

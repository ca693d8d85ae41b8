"""Results that may not move: every command on a representative set, compared with what is kept in ``tests/golden``.

A change that moves a figure on purpose freezes it anew and says why, with one thread for linear algebra as tests have::

    OPENBLAS_NUM_THREADS=1 python tests/test_golden.py              # all cases
    OPENBLAS_NUM_THREADS=1 python tests/test_golden.py payload p1   # those whose names contain one of these words

Texts and whole numbers must be equal, other numbers to 1e-9 of themselves (in a list: of its largest). On another kind
of machine linear algebra rounds differently: numbers are compared to 1e-5 there, and cases that search are skipped.
Every run states its options, so that a change of defaults does not touch it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from measured_arms import write_measured_arms
from steelyard.cli import main

FROZEN = Path(__file__).parent / "golden"
HERE, ELSEWHERE = 1e-9, 1e-5
IGNORED = frozenset(
    {
        "provenance",
        "files",
        "seconds",
        "standard_parameters",
        "consistency",
        "selection",
        "gains",
        "mass_variance_by_gains",
    }
)
"""Keys whose values name files, bytes, versions or times; what an iterative solver finds, to 1e-7 or so; the choice of
effects, which these runs leave alone; and gains, which are those of the logs."""

SIMULATION = """
[simulate]
record_rate = 100
control = "computed_torque"
encoder_quantum = 1e-5
{side}_noise = {{kind = "white", std = {noise}}}
"""


@dataclass(frozen=True)
class Arm:
    """How an arm is recorded: names of its torques, standard deviation of their noise, and its effects."""

    side: str
    noise: tuple[float, ...]
    effects: str
    cutoff: float


ARMS = {
    "scara_2r": Arm("motor", (0.5, 0.05), "inertia,Fvm,Fcm", 8.0),
    "ur10e": Arm("motor", (2.0, 2.0, 1.0, 0.3, 0.3, 0.3), "inertia,Ia,Fvm,Fcm,offm", 5.0),
    "kuka_lwr4": Arm("motor", (0.8, 1.2, 0.6, 0.7, 0.4, 0.3, 0.3), "inertia,Ia,Fvm,Fcm,offm", 5.0),
    "staubli_tx40": Arm("motor", (0.5, 0.5, 0.3, 0.1, 0.1, 0.1), "inertia,Ia,Fvm,Fcm,offm,coupling", 8.0),
}
METHODS = {
    "gls": ["--covariance", "model"],
    "wls": ["--covariance", "sandwich"],
    "iterated": ["--covariance", "hac"],
    "ols": ["--covariance", "block"],
    "rls": [],
    "ekf": ["--option", "integrator=euler", "--option", "start=auto"],
    "ml": [],
    "iv": ["--option", "start=robot"],
    "didim": ["--option", "start=robot"],
}
UNLOADED = [
    "--payload", "none", "--delay", "0", "--sign-width", "0", "--velocity", "differentiated", "--standstill", "0.05",
    "--threads", "1",
]  # fmt: skip


def _identify(robot: str, method: str, reduction: str = "none") -> list[str]:
    arm = ARMS[robot]
    return [
        "identify", robot, f"{robot}_1.npz", f"{robot}_2.npz", "--validate", f"{robot}_3.npz", "--torque", arm.side,
        "--effects", arm.effects, "--cutoff", str(arm.cutoff), "--evaluation-cutoff", str(arm.cutoff), "--decimation",
        "5", "--method", method, "--reduction", reduction, *METHODS[method], *UNLOADED,
    ]  # fmt: skip


DESIGN = [
    "--criterion", "d", "--motion", "fourier", "--duration", "10", "--harmonics", "3", "--periods", "1", "--floor",
    "none", "--position-scale", "0.9", "--noise", "1", "--rate", "50", "--position-noise", "0", "--starts", "3",
    "--seed", "1", "--threads", "1", "--format", "none", "--payload", "none", "--torque", "motor",
]  # fmt: skip
CALIBRATE = [
    "--covariance", "shared", "--grouping", "configuration", "--folds", "5", "--workspace", "50",
    "--export", "none",
]  # fmt: skip
STUDY = ["--seeds", "2", "--first-seed", "3", "--noise-levels", "1", "--rate", "100", "--processes", "1"]

CASES: dict[str, list[str]] = {
    **{
        f"model_{robot}": ["model", robot, "--torque", arm.side, "--effects", arm.effects]
        for robot, arm in ARMS.items()
    },
    **{f"check_{robot}": ["check", robot, f"{robot}_1.npz"] for robot in ARMS},
    **{
        f"identify_{robot}_{method}": _identify(robot, method, "f" if method == "gls" else "none")
        for robot in ARMS for method in METHODS
    },
    "identify_stepwise": _identify("scara_2r", "wls", "stepwise"),
    "identify_bic": _identify("scara_2r", "wls", "bic"),
    "identify_found_preparation": [
        "identify", "ur10e", "ur10e_1.npz", "ur10e_2.npz", "--hold-out", "0.25", "--torque", "motor", "--effects",
        ARMS["ur10e"].effects, "--payload", "none", "--method", "gls", "--covariance", "model", "--reduction", "f",
    ],
    "payload": ["payload", "arm", "loaded.npz"],
    "compare": ["compare", "arm", "arm_wls"],
    "design_scara": ["design", "scara_2r", "--effects", ARMS["scara_2r"].effects, *DESIGN],
    "design_ur10e": ["design", "ur10e", "--effects", ARMS["ur10e"].effects, *DESIGN],
    "calibrate": ["calibrate", "ur10e", "points.csv", "--validate", "other_points.csv", "--method", "wls", *CALIBRATE],
    "calibrate_robust": [
        "calibrate", "ur10e", "points.csv", "--validate", "other_points.csv", "--method", "robust", *CALIBRATE,
    ],
    "calibrate_springs": ["calibrate", "kuka_kr270", "deflections.csv", "--config", "springs.toml", "--load", "heavy",
                          "--method", "wls", *CALIBRATE],
    "poses": [
        "poses", "ur10e", "--count", "12", "--criterion", "D", "--candidates", "60", "--sigma", "1e-4", "--repeats",
        "1", "--seed", "2",
    ],
    "montecarlo": ["montecarlo", "scara_2r", "scara_2r_1.toml", "--methods", "wls,gls,ekf", "--config", "study.toml",
                   *STUDY],
    **{f"papers_{name}": ["papers", name, "--seeds", "2"] for name in ("P1", "P3", "P5")},
}  # fmt: skip
SEARCHES = ("design", "poses", "papers")
"""Cases whose end hangs on comparisons of nearly equal numbers."""


def write_inputs() -> None:
    """Write logs, measurements and set-ups into the working folder; motions are kept with the results."""
    for robot, arm in ARMS.items():
        noise = "[" + ", ".join(map(str, arm.noise)) + "]"
        Path("simulation.toml").write_text(SIMULATION.format(side=arm.side, noise=noise))
        for number in (1, 2, 3):
            shutil.copy(FROZEN / f"{robot}_{number}.toml", ".")
            _simulate(robot, f"{robot}_{number}.toml", f"{robot}_{number}.npz", number)
    lwr4 = ARMS["kuka_lwr4"]
    Path("simulation.toml").write_text(SIMULATION.format(side=lwr4.side, noise=list(lwr4.noise)))
    _simulate("kuka_lwr4", "kuka_lwr4_2.toml", "loaded.npz", 4, "--payload", "P5")
    for method, folder in (("gls", "arm"), ("wls", "arm_wls")):
        _run([*_identify("kuka_lwr4", method), "--out", folder])
    write_measured_arms(Path())
    Path("springs.toml").write_text((FROZEN / "springs.toml").read_text())
    arm = ARMS["scara_2r"]
    Path("study.toml").write_text(SIMULATION.format(side=arm.side, noise=list(arm.noise)) + STUDY_IDENTIFICATION)


STUDY_IDENTIFICATION = """
[identify]
effects = ["inertia", "Fvm", "Fcm"]
torque = "motor"
cutoff = 8.0
decimation = 5
"""


def _simulate(robot: str, motion: str, log: str, seed: int, *options: str) -> None:
    command = ["simulate", robot, motion, "--config", "simulation.toml", "--plant", "compiled", "--seed", str(seed)]
    _run([*command, "--runs", "1", "--format", "npz", "--out", "simulated", *options])
    (recording,) = (path for path in Path("simulated").glob("*.npz") if path.name not in ("truth.npz",))
    shutil.move(recording, log)
    shutil.rmtree("simulated")


def _run(command: list[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*command, "--json"])
    assert code in (0, 2), f"{' '.join(command)}\n{out.getvalue()}{err.getvalue()}"
    return out.getvalue()


def result_of(case: str) -> Any:
    """Run a case in the folder of the inputs; return its JSON without what differs from run to run."""
    return _without_ignored(json.loads(_run(CASES[case])))


def _without_ignored(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_ignored(value) for key, value in content.items() if key not in IGNORED}
    if isinstance(content, list):
        return [_without_ignored(value) for value in content if not _is_timing(value)]
    return content


def _is_timing(content: Any) -> bool:
    return isinstance(content, dict) and str(content.get("name", "")).startswith("processor time")


def differences(frozen: Any, found: Any, tolerance: float, place: str = "") -> Iterator[str]:
    """Yield every place where two results differ."""
    if isinstance(frozen, dict) and isinstance(found, dict):
        for key in [*frozen, *(key for key in found if key not in frozen)]:
            if key not in frozen or key not in found:
                yield f"{place}.{key}: only {'found' if key in found else 'frozen'}"
            else:
                yield from differences(frozen[key], found[key], tolerance, f"{place}.{key}")
    elif isinstance(frozen, list) and isinstance(found, list):
        yield from _list_differences(frozen, found, tolerance, place)
    elif not _is_same(frozen, found, tolerance):
        yield f"{place}: {frozen!r} became {found!r}"


def _is_same(frozen: Any, found: Any, tolerance: float) -> bool:
    if not (_is_real(frozen) and _is_real(found)) or (isinstance(frozen, int) and isinstance(found, int)):
        return frozen == found
    return math.isclose(frozen, found, rel_tol=tolerance, abs_tol=1e-3 * tolerance)


def _list_differences(frozen: list, found: list, tolerance: float, place: str) -> Iterator[str]:
    if len(frozen) != len(found):
        yield f"{place}: {len(frozen)} entries became {len(found)}"
    elif frozen and all(map(_is_real, frozen)) and all(map(_is_real, found)):
        allowed = tolerance * max(np.abs(frozen).max(), 1e-3)
        worst = int(np.argmax(np.abs(np.subtract(frozen, found))))
        if not abs(frozen[worst] - found[worst]) <= allowed:
            yield f"{place}[{worst}]: {frozen[worst]!r} became {found[worst]!r}"
    else:
        for number, (one, other) in enumerate(zip(frozen, found, strict=True)):
            yield from differences(one, other, tolerance, f"{place}[{number}]")


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def machine() -> str:
    """Return what decides how linear algebra rounds."""
    found = np.show_config(mode="dicts")
    return f"{platform.system()} {platform.machine()} numpy {np.__version__} {found['SIMD Extensions']['found']}"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    with contextlib.chdir(folder):
        write_inputs()
    return folder


@pytest.mark.large
@pytest.mark.parametrize("case", CASES)
def test_results_are_those_that_were_frozen(case, inputs, monkeypatch):
    here = json.loads((FROZEN / "machine.json").read_text()) == machine()
    if not here and case.startswith(SEARCHES):
        pytest.skip("frozen on another kind of machine, where searches take other turns")
    monkeypatch.chdir(inputs)
    frozen = json.loads(gzip.decompress((FROZEN / f"{case}.json.gz").read_bytes()))
    assert list(differences(frozen, result_of(case), HERE if here else ELSEWHERE)) == []


@pytest.mark.parametrize(
    ("frozen", "found", "wanted"),
    [
        ({"a": 1.0}, {"a": 1.0 + 1e-11}, []),
        ({"a": 1.0}, {"a": 1.0 + 1e-7}, [".a: 1.0 became 1.0000001"]),
        ({"a": 3}, {"a": 4}, [".a: 3 became 4"]),
        ({"a": "good"}, {"a": "poor"}, [".a: 'good' became 'poor'"]),
        ({"a": 1}, {"b": 1}, [".a: only frozen", ".b: only found"]),
        ([1.0, 1e-12], [1.0, 2e-12], []),
        ([1.0, 2.0], [1.0], [": 2 entries became 1"]),
        ([1.0, None], [1.0, 2.0], ["[1]: None became 2.0"]),
    ],
)
def test_the_comparison_itself_sees_differences(frozen, found, wanted):
    assert list(differences(frozen, found, HERE)) == wanted


def freeze(texts: list[str]) -> None:
    """Store the results of cases whose names contain one of these words, or of all."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_inputs()
        for case in CASES:
            if texts and not any(word in case for word in texts):
                continue
            sys.stdout.write(f"{case}\n")
            sys.stdout.flush()
            content = json.dumps(result_of(case), separators=(",", ":"), allow_nan=False).encode()
            (FROZEN / f"{case}.json.gz").write_bytes(gzip.compress(content, 9, mtime=0))
    (FROZEN / "machine.json").write_text(json.dumps(machine()) + "\n")


if __name__ == "__main__":
    freeze(sys.argv[1:])

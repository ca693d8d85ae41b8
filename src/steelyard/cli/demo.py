"""``steelyard demo``: the whole chain on the built-in KUKA LWR4+, from motion to verdict."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..plain_data import json_text
from .identify import EXIT_CODES
from .identify_table import print_identification
from .options import OUTPUT, Json, Quiet, quietly
from .output import Screen, Timing

if TYPE_CHECKING:
    from ..calibration import Measurements
    from ..identification import Identification
    from ..motion import Trajectory
    from ..recording import Recording
    from ..robot import Robot

ROBOT, PAYLOAD = "kuka_lwr4", "P5"
MOVES, SECONDS = 22, 2.0
CUTOFF, DECIMATION = 10.0, 100
MOTOR_NOISE = (1.86, 3.02, 1.39, 1.62, 0.928, 0.696, 0.696)
JOINT_NOISE = (0.57, 1.14, 0.456, 0.57, 0.171, 0.171, 0.0684)
NOISE_BAND = 50.0
"""Deviations [N m] and band [Hz] of the torques: a tenth of the noise behind the reproduction of P5, a quiet arm."""

POINTS = (("points", 1, 40), ("other_points", 2, 15))
"""Tracker points to try ``steelyard calibrate`` with: file, seed, configurations."""
UR10E_ERRORS = {"offset2": 2e-3, "z3": 0.8e-3, "rx3": 0.7e-3, "x4": -0.5e-3, "offset4": -1.5e-3, "offset5": 1e-3}
RUNS = (("without", None, 1), ("with", PAYLOAD, 2), ("unseen", PAYLOAD, 3))


def demo(
    *,
    out: Annotated[
        Path, Parameter(name="--out", group=OUTPUT, help="Folder for recordings and result; default: demo.")
    ] = Path("demo"),
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """The whole chain on the built-in KUKA LWR4+: motion, recordings, identification, verdict."""
    from ..robot import load_robot
    from ..run import RunFolder

    timing = Timing()
    with quietly(quiet), RunFolder(out, "demo") as run:
        simulated = simulated_runs(load_robot(ROBOT), timing)
        found, extra = simulated_identification(simulated, timing)
        settings = {"robot": ROBOT, "torque": "both", "cutoff": CUTOFF, "decimation": DECIMATION}
        content = run.save(
            settings, {}, {**found.to_json(), "left_out": [], **extra},
            lambda place, _: _fill(place, simulated, found), timing.seconds, found.to_html,
        )  # fmt: skip
        if json:
            print(json_text("demo", content))
        else:
            _print(found, extra["truth"], run.place or out)
    return EXIT_CODES[found.verdict.grade]


def _fill(place: Path, simulated: SimulatedRuns, found: Identification) -> dict[str, Any]:
    """Write motions, recordings, arrays and the identified arm into the folder of the run."""
    from ..calibration import write_measurements
    from ..export import EXPORTS, identified_arm, write_files
    from ..identification import fill_run
    from ..motion import write_trajectory
    from ..recording import write_recording

    for name, (motion, recording) in simulated.runs.items():
        write_trajectory(motion, place / f"{name}.toml")
        write_recording(recording, place / f"{name}.npz")
    for name, seed, count in POINTS:
        write_measurements(place / f"{name}.csv", _measured_points(seed, count))
    write_files(EXPORTS["urdf"].build(identified_arm(found)), place)
    return fill_run(place, found)


def _measured_points(seed: int, count: int) -> Measurements:
    """Return tracker points of three nests on a UR10e whose axes are a little off, noise 0.05 mm."""
    import numpy as np

    from ..calibration import CalibrationSetup, FrameSetup, MarkerSetup, random_configurations, simulated_measurements
    from ..robot import load_robot

    robot = load_robot("ur10e")
    nests = {"nest_1": (0.10, 0.0, 0.05), "nest_2": (0.0, 0.10, 0.05), "nest_3": (-0.05, -0.10, 0.10)}
    setup = CalibrationSetup(
        "ee_link", base=FrameSetup((1.2, -0.3, 0.5), (0.1, 0.0, 1.0)),
        markers=tuple(MarkerSetup(name, place) for name, place in nests.items()),
    )  # fmt: skip
    q = random_configurations(robot, count, np.random.default_rng(seed)) / 2
    return simulated_measurements(robot, setup, q, UR10E_ERRORS, sigma=5e-5, seed=seed)


def simulated_identification(simulated: SimulatedRuns, timing: Timing) -> tuple[Identification, dict[str, Any]]:
    """Return an identification from simulated recordings, with the truth behind them and what the checks found."""
    from ..identification import Settings, identify
    from ..observe import Preparation
    from ..recording import check_recording
    from ..robot import load_robot

    robot, true = load_robot(ROBOT), simulated.truth
    recordings = [recording for _, recording in simulated.runs.values()]
    findings = [finding.text for recording in recordings for finding in check_recording(robot, recording)]
    settings = Settings(
        measured="both", preparation=Preparation(cutoff=CUTOFF, decimation=DECIMATION), threads=os.cpu_count() or 1
    )
    found = identify(robot, recordings[:2], recordings[2:], settings, stage=timing.stage)
    timing.finish()
    return found, {"truth": _against_truth(true, found), "findings": findings}


def _print(found: Identification, truth: dict[str, Any], out: Path) -> None:
    print_identification(found, [], out)
    screen = Screen()
    screen.line(
        f"against the simulated truth: {truth['within_95']} of {truth['parameters']} intervals of 95 % hold it; the "
        f"payload weighs {truth['payload_mass']:.4f} kg"
    )
    screen.line(
        f"the identified arm is in {out / f'{ROBOT}.urdf'}, loaded again and compared; other formats: steelyard export "
        f"{out} --help",
        always=True,
    )
    screen.line(
        f"motions and recordings are beside it in {out}; try: steelyard "
        f"identify {ROBOT} {out / 'without.npz'} {out / 'with.npz'} --validate {out / 'unseen.npz'}"
    )


@dataclass(frozen=True, eq=False)
class SimulatedRuns:
    """Motion and recording of every run by its name, and the parameters behind them."""

    runs: Mapping[str, tuple[Trajectory, Recording]]
    truth: Mapping[str, float]


def simulated_runs(robot: Robot, timing: Timing) -> SimulatedRuns:
    """Simulate the runs."""
    import numpy as np

    from ..motion import limits_of, random_points, trapezoidal, trapezoidal_profile
    from ..simulation import Experiment, Noise, Simulator, recording_of, simulate_together

    motor, joint = (Noise("band_limited", deviations, NOISE_BAND) for deviations in (MOTOR_NOISE, JOINT_NOISE))
    progress = timing.stage(f"simulating {len(RUNS)} motions")
    motions, simulators = [], []
    for _, payload, seed in RUNS:
        rng = np.random.default_rng(seed)
        points = random_points(limits_of(robot), MOVES - 1, SECONDS, trapezoidal_profile(), rng)
        motions.append(trapezoidal(points, SECONDS, robot.joint_names))
        experiment = Experiment(payload=payload, encoder_quantum=1e-5, motor_noise=motor, joint_noise=joint)
        simulators.append(Simulator(robot, motions[-1], experiment))
    done = simulate_together(simulators, [seed for *_, seed in RUNS], os.cpu_count() or 1, progress)
    runs = {name: (motion, recording_of(run)) for (name, *_), motion, run in zip(RUNS, motions, done, strict=True)}
    return SimulatedRuns(runs, done[-1].truth)


def _against_truth(truth: Mapping[str, float], found: Identification) -> dict[str, Any]:
    """Return how many intervals hold the simulated truth."""
    import numpy as np

    base, estimate = found.equations.base, found.estimate
    true = base.regrouping @ np.array([truth[name] for name in found.equations.model.names])
    by_column = {one.column: value for one, value in zip(base.base, true, strict=True)}
    error = np.abs(estimate.values - [by_column[name] for name in estimate.columns])
    return {
        "within_95": int(np.sum(error <= estimate.half_width())),
        "parameters": len(estimate.columns),
        "payload_mass": truth["ML"],
    }

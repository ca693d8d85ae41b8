"""Does leaving out parameters cost anything: unseen errors of the reduced model against those of all parameters.

    python -m benchmarks.essential [--shares 0.25 0.5] [--only ur10e]

Every arm of the catalogue that can be simulated, and every real recording (their folder is named by the environment
variable STEELYARD_DATA; without it they are skipped), with several shares held out at the end. Printed for each: how
many parameters stay, both errors, and the largest jump of a sigma from the share before: as it is, beyond what the
motion that is left explains, and beyond what blocks of time confirm too, whatever the noise model. The reduced model
has to be within 5 % of all parameters in 95 % of the cases.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.calibration_data import TABLES, data_folder
from steelyard.errors import SteelyardError
from steelyard.estimate import block_sigma
from steelyard.identification import SCHEMA, Identification, Settings, identify, settings_from_table
from steelyard.motion import limits_of, quintic, quintic_profile, random_points
from steelyard.recording import Recording, read_recording, read_recordings, read_setup
from steelyard.robot import Robot, catalogue_names, load_robot, read_catalogue
from steelyard.run import read_config
from steelyard.signals import autoregressive_noise
from steelyard.simulation import Experiment, recording_of, simulate

SHARES = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
ALLOWED = 1.05
"""Unseen error of the reduced model over that of all parameters."""

WANTED = 0.95
"""Share of the cases within that."""

LARGEST_JUMP = 2.0
"""Of a sigma between neighbouring shares."""

ARMS = tuple(name for name in catalogue_names() if "inertias" in read_catalogue(name).carries)
SLOW_POLE = 0.998
RATE = 500.0


@dataclass(frozen=True, eq=False)
class Case:
    """A recording of an arm with the settings to identify it by; each share of it is held out in turn."""

    name: str
    robot: Robot
    recording: Recording
    settings: Settings


@dataclass(frozen=True)
class Outcome:
    """What one share gave.

    Attributes:
        name: Of the case.
        share: Part held out.
        essential: Parameters that stay.
        all: All parameters.
        reduced_percent: Unseen error of the reduced model.
        all_percent: That of all parameters.
        jump: Largest ratio of a sigma to that of the share before, or its inverse; 1 for the first share.
        jump_beyond_motion: The same, divided by the ratio that the motion alone explains.
        unconfirmed_jump: The same where sigmas from blocks of time do not jump alike: the smaller of both quotients.
        column: Column of the latter.
    """

    name: str
    share: float
    essential: int
    all: int
    reduced_percent: float
    all_percent: float
    jump: float
    jump_beyond_motion: float
    unconfirmed_jump: float
    column: str

    @property
    def is_worse(self) -> bool:
        """Whether the reduced model predicts unseen motion worse than allowed."""
        return self.reduced_percent > ALLOWED * self.all_percent


def simulated_case(name: str, pole: float, seed: int = 1, seconds: int = 30) -> Case:
    """Return a catalogue arm on random moves, torque noise of 2 %, white or as slow as a pole."""
    robot = load_robot(name)
    points = random_points(limits_of(robot), seconds // 2 - 1, 2.0, quintic_profile(), np.random.default_rng(seed))
    experiment = Experiment(record_rate=RATE, saturate=False, encoder_quantum=1e-6)
    run = simulate(robot, quintic(points, 2.0, [body.joint.name for body in robot.actuated]), experiment, [seed])
    clean, rng, torques = recording_of(run), np.random.default_rng(seed), []
    for channel in clean.torques:
        size = 0.02 * np.sqrt((channel.values**2).mean(axis=1))
        noise = autoregressive_noise(channel.values.shape[1], np.array([pole]), size, rng)
        torques.append(replace(channel, values=channel.values + noise))
    noisy = replace(clean, torques=tuple(torques))
    word = "slow noise" if pole else "white noise"
    return Case(f"{name}, {word}", robot, noisy, Settings(effects=run.effects, bias_repeats=0))


def _settings(setup: str) -> Settings:
    table: dict[str, Any] = {
        **read_config(TABLES / f"{setup}.toml", "identify", SCHEMA),
        "bias_repeats": 0,
        "select": False,
    }
    return settings_from_table(table)


def real_cases() -> Iterator[Case]:
    """Yield every real recording; loaded ones as of an arm with that load."""
    root = data_folder()
    for name in ("franka_panda", "kuka_lwr4", "staubli_tx40", "ur10e"):
        robot = load_robot(name)
        for recording in read_recordings(robot, TABLES / f"{name}.toml", root=root):
            file = recording.sources[0].path.rsplit("/", 1)[-1]
            yield Case(f"{name}, {file}", robot, replace(recording, payload=None), _settings(name))
    robot = load_robot(root / "airbot_play" / "airbot_play_v3_0_gripper.urdf")
    for table in ("chirp", "chirp_loaded", "trapezoidal"):
        recording = read_recording(robot, read_setup(TABLES / "airbot_play.toml", table), root=root)
        yield Case(f"airbot_play, {table}", robot, replace(recording, payload=None), _settings("airbot_play"))


def cases(only: str = "") -> Iterator[Case]:
    """Yield all cases whose names contain some word, the simulated ones first."""
    for name in ARMS:
        for pole in (0.0, SLOW_POLE):
            if only in f"{name}, {'slow' if pole else 'white'} noise":
                yield simulated_case(name, pole)
    try:
        yield from (case for case in real_cases() if only in case.name)
    except SystemExit as missing:
        print(f"real recordings are skipped: {missing}")


def outcomes(case: Case, shares: Sequence[float] = SHARES) -> Iterator[Outcome]:
    """Yield what every share of a case gives."""
    before: Identification | None = None
    for share in shares:
        try:
            found = identify(case.robot, [case.recording], settings=replace(case.settings, hold_out=share))
        except SteelyardError as error:
            print(f"{case.name}, {share:.2f} held out: {error}")
            before = None
            continue
        largest = (1.0, 1.0, 1.0, "") if before is None else jumps(before, found)
        yield Outcome(
            case.name, share, len(found.essential.columns), len(found.estimate.columns),
            found.unseen_error.relative_percent, found.unseen_error_of_all.relative_percent, *largest,
        )  # fmt: skip
        before = found


def jumps(before: Identification, after: Identification) -> tuple[float, float, float, str]:
    """Return the largest jump of a sigma, beyond the motion, beyond motion and blocks, and the last's column."""
    shared = [name for name in after.estimate.columns if name in before.estimate.columns]
    sigma, motion, blocks = (
        np.log(_of(after, values, shared) / _of(before, values, shared))
        for values in (_sigma, _motion_sigma, _block_sigma)
    )
    beyond = np.abs(sigma - motion)
    unconfirmed = np.fmin(beyond, np.abs(sigma - blocks))  # too few blocks confirm nothing
    worst = int(unconfirmed.argmax())
    largest, largest_beyond, largest_unconfirmed = (
        float(np.exp(np.abs(size).max())) for size in (sigma, beyond, unconfirmed)
    )
    return largest, largest_beyond, largest_unconfirmed, shared[worst]


def _of(found: Identification, values: Callable[[Identification], np.ndarray], names: Sequence[str]) -> np.ndarray:
    known = dict(zip(found.estimate.columns, values(found), strict=True))
    return np.array([known[name] for name in names])


def _sigma(found: Identification) -> np.ndarray:
    return found.estimate.sigma


def _block_sigma(found: Identification) -> np.ndarray:
    """Return the sigmas that blocks of time give; NaN where there are too few blocks (c,)."""
    sigma = block_sigma(found.estimate, found.fit.used)
    return np.full(len(found.estimate.columns), np.nan) if sigma is None else sigma


def _motion_sigma(found: Identification) -> np.ndarray:
    """Return sigmas for white noise of 1 at the full rate on all torques: what the motion alone says (c,)."""
    inverse = np.diag(found.fit.raw.restricted(found.estimate.columns).inverse)
    return np.sqrt(inverse / found.resolved.decimation_filter.factor)


def print_outcomes(found: Sequence[Outcome]) -> None:
    """Print the cases that are not as wanted, and how many are."""
    worse = [one for one in found if one.is_worse]
    print(
        f"\n{len(found)} cases, {len(worse)} of them with a reduced model worse by more than 5 % (wanted: 5 % of them)"
    )
    for one in worse:
        ratio = one.reduced_percent / one.all_percent
        print(
            f"  {one.name}, {one.share:.2f}: {one.reduced_percent:.2f} % against {one.all_percent:.2f} %, {ratio:.2f}"
        )
    print("cases in which a sigma jumps by more than a factor of 2 from the share before:")
    print(f"  {sum(one.jump > LARGEST_JUMP for one in found)} in all")
    print(f"  {sum(one.jump_beyond_motion > LARGEST_JUMP for one in found)} beyond what the motion left explains")
    far = [one for one in found if one.unconfirmed_jump > LARGEST_JUMP]
    print(f"  {len(far)} beyond that, and not confirmed by blocks of time")
    for one in far:
        print(f"    {one.name}, {one.share:.2f}: {one.column} by {one.unconfirmed_jump:.2f}")


def run(shares: Sequence[float] = SHARES, only: str = "") -> None:
    """Identify every case and print a line for each share."""
    found = []
    for case in cases(only):
        for one in outcomes(case, shares):
            found.append(one)
            print(
                f"{one.name:42s} {one.share:.2f} {one.essential:3d}/{one.all:3d} reduced {one.reduced_percent:6.2f} % "
                f"all {one.all_percent:6.2f} % {'WORSE' if one.is_worse else '     '} jump {one.jump:5.2f} beyond "
                f"motion {one.jump_beyond_motion:5.2f} unconfirmed {one.unconfirmed_jump:5.2f} {one.column}",
                flush=True,
            )
    print_outcomes(found)


def main() -> None:
    """Run the part that is asked for."""
    parser = argparse.ArgumentParser(description="unseen errors of the reduced model")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    chosen = parser.parse_args()
    run(chosen.shares, chosen.only)


if __name__ == "__main__":
    main()

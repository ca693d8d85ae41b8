"""Faults planted into simulated logs: from what size on does `steelyard check` find them, and what do clean logs say?

    python -m benchmarks.log_checks [--seeds 20] [--arms kuka_lwr4 ur10e staubli_tx40] [--faults ...] [--stated]

Logs are those of `benchmarks.planted_faults`: closed loop, 200 Hz, 2 % noise on the torques. A fault is planted at
several sizes; printed is how often it is found with the right joint, with the number of other joints that are named
beside it. The size marked with * is the one that must be found in 95 % of the logs; clean logs may raise a warning of
the kinds under test in 5 % of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import signal

from benchmarks.planted_faults import RATE, recorded, with_torques
from steelyard.recording import Finding, Recording, check_recording
from steelyard.robot import Robot, load_robot

ARMS = ("kuka_lwr4", "ur10e", "staubli_tx40")
KINDS = (
    "saturated", "quantisation", "filtered", "filtered_differently", "resonance", "mains", "hardly_moving", "alike",
    "stands_still",
)  # fmt: skip
STEEP = 4
"""Order of the planted filters."""


@dataclass(frozen=True)
class PlantedFault:
    """A fault of a log.

    Attributes:
        plant: Makes it, of a size, at a joint.
        kind: Kind of the finding that must name it.
        sizes: Sizes at which it is planted.
        unit: What the sizes are.
        stated: The size that must be found.
        severities: Severities that count as found.
        whole: Whether the finding is of all joints.
        value: Name of the number in the finding that is the size, if it is; it must be right within `tolerance`.
        tolerance: Relative.
    """

    plant: Callable[[Recording, Robot, int, float, np.random.Generator], Recording]
    kind: str
    sizes: tuple[float, ...]
    unit: str
    stated: float
    severities: tuple[str, ...] = ("warning", "bad")
    whole: bool = False
    value: str = ""
    tolerance: float = 0.3


def _moved(recording: Recording, q: np.ndarray) -> Recording:
    qd = None if recording.qd is None else np.gradient(q, recording.time, axis=1)
    return replace(recording, q=q, qd=qd)


def _torque_row(recording: Recording, row: int, change: Callable[[np.ndarray], np.ndarray]) -> Recording:
    def changed(values: np.ndarray) -> np.ndarray:
        values[row] = change(values[row])
        return values

    return with_torques(recording, changed)


def clipped(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Clip a torque at a part of its largest size."""
    del robot, rng
    return _torque_row(recording, row, lambda x: np.clip(x, -size * np.abs(x).max(), size * np.abs(x).max()))


def clipped_counts(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Clip a torque at a part of its largest size and round it to 500 counts over its range."""
    one_side = clipped(recording, robot, row, size, rng)
    return _torque_row(one_side, row, lambda x: np.round(x / (np.ptp(x) / 500)) * (np.ptp(x) / 500))


def at_effort_limit(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Let a torque stop at the effort limit, a part of what it would reach, with noise of half a per cent on top."""
    limit = robot.actuated[row].joint.limits.effort

    def changed(x: np.ndarray) -> np.ndarray:
        scaled = x * limit / (size * np.abs(x).max())
        return np.clip(scaled, -limit, limit) + 0.005 * limit * rng.standard_normal(x.size)

    return _torque_row(recording, row, changed)


def at_speed_limit(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Let a joint run at its speed limit for a part of the time."""
    del rng
    limit = robot.actuated[row].joint.limits.velocity
    speed = np.gradient(recording.q[row], recording.time)
    speed = np.clip(speed * limit / np.quantile(np.abs(speed), 1 - size), -limit, limit)
    q = recording.q.copy()
    q[row] = q[row, 0] + np.concatenate([[0.0], np.cumsum(speed[:-1] * np.diff(recording.time))])
    return _moved(recording, q)


def coarse_torque(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Round a torque to steps of a part of its standard deviation."""
    del robot, rng
    return _torque_row(recording, row, lambda x: np.round(x / (size * x.std())) * size * x.std())


def coarse_encoder(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Round a position so that velocities below 10 Hz get noise of a part of the rms speed."""
    del robot, rng
    speed = np.sqrt(np.mean(np.gradient(recording.q[row], recording.time) ** 2))
    step = size * speed / (2 * np.pi * np.sqrt(10.0**3 / (18 * RATE)))
    q = recording.q.copy()
    q[row] = np.round(q[row] / step) * step
    return replace(recording, q=q)


def _filtered(values: np.ndarray, corner: float) -> np.ndarray:
    return signal.sosfiltfilt(signal.butter(STEEP, corner, fs=RATE, output="sos"), values, axis=1)


def filtered_all(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Filter positions and torques alike, forwards and backwards."""
    del robot, row, rng
    return _moved(with_torques(recording, lambda x: _filtered(x, size)), _filtered(recording.q, size))


def filtered_torque(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Filter torques once, as a controller does, positions not at all."""
    del robot, row, rng
    once = signal.butter(STEEP, size, fs=RATE, output="sos")
    return with_torques(recording, lambda x: np.asarray(signal.sosfilt(once, x, axis=1)))


def vibrating(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Add a resonance at 12 to 40 Hz, damping 1 %, excited by noise; its rms is a part of the torque's deviation."""
    del robot
    frequency = rng.uniform(12, 40)
    poles = np.exp((-0.01 + 1j) * 2 * np.pi * frequency / RATE)
    noise = rng.standard_normal(recording.samples)
    response = np.asarray(signal.lfilter([1.0], np.real(np.poly([poles, poles.conjugate()])), noise))
    response /= response.std()
    return _torque_row(recording, row, lambda x: x + size * x.std() * response)


def humming(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Add 50 Hz; its rms is a part of the torque's deviation."""
    del robot
    hum = np.sqrt(2) * np.sin(2 * np.pi * 50 * recording.time + rng.uniform(0, 6))
    return _torque_row(recording, row, lambda x: x + size * x.std() * hum)


def held_joint(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Let a joint move by a part of its range alone."""
    del rng
    limits = robot.actuated[row].joint.limits
    q = recording.q.copy()
    q[row] = q[row].mean() + (q[row] - q[row].mean()) * size * min(limits.upper - limits.lower, 2 * np.pi) / np.ptp(
        q[row]
    )
    return _moved(recording, q)


def alike_joints(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Let a joint follow its neighbour, but for a part of its own motion (power)."""
    del robot, rng
    q, other = recording.q.copy(), recording.q[row - 1]
    own = (q[row] - q[row].mean()) / np.std(np.diff(q[row]))
    q[row] = (np.sqrt(1 - size) * (other - other.mean()) / np.std(np.diff(other)) + np.sqrt(size) * own) * 0.003
    return _moved(recording, q)


def standing(recording: Recording, robot: Robot, row: int, size: float, rng: np.random.Generator) -> Recording:
    """Let the arm stand still for a part of the time, at the end, encoder noise going on."""
    del robot, row
    more = round(recording.samples * size / (1 - size))
    step = float(np.median(np.diff(recording.time)))
    time = np.concatenate([recording.time, recording.time[-1] + step * np.arange(1, more + 1)])

    def held(values: np.ndarray, noise: float) -> np.ndarray:
        last = values[:, -1:] + noise * rng.standard_normal((len(values), more))
        return np.hstack([values, last])

    torques = tuple(replace(one, values=held(one.values, 0.05)) for one in recording.torques)
    qd = None if recording.qd is None else held(0 * recording.qd, 0.0)
    return replace(recording, time=time, q=held(recording.q, 1e-5), qd=qd, torques=torques, reference=None)


FAULTS: dict[str, PlantedFault] = {
    "torque clipped": PlantedFault(clipped, "saturated", (0.95, 0.9, 0.8, 0.7), "of peak", 0.8),
    "clipped, 500 counts": PlantedFault(clipped_counts, "saturated", (0.95, 0.9, 0.8, 0.7), "of peak", 0.7),
    "at the effort limit": PlantedFault(at_effort_limit, "saturated", (0.95, 0.9, 0.8, 0.7), "of peak", 0.7),
    "at the speed limit": PlantedFault(at_speed_limit, "saturated", (0.03, 0.1, 0.2), "of time", 0.2, ("info",)),
    "torque steps": PlantedFault(
        coarse_torque, "quantisation", (0.01, 0.03, 0.1), "of std", 0.03, value="part", tolerance=0.1
    ),
    "encoder steps": PlantedFault(
        coarse_encoder, "quantisation", (0.01, 0.03, 0.1), "of speed", 0.03, value="part", tolerance=0.2
    ),
    "all filtered alike": PlantedFault(
        filtered_all, "filtered", (5.0, 10.0, 20.0, 40.0), "Hz", 10.0, ("info",), True, "corner", 0.4
    ),
    "torques filtered": PlantedFault(filtered_torque, "filtered_differently", (3.0, 5.0, 10.0), "Hz", 5.0, whole=True),
    "resonance": PlantedFault(vibrating, "resonance", (0.02, 0.05, 0.1, 0.2), "of std", 0.1, value="part"),
    "mains": PlantedFault(humming, "mains", (0.02, 0.05, 0.1), "of std", 0.1, value="part"),
    "hardly moving": PlantedFault(held_joint, "hardly_moving", (0.05, 0.01, 0.002), "of range", 0.01, value="part"),
    "two joints alike": PlantedFault(alike_joints, "alike", (0.1, 0.02, 0.0), "own", 0.02, whole=True),
    "standing still": PlantedFault(
        standing, "stands_still", (0.3, 0.6, 0.97), "of time", 0.6, whole=True, value="share", tolerance=0.1
    ),
}


def found_in(fault: PlantedFault, findings: Sequence[Finding], joint: str, size: float) -> tuple[bool, int]:
    """Return whether a fault is named with the right joint and number, and how many other joints are."""
    named = [one for one in findings if one.kind == fault.kind and one.severity in fault.severities]
    right = [one for one in named if (fault.whole and (not one.joint or joint in one.text)) or one.joint == joint]
    if fault.value:
        right = [one for one in right if abs(one.values[fault.value] / size - 1) <= fault.tolerance]
    return bool(right), len({one.joint for one in named} - {joint, ""})


def run(
    arms: Sequence[str] = ARMS, faults: Sequence[str] = tuple(FAULTS), seeds: int = 20, only_stated: bool = False
) -> None:
    """Print the table: for each fault and size, or the stated size alone, how often it is found."""
    robots = {arm: load_robot(arm) for arm in arms}
    clean = {(arm, seed): check_recording(robots[arm], recorded(arm, seed)) for arm in arms for seed in range(seeds)}
    said = {key: {one.kind for one in found if one.severity != "info"} & set(KINDS) for key, found in clean.items()}
    print(
        f"clean logs with a warning: {sum(map(bool, said.values()))} of {len(said)} {set().union(*said.values()) or ''}"
    )
    infos = [one.kind for found in clean.values() for one in found if one.severity == "info" and one.kind in KINDS]
    print(f"infos of clean logs: { ({kind: infos.count(kind) for kind in set(infos)}) }")
    print(f"  {'fault':22}{'size':>16}" + "".join(f"{arm:>20}" for arm in arms) + f"{'all':>8}")
    for name in faults:
        fault = FAULTS[name]
        for size in (fault.stated,) if only_stated else fault.sizes:
            rates, groups = [], []
            for arm in arms:
                outcomes = [_outcome(fault, robots[arm], arm, seed, size) for seed in range(seeds)]
                rates += [right for right, _ in outcomes]
                others = sum(other for _, other in outcomes)
                groups.append(
                    f"{100 * np.mean([right for right, _ in outcomes]):.0f} %" + (f" +{others}" if others else "")
                )
            mark = "*" if size == fault.stated else " "
            print(
                f"  {name:22}{size:>8g} {fault.unit:7}" + "".join(f"{one:>20}" for one in groups)
                + f"{100 * np.mean(rates):>6.0f} %{mark}", flush=True,
            )  # fmt: skip


def _outcome(fault: PlantedFault, robot: Robot, arm: str, seed: int, size: float) -> tuple[bool, int]:
    recording = recorded(arm, seed)
    row = 1 + seed % (len(recording.joints) - 1)
    planted = fault.plant(recording, robot, row, size, np.random.default_rng(seed))
    return found_in(fault, check_recording(robot, planted), recording.joints[row], size)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--faults", nargs="+", default=tuple(FAULTS))
    parser.add_argument("--stated", action="store_true", help="plant each fault at its stated size alone")
    given = parser.parse_args()
    run(given.arms, given.faults, given.seeds, given.stated)

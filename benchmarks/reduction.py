"""Recordings to factors against Pinocchio's regressor in a Python loop and numpy's QR, on the same 7-joint arm."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]

from benchmarks.regressor import pinocchio_model
from benchmarks.timing import ratio, round_robin
from steelyard.model import build_model
from steelyard.observe import Preparation, RowSource, equations_of, reduce_rows, resolve_preparation, row_source
from steelyard.recording import Recording, TorqueChannel
from steelyard.robot import load_robot

SAMPLES = 1_000_000
THEIR_SAMPLES = 40_000
CHUNK = 4_000
RATE = 1000.0
FACTOR = 10
EFFECTS = ("inertia", "Ia", "Fvm", "Fcm", "offm")
WANTED = {"Pinocchio's loop, its columns as they come, QR": "  (wanted: 8)"}


def long_recording(joints: tuple[str, ...], samples: int) -> Recording:
    """Return a motion of a few sines a joint with torques of noise: what is measured here is time."""
    rng = np.random.default_rng(0)
    time = np.arange(samples) / RATE
    q = np.empty((len(joints), samples))
    for row in q:
        row[:] = 0.0
        for harmonic in range(1, 4):
            row += rng.uniform(0.2, 0.5) / harmonic * np.sin(0.7 * harmonic * time + rng.uniform(0, 6))
    torque = TorqueChannel("motor_torque", rng.standard_normal(q.shape))
    return Recording(joints, time, q, torques=(torque,))


class TheirLoop:
    """What one would write by hand: regressor sample by sample, friction columns, QR of each joint in chunks.

    Args:
        motion: q, qd, qdd (7, N), given for free.
        torque: Torques (7, N).
        columns: Which of Pinocchio's 70 columns to use.
        every: Only one row in so many goes into the QR, as if decimation cost nothing.
    """

    def __init__(self, motion: tuple[np.ndarray, ...], torque: np.ndarray, columns: list[int], every: int = 1) -> None:
        self.model = pinocchio_model(load_robot("kuka_lwr4"))
        self.rows = [np.ascontiguousarray(part.T) for part in motion]
        self.motion, self.torque, self.columns, self.every = motion, torque, columns, every

    def __call__(self) -> list[np.ndarray]:
        """Return a triangle for each joint."""
        triangles = [np.empty((0, len(self.columns) + 5)) for _ in range(7)]
        for first in range(0, self.torque.shape[1], CHUNK):
            chunk = self._chunk(first, min(first + CHUNK, self.torque.shape[1]))
            for joint in range(7):
                rows = self._with_friction(chunk[:: self.every, joint], joint, slice(first, first + CHUNK, self.every))
                triangles[joint] = np.asarray(np.linalg.qr(np.vstack([triangles[joint], rows]), mode="r"))
        return triangles

    def _chunk(self, first: int, last: int) -> np.ndarray:
        data, (q, qd, qdd) = self.model.createData(), self.rows
        chunk = np.empty((last - first, 7, 70))
        for k in range(first, last):
            chunk[k - first] = pin.computeJointTorqueRegressor(self.model, data, q[k], qd[k], qdd[k])
        return chunk

    def _with_friction(self, inertial: np.ndarray, joint: int, part: slice) -> np.ndarray:
        _, qd, qdd = (signal[joint, part] for signal in self.motion)
        friction = [qdd, qd, np.sign(qd), np.ones_like(qd)]
        return np.column_stack([inertial[:, self.columns], *friction, self.torque[joint, part]])


def run() -> None:
    """Print the rates, their ratios and the memory that ours adds, one thread, CPU time."""
    equations = equations_of(build_model(load_robot("kuka_lwr4"), EFFECTS, "motor"))
    recording = long_recording(equations.joints, SAMPLES)
    resolved = resolve_preparation(Preparation(cutoff=20.0, decimation=FACTOR), [recording])

    def source() -> RowSource:
        return row_source(recording, equations, resolved, "long")

    given = _given(recording)
    retained = [column for column in equations.base.base_columns if column < 70]
    theirs = {
        "Pinocchio's loop, its columns as they come, QR": TheirLoop(*given, list(range(70))),
        "the same with base columns only": TheirLoop(*given, retained),
        f"and QR of every {FACTOR}th row only": TheirLoop(*given, retained, FACTOR),
    }
    times = round_robin({"ours": lambda: reduce_rows([source()]), **theirs}, rounds=5)
    added = _added_memory(source())
    print(f"7 joints, {len(equations.names)} columns, one thread, CPU time, 5 rounds in turns; theirs is given qd, qdd")
    print(f"  ours: {SAMPLES} positions through filter, differences, regressor, decimation by {FACTOR}, QR")
    print(f"    {1e6 * times['ours'].median / SAMPLES:.2f} us a sample; adds {added:.0f} MB  (wanted: 50 at most)")
    for name in theirs:
        faster = ratio(times[name], times["ours"], SAMPLES / THEIR_SAMPLES)
        per_sample = 1e6 * times[name].median / THEIR_SAMPLES
        print(f"  {name}")
        print(f"    {per_sample:.2f} us a sample; ours: times faster {faster}{WANTED.get(name, '')}")


def _given(recording: Recording) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Return q, qd, qdd and the torques of the samples that the others get."""
    q = recording.q[:, :THEIR_SAMPLES]
    qd = np.gradient(q, 1 / RATE, axis=1)
    return (q, qd, np.gradient(qd, 1 / RATE, axis=1)), recording.torques[0].values[:, :THEIR_SAMPLES]


def _added_memory(source: RowSource) -> float:
    tracemalloc.start()
    reduce_rows([source])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6

"""Decimating every regressor column of a 7-joint arm against ``scipy.signal.decimate`` of the same array."""

from __future__ import annotations

import numpy as np
from scipy import signal

from benchmarks.timing import ratio, round_robin
from steelyard.kernel import compile_batch
from steelyard.model import build_model, random_motion
from steelyard.robot import load_robot
from steelyard.signals import Decimator, decimate

SAMPLES = 100_000
BLOCK = 8_000
FACTORS = (10, 100, 500)
RATE = 1000.0


def regressor_rows() -> np.ndarray:
    """Return the regressor of a 7-joint arm, a row for each structural non-zero; SciPy is spared the zeros too."""
    model = build_model(load_robot("kuka_lwr4"))
    (rows,) = compile_batch(model.regressor)(*random_motion(model.robot, SAMPLES, np.random.default_rng(0)))
    return np.ascontiguousarray(rows)


def in_blocks(W: np.ndarray, factor: int) -> None:
    """Decimate as a stream does, block by block."""
    decimator = Decimator(RATE, factor)
    for first in range(0, SAMPLES, BLOCK):
        decimator.push(W[:, first : first + BLOCK])
    decimator.flush()


def run() -> None:
    """Print the ratios for each factor, one thread, CPU time."""
    W = regressor_rows()
    print(f"decimation of {W.shape[0]} regressor columns, {SAMPLES} samples, one thread, CPU time, rounds in turns")
    for factor in FACTORS:
        times = round_robin(
            {
                "scipy": lambda factor=factor: signal.decimate(W, factor),
                "whole": lambda factor=factor: decimate(W, RATE, factor),
                "blocks": lambda factor=factor: in_blocks(W, factor),
            }
        )
        print(f"  factor {factor:3d}: scipy.signal.decimate {times['scipy'].median:.3f} s")
        print(f"    ours, whole array: times faster {ratio(times['scipy'], times['whole'])}  (wanted: 10)")
        print(f"    ours, blocks of {BLOCK}: times faster {ratio(times['scipy'], times['blocks'])}")

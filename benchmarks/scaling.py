"""Cost of a regressor against the number of joints and of samples, printed and plotted."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from benchmarks.chains import chain
from steelyard.kernel import BatchFunction, compile_batch
from steelyard.model import random_motion
from steelyard.physics import inertial_regressor_function
from steelyard.robot import load_robot

JOINTS = (2, 3, 5, 7, 10, 15, 20, 30)
SAMPLES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
# Results of up to 20 joints stay within 2 MB, a usual second-level cache; those of 30 joints do not.
FEW = 64
PLOT = Path(__file__).parent / "results" / "scaling.html"


def microseconds_a_sample(kernel: BatchFunction, motion: tuple[np.ndarray, ...]) -> float:
    """Return the best CPU time a sample of five runs, each long enough to measure."""
    count = motion[0].shape[1]
    out = kernel(*motion)
    # Small buffers are used again and again in practice, and so bound; large results are streamed past the cache.
    run = kernel.bind(motion, out) if count <= FEW else lambda: kernel(*motion, out=out)
    repeats = max(1, 100_000 // count)
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        for _ in range(repeats):
            run()
        best = min(best, (time.process_time() - start) / (repeats * count))
    return 1e6 * best


def run() -> None:
    """Print both curves and write them as a plot."""
    by_joints = []
    for joints in JOINTS:
        robot = chain(joints)
        kernel = compile_batch(inertial_regressor_function(robot))
        motion = random_motion(robot, FEW, np.random.default_rng(0))
        by_joints.append(microseconds_a_sample(kernel, motion))
        print(f"  {joints:3d} joints, {FEW} samples: {by_joints[-1]:8.4f} us a sample")
    robot = load_robot("kuka_lwr4")
    kernel = compile_batch(inertial_regressor_function(robot))
    by_samples = []
    for count in SAMPLES:
        by_samples.append(microseconds_a_sample(kernel, random_motion(robot, count, np.random.default_rng(0))))
        print(f"  7 joints, {count:8d} samples: {by_samples[-1]:8.4f} us a sample")
    print(f"  plot: {write_plot(by_joints, by_samples)}")


def write_plot(by_joints: list[float], by_samples: list[float]) -> Path:
    """Write one self-contained page with both curves."""
    titles = (f"cost against joints ({FEW} samples)", "cost against samples (7 joints)")
    figure = make_subplots(1, 2, subplot_titles=titles)
    figure.add_trace(go.Scatter(x=JOINTS, y=by_joints, mode="lines+markers", showlegend=False), 1, 1)
    figure.add_trace(go.Scatter(x=SAMPLES, y=by_samples, mode="lines+markers", showlegend=False), 1, 2)
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log", title="us a sample, one thread")
    figure.update_xaxes(title="joints", col=1)
    figure.update_xaxes(title="samples", col=2)
    PLOT.parent.mkdir(exist_ok=True)
    figure.write_html(PLOT, include_plotlyjs=True)
    return PLOT

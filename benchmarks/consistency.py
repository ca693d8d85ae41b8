"""Physically consistent parameters: against cvxpy, on every arm, on weak logs, their coverage and their time.

    python -m benchmarks.consistency [--part peers catalogue coverage weak balanced speed] [--seeds 20]

``peers`` solves the programme of every catalogue arm with cvxpy by Clarabel and by SCS too. ``catalogue`` compares the
errors of free and of consistent parameters on unseen motion. ``coverage`` draws estimates about the truth by the
covariance of a fit and counts how often 95 % intervals of parameters that the data decide hold it. ``weak`` has one
short motion of a heavy arm whose CAD values are off by 10 to 30 %, or by 200 %: the error on other motions beside that
of the CAD values with fitted friction. ``balanced`` is the same arm with a balancer on joint 2, known as a table in
steps of ten degrees, and with Dahl and Stribeck friction that the model lacks. ``speed`` is the time of the programme,
for few samples and for many.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.signal import lfilter

from steelyard.consistency import (
    ConsistencySettings,
    StandardParameters,
    StandardProblem,
    reference_body,
    standard_parameters,
)
from steelyard.consistency.programme import Programme, solve
from steelyard.consistency.pseudo_inertia import random_bodies, smat, svec
from steelyard.estimate import Estimate
from steelyard.identification import Fitted, Settings, fit_arm
from steelyard.identification.consistent import consistent_parameters
from steelyard.judge import LeftOutBlocks, combined, evaluate
from steelyard.motion import limits_of, quintic, quintic_profile, random_points
from steelyard.observe import row_source
from steelyard.recording import Recording
from steelyard.robot import INERTIAL_NAMES, Robot, catalogue_names, is_consistent, load_robot, read_catalogue
from steelyard.robot.balancers import Balancer, Formula, Strut, TorqueTable
from steelyard.simulation import Experiment, SimulatedRun, recording_of, simulate

HEAVY = Path(__file__).parent / "data" / "heavy.robot.toml"
ARMS = tuple(name for name in catalogue_names() if "inertias" in read_catalogue(name).carries)
FAST = ConsistencySettings(draws=2)


def simulated(
    robot: Robot,
    seed: int,
    moves: int = 7,
    noise: float = 0.01,
    correlation: float = 0.0,
    plant: Literal["compiled", "ideal"] = "compiled",
) -> tuple[SimulatedRun, Recording]:
    """Return a run of random moves of 2 s at 200 Hz, and its recording with noise of a part of the torques."""
    points = random_points(limits_of(robot), moves + 1, 2.0, quintic_profile(), np.random.default_rng(seed))
    experiment = Experiment(record_rate=200, saturate=False, encoder_quantum=1e-6, plant=plant)
    run = simulate(robot, quintic(points, 2.0, list(robot.joint_names)), experiment, [seed])
    clean, rng = recording_of(run), np.random.default_rng(seed + 999)
    noisy = []
    for channel in clean.torques:
        white = rng.standard_normal(channel.values.shape)
        coloured = lfilter([np.sqrt(1 - correlation**2)], [1, -correlation], white, axis=1)
        size = noise * np.sqrt((channel.values**2).mean(axis=1, keepdims=True))
        noisy.append(replace(channel, values=channel.values + size * coloured))
    return run, replace(clean, torques=tuple(noisy))


def unseen_error(fit: Fitted, recording: Recording) -> Callable[[Estimate], float]:
    """Return a function from an estimate to its relative error on a recording [%]."""
    source = row_source(recording, fit.equations, fit.resolved, "unseen")
    return lambda estimate: combined([evaluate(source, estimate, fit.fit.noise)]).relative_percent


def fitted_catalogue(name: str) -> tuple[SimulatedRun, Fitted]:
    """Return a simulated run of a catalogue arm and its fit."""
    run, recording = simulated(load_robot(name), 1)
    return run, fit_arm(load_robot(name), recording, Settings(effects=run.effects))


def with_cvxpy(one: Programme, solver: str, **options: Any) -> np.ndarray:
    """Return the unknowns as cvxpy finds them, the problem written from the definition."""
    import cvxpy as cp

    x = cp.Variable(one.size)
    start = solve(one).x  # a shift of the origin only: cvxpy's stuffing loses digits where data are far from zero
    cost = cp.sum_squares(one.rows @ x - (one.target - one.rows @ start)) / 2
    cost += cp.sum(cp.multiply(one.pull / 2, cp.square(x + start - one.pull_to)))
    constraints = [one.upper @ (x + start) <= one.bound]
    for first, weight, centre in zip(one.bodies, one.weights, one.centres, strict=True):
        body, own = cp.Variable((4, 4), symmetric=True), x[first : first + 10] + start[first : first + 10]
        constraints += [
            body[i, j] * (1.0 if i == j else np.sqrt(2)) == own[k]
            for k, (i, j) in enumerate((i, j) for j in range(4) for i in range(j + 1))
        ]
        constraints.append(body >> one.margin * np.eye(4))
        if weight > 0:
            cost += weight * (centre @ own - cp.log_det(body))
    cp.Problem(cp.Minimize(cost), constraints).solve(solver=solver, **options)
    return np.asarray(x.value) + start


def objective(one: Programme, x: np.ndarray) -> float:
    """Return what a programme minimises, at given unknowns (n,)."""
    value = float(np.sum((one.rows @ x - one.target) ** 2) + one.pull @ (x - one.pull_to) ** 2)
    for first, weight, centre in zip(one.bodies, one.weights, one.centres, strict=True):
        if weight > 0:
            own = x[first : first + 10]
            value += 2 * weight * (float(centre @ own) - float(np.linalg.slogdet(smat(own))[1]))
    return value / 2


def peers() -> None:
    """Compare with cvxpy."""
    print("  objective and base parameters against cvxpy, relative: Clarabel, SCS; time over cvxpy's with Clarabel")
    for name in ARMS:
        _, fit = fitted_catalogue(name)
        for text, prior, deviation in (("no prior", None, None), ("prior 20 %", load_robot(name), 0.2)):
            problem = StandardProblem(fit.equations, fit.fit.estimate, FAST, prior)
            programme = problem.programme(deviation)
            start = time.perf_counter()
            mine = solve(programme)
            middle = time.perf_counter()
            cells, ratio = [], float("nan")
            for solver, options in (("CLARABEL", {}), ("SCS", {"eps": 1e-9, "max_iters": 200_000})):
                other = with_cvxpy(programme, solver, **options)
                if solver == "CLARABEL":
                    ratio = (time.perf_counter() - middle) / (middle - start)
                value = objective(programme, mine.x)
                far = problem.regrouping @ problem.to_parameters @ (mine.x - other)
                size = np.abs(problem.regrouping @ problem.to_parameters @ mine.x) + problem.estimate.sigma
                off = abs(objective(programme, other) - value) / max(abs(value), 1.0)
                cells.append(f"{off:.1e} {np.max(np.abs(far) / size):.1e}")
            print(f"  {name:14s} {text:11s} {'   '.join(cells)}   {ratio:.1f}", flush=True)


def _is_arm(found: StandardParameters) -> bool:
    place = {name: k for k, name in enumerate(found.names)}
    links = [[place[f"{symbol}{body.number}"] for symbol in INERTIAL_NAMES] for body in found.model.robot.bodies]
    return all(is_consistent(found.values[own]) for own in links)


def catalogue() -> None:
    """Compare the errors of free and consistent parameters on every arm."""
    print("  unseen error [%]: free, consistent, ratio; possible arm; links at the edge; values held at zero")
    for name in ARMS:
        run, fit = fitted_catalogue(name)
        error = unseen_error(fit, simulated(load_robot(name), 2)[1])
        found = standard_parameters(fit.equations, fit.fit.estimate, FAST)
        free, consistent = error(fit.fit.estimate), error(found.base)
        print(
            f"  {name:14s} {free:8.4f} {consistent:8.4f} {consistent / free:7.4f}  {_is_arm(found)!s:5s} "
            f"{len(found.edges)} {len(found.zeros)}  ({len(run.effects)} effects)",
            flush=True,
        )


def coverage(seeds: int) -> None:
    """Count how often intervals of data-dominated parameters hold the truth."""
    print(f"  95 % intervals of parameters from data that hold the truth, {seeds} draws: rate, parameters; at an edge")
    for name in ARMS:
        run, fit = fitted_catalogue(name)
        estimate, rng = fit.fit.estimate, np.random.default_rng(0)
        truth = np.array([run.truth[parameter] for parameter in fit.equations.model.names])
        problem = StandardProblem(fit.equations, estimate, FAST)
        root = np.linalg.inv(problem.root)
        inside, at_edge = [], 0
        for _ in range(seeds):
            values = problem.regrouping @ truth + root @ rng.standard_normal(len(root))
            found = standard_parameters(fit.equations, replace(estimate, values=values), ConsistencySettings(draws=60))
            known = np.array([source == "data" for source in found.sources])
            inside.append(np.abs(found.values - truth)[known] <= 1.96 * found.sigma[known])
            at_edge += bool(found.edges or found.zeros)
        rate = 100 * np.mean(np.concatenate(inside))
        print(
            f"  {name:14s} {rate:5.1f} %  {np.mean([len(one) for one in inside]):5.1f}  {at_edge} of {seeds}",
            flush=True,
        )


def off_by(robot: Robot, low: float, high: float, rng: np.random.Generator) -> Robot:
    """Return an arm whose links differ by relative deviations between two limits, friction and drives too."""
    values = {name: v * (1 + rng.uniform(low, high) * rng.choice([-1, 1])) for name, v in robot.values.items()}
    for body in robot.bodies:
        reference = reference_body(np.array(body.inertia))
        other = random_bodies(rng.uniform(low, high), 1, rng)[0]
        ten = reference.to_parameters @ svec(other)
        values |= {f"{symbol}{body.number}": float(v) for symbol, v in zip(INERTIAL_NAMES, ten, strict=True)}
    return robot.with_parameters(values)


def weak(seeds: int) -> None:
    """One short motion of a heavy arm: the prior beside CAD values with fitted friction."""
    cad = load_robot(HEAVY)
    print(
        "  heavy arm, one motion of 4 s, 2 % coloured noise; unseen error [%]: free, CAD and friction, no prior, prior"
    )
    for text, prior_factor in (("CAD off by 10 to 30 %", 1.0), ("CAD 200 % heavier", 3.0)):
        rows = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            truth = off_by(cad, 0.1, 0.3, rng)
            inertial = {f"{symbol}{body.number}" for body in cad.bodies for symbol in INERTIAL_NAMES}
            prior = cad.with_parameters({k: prior_factor * v for k, v in cad.parameters.items() if k in inertial})
            fit = fit_arm(prior, simulated(truth, seed, 1, 0.02, 0.9)[1])
            estimate, used = fit.fit.estimate, fit.fit
            error = unseen_error(fit, simulated(truth, 1000 + seed, 6, 0.02, 0.9)[1])
            blocks = LeftOutBlocks(used.observations, used.used, estimate.weights, estimate.columns)
            with_friction = standard_parameters(fit.equations, estimate, replace(FAST, deviation=1e-3), prior=prior)
            without = standard_parameters(fit.equations, estimate, FAST)
            drawn = standard_parameters(fit.equations, estimate, FAST, prior=prior, left_out=blocks)
            rows.append([error(estimate), *(error(one.base) for one in (with_friction, without, drawn))])
        table = np.array(rows)
        ratio = table[:, 3] / table[:, 1]
        print(f"  {text}: medians {'  '.join(f'{v:.2f}' for v in np.median(table, axis=0))}")
        print(
            f"    prior over CAD and friction: median {np.median(ratio):.2f}, worst {ratio.max():.2f} of {seeds}",
            flush=True,
        )


STRUT = Strut(1.1, 0.32, np.pi / 2, Formula("8000 + 10000 * (length - 0.9)", "length"))
"""Spring from the base of the heavy arm to its upper arm: it carries most of the weight on joint 2, 3 kN m."""
STICTION = {"Fd2m": 0.3, "Fs3m": 0.25}
"""Friction of the true arm that the model lacks, as parts of its Coulomb friction."""


def with_balancer(robot: Robot, law: Strut | TorqueTable) -> Robot:
    """Return an arm with a balancer on joint 2."""
    joint = robot.joint_names[1]
    return replace(robot, balancers=(Balancer(joint, law),), values={**robot.values, "Sb2": 1.0})


def table_of(law: Strut, robot: Robot) -> TorqueTable:
    """Return the table that a maker would give: the range of joint 2 in steps of ten degrees, whole newton metres."""
    limits = robot.actuated[1].joint.limits
    q = np.radians(np.arange(np.degrees(limits.lower), np.degrees(limits.upper) + 1, 10.0))
    return TorqueTable(tuple(q.tolist()), tuple(np.round(law.value(q, np)).tolist()))


def balanced_errors(seed: int, plant: Literal["compiled", "ideal"] = "compiled") -> tuple[np.ndarray, bool]:
    """Return errors on unseen motion [%] after one short motion of the balanced arm, and whether an arm can be so.

    They are those of free parameters, of CAD values with fitted friction, and of the arm that ``identify`` finds by
    default from a robot file whose inertias are CAD values.
    """
    cad, rng = load_robot(HEAVY), np.random.default_rng(seed)
    arm = off_by(cad, 0.2, 0.2, rng)
    stiction = {
        f"{symbol}{body.number}": part * arm.values[f"Fcm{body.number}"]
        for symbol, part in STICTION.items() for body in arm.actuated
    }  # fmt: skip
    truth = with_balancer(replace(arm, values={**arm.values, **stiction}), STRUT)
    prior = replace(with_balancer(cad, table_of(STRUT, cad)), inertia_source="cad")
    fit = fit_arm(prior, simulated(truth, seed, 1, 0.02, 0.9, plant)[1])
    error = unseen_error(fit, simulated(truth, 1000 + seed, 6, 0.02, 0.9, plant)[1])
    estimate, used = fit.fit.estimate, fit.fit
    fixed = standard_parameters(fit.equations, estimate, replace(FAST, deviation=1e-3), prior=prior)
    blocks = LeftOutBlocks(used.observations, used.used, estimate.weights, estimate.columns)
    found, _ = consistent_parameters(fit.equations, estimate, Settings(consistency=FAST), blocks)
    if found is None:
        raise ValueError("no arm was found")
    return np.array([error(one) for one in (estimate, fixed.base, found.base)]), _is_arm(found)


def balanced(seeds: int) -> None:
    """One short motion of a heavy arm with a balancer and stiction."""
    print("  heavy arm with a balancer and stiction, CAD off by 20 %, one motion of 2 s, 2 % coloured noise")
    rows, possible = [], 0
    for seed in range(seeds):
        errors, is_arm = balanced_errors(seed)
        rows.append(errors)
        possible += is_arm
    table = np.array(rows)
    ratio = table[:, 2] / table[:, 1]
    medians = "  ".join(f"{v:.2f}" for v in np.median(table, axis=0))
    print(f"  unseen error [%], medians: free, CAD and friction, prior: {medians}; possible arms {possible} of {seeds}")
    print(
        f"  prior over CAD and friction: median {np.median(ratio):.2f}, worst {ratio.max():.2f}, above 1 in "
        f"{int((ratio > 1).sum())} of {seeds}",
        flush=True,
    )


def speed() -> None:
    """Time the programme for few samples and for many, which are the same rows many times."""
    print("  CPU seconds after the factors, median of 9: without prior, with one of 20 %")
    for name in ("scara_2r", "ur10e", "kuka_lwr4"):
        _, fit = fitted_catalogue(name)
        for samples, factor in ((1_000, 1.0), (1_000_000, np.sqrt(1000.0))):
            estimate = fit.fit.estimate
            system = replace(estimate.system, triangle=factor * estimate.system.triangle)
            many = replace(estimate, system=system, covariance=estimate.covariance / factor**2)
            cells = []
            for prior, deviation in ((None, None), (load_robot(name), 0.2)):
                times = []
                for _ in range(9):
                    start = time.process_time()
                    problem = StandardProblem(fit.equations, many, FAST, prior)
                    solve(problem.programme(deviation))
                    times.append(time.process_time() - start)
                cells.append(f"{np.median(times):.3f}")
            print(f"  {name:12s} {samples:>9,d} samples  {'  '.join(cells)}", flush=True)


PARTS: dict[str, Callable[..., None]] = {
    "peers": peers, "catalogue": catalogue, "coverage": coverage, "weak": weak, "balanced": balanced,
    "speed": speed,
}  # fmt: skip


def run(parts: Sequence[str] = tuple(PARTS), seeds: int = 20) -> None:
    """Run some parts."""
    for part in parts:
        print(part)
        PARTS[part](*((seeds,) if part in ("coverage", "weak", "balanced") else ()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args()
    run(chosen.part, chosen.seeds)

"""The search: repeatable on any number of threads, interruptible, and plain about what cannot be met."""

from __future__ import annotations

import signal
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import DesignError
from steelyard.excitation import DesignSettings, SearchProgress, assembled, design_limits, known_of
from steelyard.excitation import design as design_experiment
from steelyard.excitation.assembly import Assembled
from steelyard.excitation.descent import state_of
from steelyard.excitation.generations import SearchCallback, no_progress, random_start
from steelyard.excitation.search import FINALISTS, Found, interruptible, random_baseline, search
from steelyard.model import build_model
from steelyard.motion import motion_limits
from steelyard.robot import load_robot
from steelyard.workers import Shared, open_workers

SCARA = load_robot("scara_2r")
QUICK = DesignSettings(starts=3, harmonics=3, duration=8.0)


def ready(**changes) -> Assembled:
    model, limits = build_model(SCARA), replace(design_limits(SCARA), **changes)
    return assembled(model, limits, QUICK, known_of(model, limits)[0])


def searched(made: Assembled, starts: int, seed: int, threads: int = 1, callback=no_progress) -> Found:
    with open_workers(workers=threads, threads=True) as workers:
        return search(Shared(lambda: made), workers, starts=starts, seed=seed, callback=callback)


def test_a_seed_gives_the_same_answer_on_any_number_of_threads():
    one, three = (searched(ready(), 3, 5, threads) for threads in (1, 3))
    assert one.best.z.tobytes() == three.best.z.tobytes()
    assert one.best.value == three.best.value
    assert [start.value for start in one.starts] == [start.value for start in three.starts]
    assert one.best.certificate.findings == three.best.certificate.findings
    other = searched(ready(), 1, 6)
    assert other.best.z.tobytes() != one.best.z.tobytes()


def test_the_best_of_all_starts_is_taken_and_news_are_told():
    updates: list[SearchProgress] = []
    found = searched(ready(), 3, 0, callback=updates.append)
    assert [start.number for start in found.starts] == list(range(5))
    assert [start.origin is None for start in found.starts] == [True] * 3 + [False] * 2
    finals = [start.final for start in found.starts if start.final is not None]
    assert len(finals) == FINALISTS
    assert found.best.value == min(finals)
    assert found.best.certificate.holds
    assert not found.is_interrupted
    assert [update.done for update in updates] == sorted(update.done for update in updates)
    assert updates[-1].done == updates[-1].total
    values = [update.value for update in updates if update.value is not None]
    assert values == sorted(values, reverse=True)
    assert all(update.violation >= 0 for update in updates)


def test_the_search_improves_on_where_it_started():
    made = ready()
    found = searched(made, 1, 2)
    start = state_of(made.problem, random_start(made.problem, np.random.default_rng([2, 0])))
    assert found.best.value < start.value - 3
    worst = max(float(values.max()) for values in found.problem.constraints(found.best.z))
    assert -0.01 < worst <= 0


def by_signal(update: SearchProgress) -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def by_who_is_told(update: SearchProgress) -> None:
    raise KeyboardInterrupt


def once(way: SearchCallback, after: int) -> SearchCallback:
    """Return a callback that interrupts as soon as so many stages are done."""
    done: list[SearchProgress] = []

    def callback(update: SearchProgress) -> None:
        if update.done >= after and not done:
            done.append(update)
            way(update)

    return callback


@pytest.mark.parametrize(
    "after", [1, pytest.param(4, marks=pytest.mark.large), pytest.param(12, marks=pytest.mark.large)]
)
@pytest.mark.parametrize("way", [by_signal, by_who_is_told])
def test_an_interrupt_leaves_the_best_proven_motion_so_far(way, after):
    if way is by_signal and sys.platform == "win32":
        pytest.skip("a thread cannot send an interrupt to another one there")
    before = signal.getsignal(signal.SIGINT)
    design = design_experiment(SCARA, QUICK, callback=once(way, after))
    assert signal.getsignal(signal.SIGINT) == before
    assert design.is_interrupted
    assert design.certificate.holds
    assert design.baseline is None
    if after > 1:
        made = ready()
        random = random_baseline(made.problem, made.certifier, made.forecast(), 0)
        assert random is not None
        assert design.figures.log10_det_covariance < random.log10_det_covariance


def test_a_second_interrupt_ends_the_program():
    stop = threading.Event()
    with interruptible(stop):
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_search_in_another_thread_leaves_interrupts_alone():
    before, handlers = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interruptible(threading.Event()):
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before]


@pytest.mark.large
def test_a_torque_that_the_arm_needs_to_stand_is_named_with_what_is_missing():
    robot = load_robot("kuka_ir361")
    own = design_limits(robot)
    # The upper arm stays nearly level: its weight alone needs more than that.
    level = replace(own.motion, lower=np.array([-1.0, -0.2, -0.2]), upper=np.array([1.0, 0.2, 0.2]))
    limits = replace(own, motion=level, torque=np.array([1e3, 60.0, 1e3]))
    with pytest.raises(
        DesignError, match=r"no motion was found that keeps 'torque of joint_2'.* the limit is 60"
    ) as error:
        design_experiment(robot, replace(QUICK, starts=1), limits=limits)
    assert "\n" not in str(error.value)
    assert "off by" in str(error.value)
    assert "widen that limit" in str(error.value)


def test_a_limit_below_the_friction_is_refused_before_the_search():
    robot = load_robot("kuka_ir361")
    limits = replace(design_limits(robot), torque=np.array([1e3, 20.0, 1e3]))
    with pytest.raises(DesignError, match="torque of joint_2: its Coulomb friction 40 alone reaches the limit 20"):
        design_experiment(robot, replace(QUICK, starts=1), limits=limits)


def test_a_random_start_lies_within_its_range_more_or_less():
    made = ready(motion=motion_limits(("joint_1", "joint_2"), lower=[-1, 2], upper=[1, 3], velocity=9, acceleration=9))
    for seed in range(20):
        q = made.problem.samples(random_start(made.problem, np.random.default_rng(seed)))[0]
        assert (np.abs(q.mean(axis=1) - [0, 2.5]) < [1.2, 0.6]).all()

"""Claims fed with wrong figures: each must come out as not expected, and say whether the paper would be right then."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from steelyard import papers
from steelyard.motion import quintic
from steelyard.papers import PaperResult, p1_motion, p2_sigmas, p3_poses, paper_to_json
from steelyard.papers.p1 import PRINTED, _full
from steelyard.papers.p1_filters import far_cheaper
from steelyard.papers.p2_excitation import _second_claims
from steelyard.papers.p2_sigmas import SigmaStudy, sigma_claims
from steelyard.papers.p3 import Theory3, _run_claims
from steelyard.papers.p3_runs import ETAS, OWN_ITERATIONS, Runs3, own_residuals
from steelyard.papers.p4 import spring_claims
from steelyard.papers.p4_bench import C1, C2, SAMPLES
from steelyard.papers.p4_estimation import StudyChecks, study_claims
from steelyard.papers.p4_experiment import TrackingValidation, experiment_claims
from steelyard.papers.p4_iterated import DesignIteration, iterated_claims
from steelyard.papers.p5 import _payload, headline, normality_claim
from steelyard.papers.p5_tables import LINKS

SOURCES = sorted(Path(papers.__file__).parent.glob("*.py"))


def reasons() -> list[str]:
    """What every claim in the source says would make it fail; texts under a name are found by that name."""
    found = []
    for source in SOURCES:
        tree = ast.parse(source.read_text(encoding="utf-8"))
        named = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                if source.name == "claim.py":
                    continue
                (value,) = [each.value for each in node.keywords if each.arg == "fails_if"]
                found.append(ast.literal_eval(named[value.id] if isinstance(value, ast.Name) else value))
    return found


MAKERS = ("near", "within", "same")


def test_every_claim_says_what_would_make_it_fail_and_its_json_has_it():
    assert len(reasons()) > 70
    assert all(reason.strip() for reason in reasons())
    claim = _full("ZZR1", 3.42, 10)
    result = PaperResult("P1", "title", (claim,), (), ())
    assert [each["fails_if"] for each in paper_to_json(result)["claims"]] == [claim.fails_if]
    assert "(`fails_if`)" in Path("docs/papers.md").read_text(encoding="utf-8")


def unexpected(claims) -> dict[str, bool | None]:
    """Claims that are not as expected, and whether the paper's statement holds of their figures."""
    return {claim.name: claim.paper_holds for claim in claims if not claim.holds}


@pytest.mark.parametrize("name", ["ZZR1", "Fv1", "LMX2"])
def test_p1_a_biased_mean_of_ten_experiments_is_unexpected(name):
    assert not _full(name, PRINTED[name][2][0], 10).holds
    assert _full(name, {"ZZR1": 3.42, "Fv1": 0.07, "LMX2": 0.131}[name], 10).holds


def test_p1_far_cheaper_does_not_hold_and_would_be_refused_if_it_did():
    times = {"Kalman filter, case 3": 0.020, "weighted least squares": 0.025}
    assert (far_cheaper(times).holds, far_cheaper(times).paper_holds) == (True, False)
    noisy = {"Kalman filter, case 3": 0.040, "weighted least squares": 0.015}
    assert far_cheaper(noisy).ours == far_cheaper(times).ours
    dear = far_cheaper({"Kalman filter, case 3": 170.0, "weighted least squares": 3.0})
    assert (dear.holds, dear.paper_holds) == (False, True)


def test_p1_conditions_of_the_experiment_count_and_not_those_of_the_plan():
    keys = [(move, chosen) for move in p1_motion.MOVES for chosen in (p1_motion.WW, p1_motion.U)]
    moves = {key: quintic(np.zeros((2, p1_motion.MOVES[key[0]] + 1)), 1.0, ["joint_1", "joint_2"]) for key in keys}
    motions = {
        key: SimpleNamespace(trajectory=move, certificate=SimpleNamespace(holds=True)) for key, move in moves.items()
    }
    good, bad = p1_motion.Conditions(60.0, 60.0), p1_motion.Conditions(600.0, 600.0)
    planned, simulated = dict.fromkeys(keys, good), dict.fromkeys(keys, bad)
    found = p1_motion.Optimised(motions, planned, simulated)  # pyright: ignore[reportArgumentType]
    assert len(unexpected(p1_motion.motion_claims(found))) == 4
    reached = p1_motion.Optimised(motions, simulated, planned)  # pyright: ignore[reportArgumentType]
    assert list(unexpected(p1_motion.motion_claims(reached)).values()) == [True, True]  # cond(U) of 60: the paper's 100


def excited(torques_a, torques_b, gamma=0.064, raw=36.0):
    nothing = [0.0] * 5
    return SimpleNamespace(
        first=SimpleNamespace(mean_torques=np.array([*nothing, *torques_a])),
        second=SimpleNamespace(
            mean_torques=np.array([*nothing, *torques_b]), value=gamma, figures=SimpleNamespace(raw=raw)
        ),
    )


def test_p2_wrist_torques_may_scatter_as_searches_do_but_not_stay_the_same():
    for torques_a in ((1.23, 0.38), (1.38, 0.58), (1.42, 0.49)):
        assert unexpected(_second_claims(excited(torques_a, (1.63, 1.54)))) == {}  # pyright: ignore[reportArgumentType]
    alike = unexpected(_second_claims(excited((1.2, 0.4), (1.2, 0.4))))  # pyright: ignore[reportArgumentType]
    assert len(alike) == 1
    lazy = unexpected(_second_claims(excited((1.2, 0.4), (1.7, 1.6), gamma=0.1, raw=50.0)))  # pyright: ignore[reportArgumentType]
    assert len(lazy) == 2


def test_p2_differences_of_two_arms_that_are_not_found_are_unexpected():
    right = [p2_sigmas.TwoArms(f"XX{k}", (1.0, 0.01, 1.0), (1.2 + 0.014 * (-1) ** k, 0.01, 1.2)) for k in range(20)]
    missed = [p2_sigmas.TwoArms(f"XX{k}", (1.0, 0.01, 1.0), (1.0, 0.01, 1.2)) for k in range(20)]
    assert p2_sigmas.robot_claim(right).holds
    assert not p2_sigmas.robot_claim(missed).holds


def test_p2_sigmas_that_are_halved_are_refused_and_the_paper_would_be_right():
    columns = (*(f"Fvm{k}" for k in range(1, 8)), "XX2", "XX4", "ML")
    random, least = np.ones(10), np.array([*[0.6] * 7, *[0.0] * 3])
    halved = SimpleNamespace(figures=SimpleNamespace(sigma=np.full(10, 0.5)))
    keys = [("condition", "5 harmonics of 20 s"), ("d", "5 harmonics of 20 s")]
    study = SigmaStudy(columns, random, dict.fromkeys(keys, halved), least)  # pyright: ignore[reportArgumentType]
    assert list(unexpected(sigma_claims(study)).values()) == [True, True, True]


def test_p3_a_design_that_is_worse_at_unseen_poses_is_unexpected():
    predicted = {p3_poses.FEW: 0.4, p3_poses.SPREAD: 0.5}
    unseen = {p3_poses.FEW: 20e-6, p3_poses.SPREAD: 10e-6, "Table 2": 13e-6}
    assert unexpected(p3_poses.pose_claims(p3_poses.Poses3({}, predicted, unseen))) == {}
    worse = {**unseen, p3_poses.SPREAD: 14e-6}
    (name,) = unexpected(p3_poses.pose_claims(p3_poses.Poses3({}, predicted, worse)))
    assert p3_poses.SPREAD in name


def weighed(gain: float, growth: float, coverage: float) -> tuple[Theory3, Runs3]:
    """Normal estimates of two compliances, OLS that many times as wide as WLS; own residuals claim more and more."""
    rng, truth = np.random.default_rng(0), np.zeros(2)
    wls = rng.standard_normal((400, 2))
    values = dict.fromkeys(("wls", "wls, one iteration", *(f"eta {eta:g}" for eta in ETAS)), wls)
    sigmas = {name: np.full((400, 2), coverage) for name in values if name != "wls, one iteration"}
    values["ols"] = gain * rng.standard_normal((400, 2))
    for number in range(1, OWN_ITERATIONS + 1):
        values[own_residuals(number)] = wls
        sigmas[own_residuals(number)] = np.full((400, 2), 0.05 / growth**number)
    ones = np.ones(2)
    return Theory3(("k3", "k4"), np.arange(2), {}, 5.1, 1.5 * ones, ones), Runs3(truth, values, sigmas)


def test_p3_the_paper_s_gain_converging_weights_and_narrow_intervals_are_unexpected():
    assert unexpected(_run_claims(*weighed(1.5, 2.0, 1.0))) == {}
    assert True in unexpected(_run_claims(*weighed(30.0, 2.0, 1.0))).values()  # 27 to 42
    assert any("own residual" in name for name in unexpected(_run_claims(*weighed(1.5, 1.0, 1.0))))
    assert sum("coverage, " in name for name in unexpected(_run_claims(*weighed(1.5, 2.0, 0.3)))) == 4


def test_p4_biased_studies_and_motions_that_do_not_differ_are_unexpected():
    fine = StudyChecks(SAMPLES, 0.70, 0.90, (0.03, 0.02), (0.7, 0.9))
    biased = StudyChecks(SAMPLES, 0.30, 0.90, (0.03, 0.02), (0.3, 0.9))
    assert unexpected(study_claims((fine,))) == {}
    assert list(unexpected(study_claims((biased,))).values()) == [False]
    alike = {C1: 10.0, C2: 10.0}
    assert len(unexpected(spring_claims({C1: 8.0, C2: 8.0}, alike, alike))) == 2
    assert unexpected(spring_claims({C1: 2.8, C2: 4.5}, {C1: 21.0, C2: 15.0}, {C1: 5.7, C2: 10.7})) == {}


def test_p4_a_model_no_better_and_an_iteration_that_does_not_converge_are_unexpected():
    ones = np.ones(3)
    mean = SimpleNamespace(gain=4.0, error=1.0, variance_ratio=1.0)
    analogue = SimpleNamespace(plain=(90.0, "a"), undone=(6.0, "a"), alike=(0.1, "a"), delay=0.02, band=55.0)
    same = TrackingValidation({C1: ones, C2: ones}, {C1: ones, C2: ones}, 3.0)
    wrong = TrackingValidation({C1: ones, C2: ones}, {C1: 2 * ones, C2: ones}, 30.0)
    assert [name.split(":")[0] for name in unexpected(experiment_claims(mean, analogue, same))] == [  # pyright: ignore[reportArgumentType]
        "validation on 20 random points"
    ]
    assert [name.split(":")[0] for name in unexpected(experiment_claims(mean, analogue, wrong))] == ["validation"]  # pyright: ignore[reportArgumentType]
    good, off = DesignIteration(1.0, -50.0, -50.01, 2.0), DesignIteration(1.0, -50.0, -50.3, 9.0)
    assert unexpected(iterated_claims([good, good, good])) == {}
    assert len(unexpected(iterated_claims([good, good, off]))) == 2


def models(ratio: float = 5.0, payload: float = 0.1, normality: float = 0.5):
    rng = np.random.default_rng(1)
    found = {}
    for model, size in (("A", ratio), ("B", 1.0), ("C", 1.0), ("D", 1.0)):
        errors = [dict(zip(LINKS, size * rng.standard_normal(len(LINKS)), strict=True)) for _ in range(10)]
        found[model] = [
            SimpleNamespace(link_errors=each, payload_error=payload, normality=normality) for each in errors
        ]
    return found


def test_p5_currents_as_accurate_as_sensors_would_be_unexpected():
    assert (headline(models()).holds, headline(models()).paper_holds) == (True, False)
    as_good = headline(models(ratio=1.0))
    assert (as_good.holds, as_good.paper_holds) == (False, True)


def test_p5_a_biased_payload_and_residuals_with_tails_are_unexpected():
    assert unexpected(_payload(models())) == {}
    assert len(unexpected(_payload(models(payload=1.4)))) == 3
    assert normality_claim(models()).holds
    tails = normality_claim(models(normality=0.001))
    assert (tails.holds, tails.paper_holds) == (False, False)

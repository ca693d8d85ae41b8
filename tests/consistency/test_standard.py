"""Standard parameters of arms that can exist: from simulated data, with and without a prior."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulated_experiments import short_log
from steelyard.consistency import ConsistencySettings, StandardProblem, standard_parameters
from steelyard.errors import EstimateError
from steelyard.export.identified import IdentifiedArm
from steelyard.export.urdf import urdf_file
from steelyard.identification import Settings, fit_arm
from steelyard.judge import LeftOutBlocks
from steelyard.motion import limits_of, quintic, quintic_profile, random_points
from steelyard.robot import INERTIAL_NAMES, Robot, is_consistent, load_robot, read_urdf
from steelyard.simulation import Experiment, Noise, recording_of, simulate

ARM = load_robot("kuka_ir361")
FAST = ConsistencySettings(draws=10)


@pytest.fixture(scope="module")
def fitted():
    run, recording = short_log("kuka_ir361", 1)
    return run, fit_arm(ARM, [recording], Settings(effects=run.effects))


def ten(found, number: int) -> np.ndarray:
    return found.values[[found.names.index(f"{symbol}{number}") for symbol in INERTIAL_NAMES]]


def shifted(fit, columns: dict[str, float]):
    """Return the estimate with some values moved by so many sigmas."""
    estimate = fit.fit.estimate
    moved = estimate.values.copy()
    for name, sigmas in columns.items():
        place = estimate.columns.index(name)
        moved[place] += sigmas * estimate.sigma[place]
    return replace(estimate, values=moved)


def with_scaled_links(robot: Robot, factor: float) -> Robot:
    return robot.with_parameters(
        {
            f"{s}{b.number}": factor * v
            for b in robot.bodies
            for s, v in zip(INERTIAL_NAMES, b.inertia or (), strict=True)
        }
    )


def left_out(fit) -> LeftOutBlocks:
    estimate = fit.fit.estimate
    return LeftOutBlocks(fit.fit.observations, fit.fit.used, estimate.weights, estimate.columns)


def test_an_estimate_that_is_consistent_stays_as_it_is(fitted):
    _, fit = fitted
    found, estimate = standard_parameters(fit.equations, fit.fit.estimate, FAST), fit.fit.estimate
    assert (found.edges, found.zeros, found.active) == ((), (), ())
    assert found.sigmas_by == "analytic"
    off = (found.base.full_values(estimate.columns) - estimate.values) / estimate.sigma
    assert np.abs(off).max() < 1e-4
    assert found.misfit < 1e-6


def test_the_robot_carries_the_found_values(fitted):
    _, fit = fitted
    found = standard_parameters(fit.equations, fit.fit.estimate, FAST)
    wanted = dict(zip(found.names, found.values.tolist(), strict=True))
    assert {name: found.robot.parameters[name] for name in wanted} == pytest.approx(wanted)


def test_links_beyond_the_possible_are_brought_back_to_its_edge(fitted):
    _, fit = fitted
    symbols = [name for name in fit.fit.estimate.columns if name.startswith(("XX", "YY", "ZZ"))]
    found = standard_parameters(fit.equations, shifted(fit, {symbols[-1]: -5000.0}), FAST)
    assert found.edges
    assert all(is_consistent(ten(found, body.number)) for body in ARM.bodies)
    assert found.misfit > 1
    assert found.sigmas_by == "bootstrap"


def test_negative_friction_is_held_at_zero(fitted):
    _, fit = fitted
    found = standard_parameters(fit.equations, shifted(fit, {"Fvm1": -1e5}), FAST)
    assert "Fvm1" in found.zeros
    assert found.values[found.names.index("Fvm1")] == 0


def test_draws_hold_zeros_exactly(fitted):
    _, fit = fitted
    problem = StandardProblem(fit.equations, shifted(fit, {"Fvm1": -1e5}), FAST)
    drawn = problem.draws(problem.values(problem.solved(problem.programme(None))), None, 5, seed=0)
    own = drawn[:, problem.names.index("Fvm1")]
    assert np.all((own == 0) | (own > 1e-6))
    assert np.any(own == 0)


def test_data_that_speak_are_not_moved_by_a_prior_200_percent_off(fitted):
    _, fit = fitted
    estimate, far = fit.fit.estimate, with_scaled_links(ARM, 3.0)
    found = standard_parameters(fit.equations, estimate, replace(FAST, deviation=1.0), prior=far)
    problem = StandardProblem(fit.equations, estimate, FAST, far)
    prior = problem.regrouping @ problem.reference
    known = estimate.sigma < 1e-3 * np.abs(prior)  # small against the prior's own deviation
    assert known.sum() >= 3
    off = (found.base.full_values(estimate.columns) - estimate.values) / estimate.sigma
    assert np.abs(off[known]).max() < 0.1


def test_what_no_torque_depends_on_comes_from_the_prior(fitted):
    _, fit = fitted
    prior = with_scaled_links(ARM, 1.2)
    found = standard_parameters(fit.equations, fit.fit.estimate, replace(FAST, deviation=0.1), prior=prior)
    mass = found.names.index("M1")
    assert found.sources[mass] == "prior"
    assert found.values[mass] == pytest.approx(prior.parameters["M1"], rel=0.05)
    assert 0 <= found.share.min() <= found.share.max() <= 1
    assert {"data", "prior"} <= set(found.sources)


def test_the_deviation_is_chosen_by_held_out_error(fitted):
    _, fit = fitted
    estimate, blocks = fit.fit.estimate, left_out(fit)
    near = standard_parameters(fit.equations, estimate, FAST, prior=ARM, left_out=blocks)
    far = standard_parameters(fit.equations, estimate, FAST, prior=with_scaled_links(ARM, 3.0), left_out=blocks)
    assert near.prior is not None
    assert far.prior is not None
    assert near.prior.chosen
    assert near.prior.deviation < far.prior.deviation
    assert far.prior.held_out[0.03] > far.prior.held_out[3.0]


def test_bounds_hold_and_are_named(fitted):
    _, fit = fitted
    link = ARM.bodies[0].link
    settings = replace(FAST, mass={link: (123.0, 124.0)}, total_mass=(300.0, 400.0))
    found = standard_parameters(fit.equations, fit.fit.estimate, settings)
    assert 123 - 1e-4 <= ten(found, 1)[9] <= 124 + 1e-4
    assert 300 - 1e-3 <= sum(ten(found, body.number)[9] for body in ARM.bodies) <= 400 + 1e-3
    assert any(f"mass of '{link}'" in text for text in found.active)


def test_a_centre_stays_in_its_box_and_a_pinned_link_as_it_was(fitted):
    _, fit = fitted
    first, last = ARM.bodies[0].link, ARM.bodies[-1].link
    box = ((-0.01, -0.02, 0.05), (0.01, 0.02, 0.06))
    found = standard_parameters(fit.equations, fit.fit.estimate, replace(FAST, centre={first: box}, pinned=(last,)))
    one = ten(found, 1)
    assert np.all(np.array(box[0]) - 1e-6 <= one[6:9] / one[9])
    assert np.all(one[6:9] / one[9] <= np.array(box[1]) + 1e-6)
    np.testing.assert_allclose(ten(found, ARM.bodies[-1].number), ARM.bodies[-1].inertia or (), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ConsistencySettings(mass={"nowhere": (1.0, 2.0)}), "link 'nowhere' is not one that a joint moves; these are"),
        (ConsistencySettings(centre_in_shape=("link_1",)), "no readable shape.s., which enclose no volume"),
        (
            ConsistencySettings(total_mass=(1.0, 2.0), mass={"link_1": (50.0, 60.0)}),
            "no arm fulfils these bounds together",
        ),
    ],
)
def test_bounds_that_cannot_be_are_refused(fitted, settings, message):
    _, fit = fitted
    with pytest.raises(EstimateError, match=message):
        standard_parameters(fit.equations, fit.fit.estimate, settings)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "flat"}, "kind of prior"),
        ({"deviation": 0.0}, "deviation of the prior: got 0.0"),
        ({"mass": {"a": (2.0, 1.0)}}, "mass of 'a': got"),
        ({"total_mass": (-1.0, 1.0)}, "total mass: got"),
        ({"centre": {"a": ((0.0, 0.0, 0.0), (-1.0, 0.0, 0.0))}}, "centre of 'a'"),
        ({"draws": 1}, "draws: got 1"),
    ],
)
def test_settings_are_checked(values, message):
    with pytest.raises(EstimateError, match=message):
        ConsistencySettings(**values)


def declaring(fit, inertia: tuple[float, ...] | None):
    """Return the arm with this inertia of its second link, and the equations of the same data with it."""
    link = ARM.bodies[1].link
    robot = replace(ARM, links=tuple(replace(one, inertia=inertia) if one.name == link else one for one in ARM.links))
    return link, robot, replace(fit.equations, model=replace(fit.equations.model, robot=robot))


def test_a_link_without_inertia_cannot_be_pinned_and_one_without_mass_has_no_prior(fitted):
    _, fit = fitted
    link, _, equations = declaring(fit, None)
    with pytest.raises(EstimateError, match=f"pinned link '{link}' has no mass in the robot file"):
        standard_parameters(equations, fit.fit.estimate, replace(FAST, pinned=(link,)))
    link, nothing, _ = declaring(fit, (0.0,) * 10)
    problem = StandardProblem(fit.equations, fit.fit.estimate, FAST, nothing)
    assert [problem.has_prior(k) for k in range(len(ARM.bodies))] == [body.link != link for body in ARM.bodies]


def test_a_link_declared_without_mass_is_identified_if_the_data_contradict_it(fitted):
    _, fit = fitted
    link, _, equations = declaring(fit, (0.0,) * 10)
    found = standard_parameters(equations, fit.fit.estimate, FAST)
    assert (found.massless, found.released) == ((), (link,))
    assert ten(found, 2)[9] > 1
    assert found.misfit < 1e-6
    held = standard_parameters(equations, fit.fit.estimate, replace(FAST, pinned=(link,), draws=2))
    assert (held.massless, held.released) == ((link,), ())
    assert not ten(held, 2).any()


CROSS = b"""<robot name="cross"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.2 0.02 0"/><mass value="6"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<link name="cross"><inertial><mass value="0"/>
  <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.1 0.03 0.02"/><mass value="3"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.04"/></inertial></link>
<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" velocity="3" effort="200"/></joint>
<joint name="b" type="revolute"><parent link="upper"/><child link="cross"/><origin xyz="0.4 0 0"/><axis xyz="1 0 0"/>
  <limit lower="-2" upper="2" velocity="3" effort="100"/></joint>
<joint name="c" type="revolute"><parent link="cross"/><child link="lower"/><axis xyz="0 0 1"/>
  <limit lower="-2" upper="2" velocity="3" effort="100"/></joint></robot>"""


@pytest.fixture(scope="module")
def fitted_cross():
    arm = replace(read_urdf(CROSS), values={"Fvm1": 2.0, "Fvm2": 1.0, "Fvm3": 1.0})
    points = np.zeros((3, 11))
    points[:, 1:-1] = np.random.default_rng(3).uniform(-1.5, 1.5, (3, 9))
    experiment = Experiment(record_rate=100, encoder_quantum=1e-6, motor_noise=Noise("white", (0.2, 0.1, 0.1)))
    run = simulate(arm, quintic(points, 1.0, ["a", "b", "c"]), experiment, [0])
    return arm, fit_arm(arm, [recording_of(run)], Settings(effects=("inertia", "Fvm")))


@pytest.mark.parametrize("with_prior", [False, True])
def test_the_link_between_two_joints_of_one_body_stays_without_mass(fitted_cross, with_prior):
    arm, fit = fitted_cross
    prior = arm if with_prior else None
    settings = replace(FAST, deviation=0.1, pinned=("cross",))
    for chosen in (settings, replace(settings, pinned=())):
        found = standard_parameters(fit.equations, fit.fit.estimate, chosen, prior=prior)
        own = [found.names.index(f"{symbol}2") for symbol in INERTIAL_NAMES]
        assert found.massless == ("cross",)
        assert not found.values[own].any()
        assert not found.sigma[own].any()
        assert {found.sources[k] for k in own} == {"robot file"}
        assert ten(found, 3)[9] == pytest.approx(3, rel=0.05)
        assert found.sources[found.names.index("MX3")] in ("data", "both")
    problem = StandardProblem(fit.equations, fit.fit.estimate, settings, prior)
    drawn = problem.draws(found.values, 0.1 if with_prior else None, 3, seed=0)
    assert not drawn[:, own].any()
    assert problem.keeps_fixed(found.values)
    bounded = replace(FAST, deviation=0.1, draws=2, mass={"cross": (0.5, 1.0)})
    assert ten(standard_parameters(fit.equations, fit.fit.estimate, bounded, prior=prior), 2)[9] > 0.4


def test_where_the_file_says_nothing_of_a_link_the_prior_declares_it_without_mass(fitted_cross):
    arm, fit = fitted_cross
    silent = tuple(replace(link, inertia=None) if link.name == "cross" else link for link in arm.links)
    equations = replace(fit.equations, model=replace(fit.equations.model, robot=replace(arm, links=silent)))
    found = standard_parameters(equations, fit.fit.estimate, replace(FAST, deviation=0.1), prior=arm)
    assert found.massless == ("cross",)
    assert not ten(found, 2).any()
    assert standard_parameters(equations, fit.fit.estimate, FAST).massless == ()


def test_values_that_bounds_hold_have_no_sigma_of_data(fitted):
    _, fit = fitted
    first, last = ARM.bodies[0].link, ARM.bodies[-1]
    settings = replace(FAST, mass={first: (123.0, 124.0)}, pinned=(last.link,))
    found = standard_parameters(fit.equations, fit.fit.estimate, settings)
    assert found.sources[found.names.index("M1")] == "bound"
    assert np.isnan(found.sigma[found.names.index("M1")])
    own = [found.names.index(f"{symbol}{last.number}") for symbol in INERTIAL_NAMES]
    assert {found.sources[k] for k in own} == {"pinned"}
    assert not found.sigma[own].any()
    assert found.values[own].tolist() == list(last.inertia or ())
    total = standard_parameters(fit.equations, fit.fit.estimate, replace(FAST, total_mass=(500.0, 600.0)))
    assert [total.sources[total.names.index(f"M{body.number}")] for body in ARM.bodies] == ["bound"] * 3
    pinned = standard_parameters(fit.equations, fit.fit.estimate, replace(FAST, pinned=(last.link,)))
    assert not pinned.sigma[own].any()


@pytest.mark.parametrize("deviation", [None, 3.0])
def test_variances_of_very_precise_data_are_not_negative(fitted, deviation):
    _, fit = fitted
    estimate, factor = fit.fit.estimate, 1e5
    system = replace(estimate.system, triangle=factor * estimate.system.triangle)
    precise = replace(estimate, system=system, covariance=estimate.covariance / factor**2)
    prior = None if deviation is None else ARM
    found = standard_parameters(fit.equations, precise, replace(FAST, deviation=deviation), prior=prior)
    assert found.sigmas_by == "analytic"
    assert (np.diag(found.covariance) >= 0).all()
    alone = np.count_nonzero(StandardProblem(fit.equations, precise, FAST).regrouping, axis=1) == 1
    known = [found.names.index(name) for name in np.array(estimate.columns)[alone]]
    assert len(known) > 5
    assert found.sigma[known] == pytest.approx(estimate.sigma[alone] / factor, rel=1e-3)


def test_a_chosen_deviation_is_not_below_what_a_disagreement_needs(fitted):
    _, fit = fitted
    prior = with_scaled_links(ARM, 10.0)
    chosen = standard_parameters(fit.equations, fit.fit.estimate, FAST, prior=prior, left_out=left_out(fit)).prior
    assert chosen is not None
    assert chosen.disagreements
    assert chosen.deviation >= max(one.deviation for one in chosen.disagreements) > 1.5


def test_a_prior_of_another_arm_or_without_a_link_is_refused(fitted):
    _, fit = fitted
    with pytest.raises(EstimateError, match="the prior has the moving links"):
        standard_parameters(fit.equations, fit.fit.estimate, FAST, prior=load_robot("scara_2r"))
    links = [replace(one, inertia=None) if one.name == ARM.bodies[1].link else one for one in ARM.links]
    with pytest.raises(EstimateError, match=f"the prior has no inertia of link '{ARM.bodies[1].link}'"):
        standard_parameters(fit.equations, fit.fit.estimate, FAST, prior=replace(ARM, links=tuple(links)))


def test_draws_are_all_consistent_and_spread_by_the_sigmas(fitted):
    _, fit = fitted
    problem = StandardProblem(fit.equations, fit.fit.estimate, FAST)
    found = standard_parameters(fit.equations, fit.fit.estimate, FAST)
    drawn = problem.draws(found.values, None, 60, seed=0)
    for values in drawn:
        for place in problem.links.values():
            assert is_consistent(values[list(place)])
    known = [k for k, source in enumerate(found.sources) if source == "data"]
    assert np.median(np.std(drawn[:, known], axis=0) / found.sigma[known]) == pytest.approx(1, rel=0.15)


def test_an_arm_without_inertias_gets_one_of_usual_build(fitted):
    run, _ = fitted
    bare = replace(ARM, links=tuple(replace(link, inertia=None) for link in ARM.links))
    _, recording = short_log("kuka_ir361", 1)
    other = fit_arm(bare, [recording], Settings(effects=run.effects))
    found = standard_parameters(other.equations, other.fit.estimate, FAST)
    assert all(is_consistent(ten(found, body.number)) for body in bare.bodies)
    off = (found.base.full_values(other.fit.estimate.columns) - other.fit.estimate.values) / other.fit.estimate.sigma
    assert np.abs(off).max() < 1e-4


@pytest.fixture(scope="module")
def fitted_heavy():
    cad = load_robot(Path(__file__).parents[2] / "benchmarks" / "data" / "heavy.robot.toml")
    points = random_points(limits_of(cad), 6, 2.0, quintic_profile(), np.random.default_rng(0))
    experiment = Experiment(plant="ideal", control_rate=100, record_rate=100)
    run = simulate(cad, quintic(points, 2.0, list(cad.joint_names)), experiment, [0])
    return cad, fit_arm(cad, [recording_of(run)], Settings(effects=run.effects))


def sources_with(fitted_heavy, drives: dict[str, float]) -> dict[str, str]:
    cad, fit = fitted_heavy
    values = {name: value for name, value in cad.values.items() if not name.startswith("Ia")}
    prior = replace(cad, values={**values, **drives})
    found = standard_parameters(fit.equations, fit.fit.estimate, replace(FAST, deviation=0.1), prior=prior)
    return dict(zip(found.names, found.sources, strict=True))


def test_a_drive_inertia_that_only_the_prior_of_its_link_tells_apart_comes_from_both(fitted_heavy):
    # ZZ1 and Ia1 give the same torque: only their sum is in the data.
    sources = sources_with(fitted_heavy, {})
    assert sources["Ia1"] == "both"
    assert sources["Fvm1"] == "data"


def test_a_drive_inertia_with_a_prior_of_its_own_comes_from_it(fitted_heavy):
    cad, _ = fitted_heavy
    assert sources_with(fitted_heavy, {"Ia1": 1e-3 * cad.values["Ia1"]})["Ia1"] == "prior"
    assert sources_with(fitted_heavy, {"Ia1": 0.0})["Ia1"] == "both"  # no relative deviation of zero


def test_draws_spread_drive_inertias_by_their_prior(fitted_heavy):
    cad, fit = fitted_heavy
    small = 1e-3 * cad.values["Ia1"]  # far less than what the data leave open beside the link's inertia
    settings, prior = replace(FAST, deviation=0.1), replace(cad, values={**cad.values, "Ia1": small})
    found = standard_parameters(fit.equations, fit.fit.estimate, settings, prior=prior)
    problem = StandardProblem(fit.equations, fit.fit.estimate, settings, prior)
    drawn = problem.draws(found.values, 0.1, 30, seed=0)[:, found.names.index("Ia1")]
    assert np.std(drawn) == pytest.approx(0.1 * small, rel=0.3)


TOOL = b"""<robot name="with_tool"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="6"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.1 0 0"/><mass value="0.2"/>
  <inertia ixx="0.0002" ixy="0" ixz="0" iyy="0.0004" iyz="0" izz="0.0004"/></inertial></link>
<link name="tool"><inertial><origin xyz="0 0.05 0"/><mass value="5"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.015"/></inertial></link>
<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" velocity="3" effort="200"/></joint>
<joint name="b" type="revolute"><parent link="upper"/><child link="lower"/>
  <origin xyz="0.4 0 0" rpy="1.57079632679 0 0"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" velocity="3" effort="100"/></joint>
<joint name="flange" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0.25 0 0"/></joint></robot>"""


@pytest.fixture(scope="module")
def fitted_tool():
    arm = read_urdf(TOOL)
    arm = replace(arm, values={"Fvm1": 2.0, "Fvm2": 1.0})
    points = np.zeros((2, 9))
    points[:, 1:-1] = np.random.default_rng(3).uniform(-1.5, 1.5, (2, 7))
    experiment = Experiment(record_rate=100, encoder_quantum=1e-6, motor_noise=Noise("white", (2.0, 1.0)))
    run = simulate(arm, quintic(points, 1.0, ["a", "b"]), experiment, [0])
    return arm, fit_arm(arm, [recording_of(run)], Settings(effects=("inertia", "Fvm")))


def test_a_link_remains_possible_without_the_tool_that_is_fixed_to_it(fitted_tool):
    _, fit = fitted_tool
    problem = StandardProblem(fit.equations, fit.fit.estimate, FAST)
    free = problem.values(problem.solved(problem.programme(None)))
    assert not problem.keeps_fixed(free)  # noise is larger than the light link that carries the tool
    found = standard_parameters(fit.equations, fit.fit.estimate, FAST)
    assert problem.keeps_fixed(found.values)
    assert found.misfit < problem.misfit(free) + 10
    inertias = {link.name: np.array(link.inertia) for link in found.robot.links if link.inertia is not None}
    assert all(is_consistent(own) for own in inertias.values())
    assert "lower" in found.edges
    arm_found = IdentifiedArm(found.robot, fit.equations.model)
    assert urdf_file(arm_found, content=TOOL).comparisons
    for values in problem.draws(found.values, None, 3, seed=0):
        assert problem.keeps_fixed(values)


def test_fixed_links_that_the_data_contradict_do_not_hold_the_arm(fitted_tool):
    arm, fit = fitted_tool
    heavy = tuple(
        replace(link, inertia=tuple(3 * v for v in link.inertia or ())) if link.name == "tool" else link
        for link in arm.links
    )
    recording = fit.sources[0].recording
    other = fit_arm(replace(arm, links=heavy), [recording], Settings(effects=("inertia", "Fvm")))
    found = standard_parameters(other.equations, other.fit.estimate, FAST)
    problem = StandardProblem(other.equations, other.fit.estimate, FAST)
    assert not problem.keeps_fixed(found.values)
    assert found.misfit < 10


VERTICAL = b"""<robot name="vertical"><link name="base"/>
<link name="a"><inertial><origin xyz="0.01 0 0.1"/><mass value="5"/>
  <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.02"/></inertial></link>
<link name="b"><inertial><origin xyz="0.15 0 0.02"/><mass value="4"/>
  <inertia ixx="0.008" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.05"/></inertial></link>
<link name="c"><inertial><origin xyz="0.1 0.02 0.02"/><mass value="2"/>
  <inertia ixx="0.003" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><origin xyz="0 0 0.1"/><axis xyz="0 0 1"/>
  <limit lower="-2" upper="2" velocity="6" effort="200"/></joint>
<joint name="j2" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 0.2"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" velocity="6" effort="200"/></joint>
<joint name="j3" type="revolute"><parent link="b"/><child link="c"/><origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" velocity="6" effort="200"/></joint></robot>"""


@pytest.fixture(scope="module")
def fitted_drives():
    """Return an arm without drive inertias in its file, and a fit of its motion with some of 1 kg m^2."""
    arm = read_urdf(VERTICAL)
    values = {f"{symbol}{number}": size for symbol, size in (("Fvm", 0.3), ("Ia", 1.0)) for number in (1, 2, 3)}
    points = np.zeros((3, 13))
    points[:, 1:-1] = np.random.default_rng(5).uniform(-1.5, 1.5, (3, 11))
    experiment = Experiment(record_rate=100, encoder_quantum=1e-6, motor_noise=Noise("white", (0.02,) * 3))
    run = simulate(replace(arm, values=values), quintic(points, 1.0, list(arm.joint_names)), experiment, [0])
    return arm, fit_arm(arm, [recording_of(run)], Settings(effects=("inertia", "Ia", "Fvm", "offm")))


@pytest.mark.parametrize("pinned", [(), ("b",)])
def test_what_has_no_reference_does_not_draw_links_away_from_theirs(fitted_drives, pinned):
    arm, fit = fitted_drives
    found = standard_parameters(fit.equations, fit.fit.estimate, replace(FAST, pinned=pinned))
    assert found.misfit < 30  # a pinned link costs what chance does
    masses = [ten(found, body.number)[9] for body in arm.bodies]
    assert masses == pytest.approx([5.0, 4.0, 2.0], rel=0.05)
    drives = [found.values[found.names.index(f"Ia{number}")] for number in (1, 2, 3)]
    assert drives == pytest.approx([1.0] * 3, rel=0.02)


def test_drive_inertias_of_the_file_count_as_its_links_do(fitted_drives):
    arm, fit = fitted_drives
    known = replace(arm, values={"Ia1": 1.02})
    equations = replace(fit.equations, model=replace(fit.equations.model, robot=known))
    found = standard_parameters(equations, fit.fit.estimate, FAST)
    # Link a takes some of the 0.02 kg m^2 that are too much: relative to 1.02 they are little, to its 0.0205 a lot.
    assert 1.0 < found.values[found.names.index("Ia1")] < 1.02


def test_friction_that_data_cannot_tell_apart_is_shared(fitted_drives):
    arm, fit = fitted_drives
    recording = fit.sources[0].recording
    other = fit_arm(arm, [recording], Settings(effects=("inertia", "Ia", "Fvm", "Fvl", "offm", "offl")))
    found = standard_parameters(other.equations, other.fit.estimate, FAST)
    own = {name: found.values[found.names.index(name)] for name in ("Fvm1", "Fvl1", "offm2", "offl2")}
    assert own["Fvm1"] == pytest.approx(own["Fvl1"], rel=1e-3)
    assert own["offm2"] == pytest.approx(own["offl2"], rel=1e-3, abs=1e-6)


def test_samples_lie_about_the_arm_they_are_drawn_for(fitted_drives):
    _, fit = fitted_drives
    problem = StandardProblem(fit.equations, fit.fit.estimate, FAST)
    found = standard_parameters(fit.equations, fit.fit.estimate, FAST)
    drawn = problem.draws(found.values, None, 5, seed=0)
    for name in ("M1", "M2", "M3", "Ia1"):
        place = found.names.index(name)
        assert drawn[:, place] == pytest.approx(found.values[place], rel=0.05)

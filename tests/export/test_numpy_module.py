"""The NumPy module: imported where there is no Steelyard, equal to the model, clean for ruff."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from arms import ALL_ARMS
from identified_arms import assert_parts_equal, every_effect, identified, states
from oracles import NO_PINOCCHIO, pinocchio_model
from steelyard.effects import EFFECTS, Effect
from steelyard.errors import ExportError
from steelyard.export import IdentifiedArm, write_files
from steelyard.export.dynamics import SIGNATURES, arm_dynamics
from steelyard.export.numpy_module import numpy_file


def written(one: IdentifiedArm, folder: Path) -> Path:
    return write_files(numpy_file(one), folder)[0]


def imported(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def computed(module: ModuleType, state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {one.name: getattr(module, one.name)(*(state[name] for name in one.inputs)) for one in SIGNATURES}


@pytest.mark.parametrize(
    ("name", "sign_width"),
    [("scara_2r", 0.0), ("kuka_ir361", 0.0), ("coupled", 0.1), ("gripper", 0.0), ("sliding_tree", 0.1)],
)
def test_every_function_equals_the_model_for_many_samples_and_for_one(name, sign_width, tmp_path):
    one = identified(name, every_effect(name), sign_width)
    module, state = imported(written(one, tmp_path)), states(one, 4)
    found = computed(module, state)
    assert_parts_equal(found, one, state, to=1e-12)
    single = computed(module, {key: value[2] for key, value in state.items()})
    for key, value in single.items():
        assert np.allclose(value, found[key][2], rtol=0, atol=1e-12 * np.abs(found[key]).max())


def test_the_module_runs_without_steelyard(tmp_path):
    one = identified("ur10e")
    path, state = written(one, tmp_path), states(one, 3)
    np.savez(tmp_path / "states.npz", q=state["q"], qd=state["qd"], qdd=state["qdd"], tau=state["tau"])
    program = (
        "import sys, numpy as np, ur10e_dynamics as arm\n"
        "s = np.load('states.npz')\n"
        "calls = {'inverse_dynamics': 'q qd qdd', 'gravity': 'q', 'inertia_matrix': 'q', 'coriolis': 'q qd',\n"
        "         'friction': 'q qd', 'forward_dynamics': 'q qd tau'}\n"
        "np.savez('out.npz', **{f: getattr(arm, f)(*(s[k] for k in names.split())) for f, names in calls.items()})\n"
        "assert not any(name.partition('.')[0] in ('steelyard', 'casadi', 'scipy') for name in sys.modules)\n"
        "assert len(arm.JOINTS) == 6 and arm.RUN == 'run-1' and arm.PARAMETERS['M2'] > 0\n"
    )
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=path.parent, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as out:
        assert_parts_equal(dict(out), one, state, to=1e-12)


def test_ruff_has_nothing_to_say(tmp_path):
    ruff = shutil.which("ruff", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if ruff is None:
        pytest.skip("ruff is not installed")
    paths = [str(written(identified(name, every_effect(name)), tmp_path)) for name in ("staubli_tx40", "kuka_ir361")]
    done = subprocess.run([ruff, "check", "--isolated", "--no-cache", *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_names_of_strangers_stay_text(tmp_path):
    hostile = '"""\nimport os # \\ \' ${run} $run \u202e'
    one = identified("scara_2r")
    joints = tuple(replace(joint, name=f"{hostile}{k}") for k, joint in enumerate(one.robot.joints))
    module = imported(
        written(replace(one, robot=replace(one.robot, joints=joints, name=hostile), run=hostile), tmp_path)
    )
    assert {module.ROBOT, module.RUN} == {hostile}
    assert list(module.JOINTS) == [f"{hostile}0", f"{hostile}1"]
    assert not hasattr(module, "os")


@pytest.mark.parametrize("sign_width", [0.0, 0.1])
def test_friction_of_real_gears_equals_that_of_the_casadi_functions(sign_width, tmp_path):
    further = ("Fvvm", "Fvrm", "Fvtm", "Fgm", "Fs3m", "Fd3m", "Fvvl", "Fgl", "Fs1l", "Fd6l", "tilt", "gain", "zero")
    one = identified("ur10e", ("inertia", "Ia", "Fvm", "Fcm", *further), sign_width)
    dynamics, module, state = arm_dynamics(one), imported(written(one, tmp_path)), states(identified("ur10e"), 4)
    found = computed(module, state)
    assert not {"gx", "kt1", "dq1"} & set(module.PARAMETERS)
    for signature in SIGNATURES:
        for k in range(4):
            inputs = [state[name][k] for name in signature.inputs]
            expected = np.array(dynamics.functions[signature.name](*inputs, dynamics.values))
            got = found[signature.name][k].reshape(expected.shape)
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_an_effect_without_a_numpy_form_is_named(monkeypatch):
    from steelyard.model.terms import friction

    monkeypatch.setattr(friction, "odd", friction.viscous, raising=False)
    monkeypatch.setitem(EFFECTS, "Fvm", Effect("Fvm", "odd", "friction.odd", ("Fvm",), "motor"))
    with pytest.raises(ExportError, match="effect 'Fvm' has no NumPy form; leave it out, or export C or CasADi"):
        numpy_file(identified("scara_2r"))


@pytest.mark.large
@pytest.mark.parametrize("name", ALL_ARMS)
def test_rigid_bodies_equal_pinocchio(name, tmp_path):
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    one = identified(name, ["inertia"])
    module, state = imported(written(one, tmp_path)), states(one, 10)
    model, (gains, offsets) = pinocchio_model(one.robot), one.robot.coupling()
    data = model.createData()
    samples = zip(state["q"] @ gains.T + offsets, state["qd"] @ gains.T, state["qdd"] @ gains.T, strict=True)
    wanted = np.array([pin.rnea(model, data, *sample) for sample in samples]) @ gains
    got = module.inverse_dynamics(state["q"], state["qd"], state["qdd"])
    assert np.abs(got - wanted).max() <= 1e-12 * np.abs(wanted).max()


@pytest.mark.large
def test_thirty_joints(tmp_path):
    one = identified("chain 30", ["inertia", "Ia", "Fvm", "Fcm"])
    state = states(one, 2)
    assert_parts_equal(computed(imported(written(one, tmp_path)), state), one, state, to=1e-12)

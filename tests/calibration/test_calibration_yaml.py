"""The YAML of a calibration: every unknown with its sigma, readable by any parser."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from calibrated_stand_in import stand_in
from steelyard.calibration.application.exports import calibration_yaml, write_calibration_yaml
from steelyard.calibration.records import Unknown
from steelyard.robot import load_robot

ENTRY = re.compile(
    r'^ *("(?:[^"\\]|\\.)*"): \{value: (\S+), sigma: (\S+), '
    r'unit: ("[^"]*"), nominal: (\S+), meaning: (".*")\}$'
)
TURN = Rotation.from_euler("ZYX", [0.3, -0.2, 0.1]).as_matrix()


@pytest.fixture(scope="module")
def arm():
    inner = stand_in(load_robot("ur10e"), "ee_link")
    more = (
        Unknown("base_x", "base", "m", 0.0, "shift along x of the robot base"),
        Unknown('x["odd": name]', "marker", "m", 0.1, "position of 'odd': # marker"),
    )
    covariance = np.zeros((len(inner.names) + 2,) * 2)
    covariance[:-2, :-2] = inner.covariance
    covariance[0] = covariance[:, 0] = 0.0  # x1 was not estimated
    values = np.array([*inner.values, 1e-05, 0.125])
    return replace(inner, parameters=(*inner.parameters, *more), values=values, covariance=covariance)


def entries(text: str) -> dict[str, tuple[float, float | None, str, float, str]]:
    found = {}
    for line in text.splitlines():
        match = ENTRY.match(line)
        if match:
            name, value, sigma, unit, nominal, meaning = match.groups()
            spread = None if sigma == "null" else float(sigma)
            found[json.loads(name)] = (float(value), spread, json.loads(unit), float(nominal), json.loads(meaning))
    return found


def test_every_unknown_is_there_with_all_its_digits(arm):
    found = entries(calibration_yaml(arm))
    assert set(found) == set(arm.names)
    for parameter, value, sigma in zip(arm.parameters, arm.values, arm.sigma, strict=True):
        expected = (value, sigma or None, parameter.unit, parameter.nominal, parameter.meaning)
        assert found[parameter.name] == expected
    assert found["x1"][1] is None


def test_a_parser_of_yaml_reads_numbers_as_numbers_and_groups_by_joint(arm):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: run 'make test'")
    text = calibration_yaml(arm, base=(TURN, np.array([1.0, 2.0, 1e-5])))
    document = yaml.safe_load(text)
    assert document["robot"] == "ur10e"
    assert document["link"] == "ee_link"
    assert document["base"]["xyz"] == [1.0, 2.0, 1e-5]
    np.testing.assert_allclose(document["base"]["rpy"], [0.1, -0.2, 0.3], atol=1e-15)
    assert list(document["joints"]) == [body.joint.name for body in arm.robot.bodies]
    assert document["joints"]["elbow_joint"]["offset3"]["value"] == arm.values[arm.names.index("offset3")]
    assert set(document["compliances"]) == {"k1", "k2", "k3", "k4", "k5", "k6"}
    assert document["base"]["unknowns"]["base_x"]["value"] == 1e-5
    assert document["markers"]['x["odd": name]']["meaning"] == "position of 'odd': # marker"
    numbers = [entry["value"] for joint in document["joints"].values() for entry in joint.values()]
    assert all(isinstance(number, float) for number in numbers)


def test_the_file_holds_the_text(arm, tmp_path):
    write_calibration_yaml(tmp_path / "new" / "arm.yaml", arm)
    assert (tmp_path / "new" / "arm.yaml").read_text(encoding="utf-8") == calibration_yaml(arm)

"""Parameters as YAML, JSON and LaTeX: all digits, units, sources and frames; texts of strangers stay texts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from identified_arms import every_effect, identified
from steelyard.export import IdentifiedArm
from steelyard.export.c_code import c_files
from steelyard.export.numpy_module import numpy_file
from steelyard.export.tables import json_file, latex_file, yaml_file
from steelyard.model import build_model
from steelyard.plain_data import yaml_document, yaml_value
from steelyard.robot import parameters_from_centre

HOSTILE = "a: {b} # \"c\" 'd' \\ \n\x1b \u202e \x85 \U0001f600 \U000e0001"


def read_yaml(text: str):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: run 'make test'")
    return yaml.safe_load(text)


def test_yaml_and_json_hold_the_same_with_all_digits():
    one = identified("staubli_tx40", every_effect("staubli_tx40"), sign_width=1e-5)
    document = json.loads(json_file(one)[0].content)
    from_yaml = read_yaml(yaml_file(one)[0].content.decode())
    assert {key: document[key] for key in from_yaml} == from_yaml
    assert list(from_yaml["parameters"]) == from_yaml["parameter_order"] == list(one.model.names)
    assert from_yaml["joint_order"] == list(one.robot.joint_names)
    assert (from_yaml["run"], from_yaml["sign_width"], from_yaml["measured"]) == ("run-1", 1e-5, "motor")
    for parameter in one.model.parameters:
        entry = from_yaml["parameters"][parameter.name]
        assert entry["value"] == one.robot.parameters[parameter.name]
        assert entry["sigma"] == one.sigmas[parameter.name]
        assert (entry["unit"], entry["source"], entry["link"]) == (parameter.unit, "data", parameter.link)
    assert "entries of the inertia matrix about the origin" in document["frames"][1]


def test_links_have_mass_centre_and_inertia_about_it():
    one = identified("sliding_tree")
    for body, link in zip(one.robot.bodies, json.loads(json_file(one)[0].content)["links"], strict=True):
        inertia = np.zeros((3, 3))
        inertia[np.triu_indices(3)] = link["inertia_at_centre"]
        inertia = inertia + np.triu(inertia, 1).T
        again = parameters_from_centre(link["mass"], np.array(link["centre_of_mass"]), inertia)
        np.testing.assert_allclose(again, np.array(body.inertia), rtol=0, atol=1e-14)
        assert (link["number"], link["link"], link["joint"]) == (body.number, body.link, body.joint.name)


def test_what_is_not_known_is_null_and_a_payload_has_its_own_names():
    robot = identified("scara_2r").robot
    one = IdentifiedArm(
        robot.with_parameters({"ML": 2.5}), build_model(robot, payload="paired"), {"ML": np.nan, "M1": np.inf}
    )
    for document in (json.loads(json_file(one)[0].content), read_yaml(yaml_file(one)[0].content.decode())):
        assert document["parameters"]["ML"]["value"] == 2.5
        assert document["parameters"]["XXL"]["value"] is None
        assert {document["parameters"][name]["sigma"] for name in ("ML", "M1", "M2")} == {None}
        assert (document["run"], document["parameters"]["M1"]["source"]) == (None, None)


def test_names_of_strangers_come_back_whole():
    one = identified("scara_2r")
    joints = tuple(replace(joint, name=f"{HOSTILE}{k}") for k, joint in enumerate(one.robot.joints))
    hostile = replace(one, robot=replace(one.robot, joints=joints, name=HOSTILE), run=HOSTILE)
    for document in (
        json.loads(json_file(hostile)[0].content), read_yaml(yaml_file(hostile)[0].content.decode()),
    ):  # fmt: skip
        assert (document["robot"], document["run"], document["joint_order"][1]) == (HOSTILE, HOSTILE, f"{HOSTILE}1")
    text = latex_file(hostile)[0].content.decode()
    assert text.splitlines()[1] == r"\begin{tabular}{llrr}"
    assert text.splitlines()[0].startswith("% robot a: {b}")


@pytest.mark.parametrize(
    "value", [1e-05, 1e22, -2.5e-300, 0.1, 1.0, -0.0, 3, True, None, "no", "1e5", [1.0, ["a"]], {}]
)
def test_plain_data_in_one_line_of_yaml_comes_back(value):
    assert read_yaml(yaml_value(value)) == value
    assert type(read_yaml(yaml_value(value))) is type(value)


def test_yaml_knows_infinity_and_empty_tables():
    assert yaml_value([np.inf, -np.inf, np.nan]) == "[.inf, -.inf, .nan]"
    assert read_yaml(yaml_document({"a": {}, "b": [], "c": [{"d": 1e-9}], "e": {"on": {"f": "y"}}})) == {
        "a": {}, "b": [], "c": [{"d": 1e-9}], "e": {"on": {"f": "y"}},
    }  # fmt: skip


ROW = re.compile(
    r"^(\w+ & [^&\\]*(?:\\textsuperscript\{2\})? & (?:\$[^$]+\$|--) & (?:\$[^$]+\$|--)(?: & )?)+(?: &  &  & )* ?\\\\$"
)


def test_names_beyond_ascii_stand_in_comments_as_they_are():
    one = identified("scara_2r")
    one = replace(one, robot=replace(one.robot, name="Zoé"), run="")
    for (file, *_), start in (
        (latex_file(one), "% robot Zoé; needs"),
        (numpy_file(one), '"""Dynamics of robot Zoé.'),
        (c_files(one), "/*\n * Dynamics of robot Zoé."),
    ):
        assert file.content.decode().startswith(start)


def test_latex_is_a_table_of_name_unit_value_and_relative_sigma():
    one = identified("scara_2r")
    lines = latex_file(replace(one, sigmas={**one.sigmas, "M1": np.nan}))[0].content.decode().splitlines()
    assert lines[1:5] == [
        r"\begin{tabular}{llrr}", r"\toprule", r"parameter & unit & value & $\sigma$ [\%] \\", r"\midrule",
    ]  # fmt: skip
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    rows = lines[5:-2]
    assert len(rows) == len(one.model.names)
    assert all(ROW.match(row) for row in rows)
    assert rows[0] == rf"XX1 & kg m\textsuperscript{{2}} & ${one.robot.parameters['XX1']:.4g}$ & $2$ \\"
    assert rows[9].endswith(r"& -- \\")


def test_many_parameters_stand_side_by_side_and_on_further_pages():
    seven = latex_file(identified("kuka_lwr4"))[0].content.decode()
    assert seven.count(r"\begin{tabular}{llrrllrrllrr}") == seven.count(r"\begin{tabular}") == 1
    thirty = identified("chain 30", ["inertia"])
    text = latex_file(thirty)[0].content.decode()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3
    found = re.findall(r"(?:^|& )([A-Z][A-Za-z]*\d+) & ", text, re.MULTILINE)
    assert sorted(found) == sorted(thirty.model.names)
    for table in text.split(r"\end{tabular}")[:-1]:
        columns = len(table.split("{tabular}{")[1].split("}")[0])
        assert {row.count("&") for row in table.splitlines() if row.endswith(r"\\")} == {columns - 1}


@pytest.mark.large
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path):
    if subprocess.run(["kpsewhich", "booktabs.sty"], check=False, stdout=subprocess.DEVNULL).returncode:
        pytest.skip("LaTeX has no booktabs package")
    (tmp_path / "table.tex").write_bytes(latex_file(identified("kuka_lwr4"))[0].content)
    (tmp_path / "main.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{table}\end{document}"
    )
    subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main"], cwd=tmp_path, check=True)

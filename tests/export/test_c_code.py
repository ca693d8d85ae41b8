"""Generated C: compiled without a warning, equal to the model, in both precisions; hostile names stay text."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from identified_arms import assert_parts_equal, every_effect, identified, states
from steelyard.errors import ExportError
from steelyard.export import IdentifiedArm, write_files
from steelyard.export.c_code import c_files, statements
from steelyard.export.dynamics import SIGNATURES

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc or clang) on this machine")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
HOSTILE = 'x*/ "??/" \\ %s // /* é\n\U0001f600'


def built(one: IdentifiedArm, folder: Path, kind: type, compiler: str | None = COMPILER) -> tuple[ctypes.CDLL, str]:
    """Return the compiled library of one precision and the prefix of its functions."""
    paths = write_files(c_files(one), folder)
    stem, single = paths[0].stem, kind is np.float32
    library = folder / f"{stem}_{kind.__name__}.so"
    flags = (f"-D{stem.upper()}_SINGLE",) if single else ()
    command = [str(compiler), *STRICT, *flags, "-O1", "-fPIC", "-shared", f"{stem}.c", "-o", str(library), "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library)), f"{stem}f" if single else stem


def called(library: ctypes.CDLL, prefix: str, state: dict[str, np.ndarray], kind: type) -> dict[str, np.ndarray]:
    found = {}
    for signature in SIGNATURES:
        count, size = state["q"].shape
        output = np.full((count, size * size if signature.is_matrix else size), np.nan, kind)
        function = getattr(library, f"{prefix}_{signature.name}")
        for k in range(count):
            inputs = [np.ascontiguousarray(state[name][k], kind) for name in signature.inputs]
            function(*(ctypes.c_void_p(array.ctypes.data) for array in (*inputs, output[k])))
        found[signature.name] = output.astype(float)
    return found


@needs_compiler
def test_two_joints_in_both_precisions_equal_the_model(tmp_path):
    one = identified("scara_2r", ["inertia", "Ia", "Fvm", "Fcam", "offm"])
    state = states(one, 5)
    for kind, to in ((np.float64, 1e-12), (np.float32, 1e-4)):
        library, prefix = built(one, tmp_path, kind)
        assert_parts_equal(called(library, prefix, state, kind), one, state, to)


@needs_compiler
def test_parameters_can_be_given_and_outputs_may_be_inputs(tmp_path):
    one = identified("scara_2r")
    library, prefix = built(one, tmp_path, np.float64)
    state = states(one, 1)
    values = np.array([one.robot.parameters[name] for name in one.model.names])
    own = np.ctypeslib.as_array((ctypes.c_double * len(values)).in_dll(library, f"{prefix}_parameters"))
    assert np.array_equal(own, values)
    q, qd, qdd = (state[name][0].copy() for name in ("q", "qd", "qdd"))
    wanted = 2 * called(library, prefix, state, np.float64)["inverse_dynamics"][0]
    doubled = 2 * values
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (doubled, q, qd, qdd)]
    library.scara_2r_inverse_dynamics_with(*pointers, pointers[3])
    assert np.allclose(qdd, wanted, rtol=1e-14)


@needs_compiler
def test_names_of_strangers_stay_text_and_both_precisions_fit_in_one_program(tmp_path):
    one = identified("scara_2r")
    joints = tuple(replace(joint, name=f"{HOSTILE}{k}") for k, joint in enumerate(one.robot.joints))
    hostile = replace(one, robot=replace(one.robot, joints=joints, name=HOSTILE), run=HOSTILE)
    paths = write_files(c_files(hostile), tmp_path)
    stem, macro = paths[0].stem, paths[0].stem.upper()
    program = f"""#include <stdio.h>
#include "{stem}.h"
int main(void)
{{
    double q[{macro}_JOINTS] = {{0.0}}, tau[{macro}_JOINTS];
    float qf[{macro}_JOINTS] = {{0.0f}}, tauf[{macro}_JOINTS];
    {stem}_gravity(q, tau);
    {stem}f_gravity(qf, tauf);
    return fputs({stem}_joint_names[1], stdout) == EOF || (float)tau[0] != tauf[0];
}}
"""
    (tmp_path / "main.c").write_text(program)
    for output, name, flags in (
        ("a.o", f"{stem}.c", ()),
        ("b.o", f"{stem}.c", (f"-D{macro}_SINGLE",)),
        ("c.o", "main.c", ()),
    ):
        subprocess.run([str(COMPILER), *STRICT, *flags, "-c", name, "-o", output], cwd=tmp_path, check=True)
    subprocess.run([str(COMPILER), "a.o", "b.o", "c.o", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    said = subprocess.run([str(tmp_path / "main")], capture_output=True, check=True).stdout
    assert said.decode() == f"{HOSTILE}1"


def test_the_files_hold_what_a_reader_needs_and_no_state():
    one = identified("staubli_tx40", every_effect("staubli_tx40"), sign_width=0.05)
    header, source = (file.content.decode("ascii") for file in c_files(one))
    assert header.count('extern "C" {') == header.count("#ifdef __cplusplus") - 1 == 1
    for text in (
        "#define STAUBLI_TX40_JOINTS 6", "#define STAUBLI_TX40_SIGN_WIDTH 0.05", 'staubli_tx40_run[] = "run-1"',
        '"joint_1", "joint_2"', '"Iac6", "Fvc6", "Fcc6"', "tau = M(q) qdd + coriolis(q, qd) + gravity(q)",
    ):  # fmt: skip
        assert text in header
    assert f"#define STAUBLI_TX40_PARAMETERS {len(one.model.names)}" in header
    names = re.search(r"parameter_names\[\w+\] = \{(.*?)\};", header, re.DOTALL)
    assert names is not None
    assert tuple(re.findall(r'"(\w+)"', names[1])) == one.model.names
    assert re.findall(r"#include (\S+)", source) == ['"staubli_tx40.h"', "<math.h>"]
    assert not re.search(r"\b(static (?!real sign_of)|malloc|free|int)\b", source)
    for signature in SIGNATURES:
        assert header.count(f"_{signature.name}(") == header.count(f"_{signature.name}_with(") == 2
    assert max(map(len, (header + source).splitlines())) <= 110
    assert c_files(identified("scara_2r"))[0].notes == ()


def test_variables_are_used_again_and_unknown_operations_are_named():
    x = ca.SX.sym("x", 1)
    value = x
    for k in range(50):
        value = ca.sin(value) + k
    lines = statements(ca.Function("deep", [x], [value]), ("x",), "y")
    assert lines[0].count(",") < 3
    assert lines[-1].startswith("y[0] = t")
    assert statements(ca.Function("none", [x], [ca.SX(2)]), ("x",), "y") == ["(void)x;", "y[0] = NUMBER(2.0);"]
    with pytest.raises(ExportError, match="function 'odd': operation 'erfinv' cannot be written in C"):
        statements(ca.Function("odd", [x], [ca.erfinv(x)]), ("x",), "y")


def test_a_variable_that_is_an_output_is_not_used_again():
    x = ca.SX.sym("x", 3)
    product = x[0] * x[1]
    function = ca.Function("kept", [x], [ca.vertcat(product, (product + x[2]) * x[0] - x[1] / (product - x[2]))])
    lines = [line.rstrip(";") for line in statements(function, ("x",), "y") if not line.startswith("real ")]
    names = {"x": [2.0, 3.0, 5.0], "y": [0.0, 0.0]}
    exec("\n".join(lines), names)  # sums and products read the same in Python
    assert names["y"] == np.array(function(names["x"])).ravel().tolist()


@needs_compiler
def test_every_operation_of_the_kernel_is_written_as_casadi_evaluates_it(tmp_path):
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    unary = [ca.sin, ca.cos, ca.tan, ca.tanh, ca.exp, ca.fabs, ca.floor, ca.ceil, ca.sign, ca.atan, ca.asinh, ca.expm1]
    results = [one(a) for one in unary] + [ca.sqrt(ca.fabs(a)), ca.log1p(ca.fabs(b)), 1 / a, -a, a * a, 2 * a, a**b]
    results += [a < b, a <= b, a == b, a != b, ca.logic_and(a, b), ca.logic_or(a, b), ca.logic_not(a), ca.fmin(a, b)]
    results += [ca.fmax(a, b), ca.if_else(a > 0, b, a), ca.atan2(a, b), ca.copysign(a, b), ca.hypot(a, b), a * b - a]
    function = ca.Function("all", [ca.vertcat(a, b)], [ca.vertcat(*results)])
    sign = "static double sign_of(double x) { return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x); }\n"
    text = "\n".join(statements(function, ("x",), "y"))
    (tmp_path / "all.c").write_text(
        "#include <math.h>\n#define NUMBER(x) x\n#define MATH(x) x\ntypedef double real;\n" + sign
        + f"void all(const double x[2], double y[{len(results)}]);\n"
        + f"void all(const double x[2], double y[{len(results)}])\n{{\n{text}\n}}\n"
    )  # fmt: skip
    command = [str(COMPILER), *STRICT, "-shared", "-fPIC", "all.c", "-o", "all.so", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    for sample in ([0.7, 1.3], [0.7, 0.7], [2.0, -1.5], [0.3, 0.0]):
        x, y = np.array(sample), np.empty(len(results))
        library.all(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        np.testing.assert_allclose(y, np.array(function(x)).ravel(), rtol=1e-14)


LARGE = ["scara_2r", "kuka_ir361", "coupled", "ur10e", "kuka_lwr4", "gripper", "sliding_tree", "chain 30"]


@pytest.mark.large
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_generated_code_equals_the_model(name, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    one = identified(name, every_effect(name), sign_width=0.05 if name == "ur10e" else 0.0)
    state = states(one, 20)
    for kind, to in ((np.float64, 1e-12), (np.float32, 1e-4)):
        library, prefix = built(one, tmp_path, kind, compiler)
        assert_parts_equal(called(library, prefix, state, kind), one, state, to)


@pytest.mark.large
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler (g++) on this machine")
def test_the_header_is_c_plus_plus_too(tmp_path):
    write_files(c_files(identified("kuka_lwr4")), tmp_path)
    (tmp_path / "main.cpp").write_text('#include "kuka_lwr4.h"\nint main() { return kuka_lwr4_run[0] == 0; }\n')
    for standard in ("-std=c++11", "-std=c++20"):
        strict = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
        subprocess.run(["g++", standard, *strict, "-fsyntax-only", "main.cpp"], cwd=tmp_path, check=True)


@pytest.mark.large
def test_the_source_of_thirty_joints_does_not_explode():
    thirty = c_files(identified("chain 30", every_effect("chain 30")))[1]
    seven = c_files(identified("kuka_lwr4"))[1]
    assert len(thirty.content) < 20 * len(seven.content) < 2_000_000  # the inertia matrix grows with the square

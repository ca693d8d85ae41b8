"""CasADi files: loaded again by CasADi alone, named inputs and outputs, equal to the model."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from identified_arms import assert_parts_equal, every_effect, identified, states
from steelyard.export import write_files
from steelyard.export.casadi_functions import casadi_files
from steelyard.export.dynamics import SIGNATURES


@pytest.mark.parametrize("parameters", [False, True])
def test_loaded_functions_equal_the_model(parameters, tmp_path):
    one = identified("coupled", every_effect("coupled"))
    paths = write_files(casadi_files(one, parameters=parameters), tmp_path)
    assert [path.name for path in paths] == [
        *(f"staubli_tx40_{signature.name}.casadi" for signature in SIGNATURES),
        "staubli_tx40_casadi.txt",
    ]
    assert ("Last input: parameters XX1, XY1, " in paths[-1].read_text()) == parameters
    state, found = states(one, 3), {}
    values = {"parameters": [one.robot.parameters[name] for name in one.model.names]} if parameters else {}
    for path, signature in zip(paths[:-1], SIGNATURES, strict=True):
        function = ca.Function.load(str(path))
        assert function.name() == signature.name
        assert function.name_in() == [*signature.inputs, *values]
        assert function.name_out() == [signature.output]
        called = [function(**{name: state[name][k] for name in signature.inputs}, **values) for k in range(3)]
        found[signature.name] = np.array([np.array(result[signature.output]) for result in called])
    assert_parts_equal(found, one, state, to=1e-12)


def test_a_note_says_which_casadi_wrote_the_files():
    first, *others = casadi_files(identified("scara_2r"))
    assert first.notes == (f"written by CasADi {ca.CasadiMeta.version()}: releases before it may not read the files",)
    assert all(file.notes == () for file in others)

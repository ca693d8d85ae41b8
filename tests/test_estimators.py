"""A new estimator is one module and one entry: settings, help, documentation and fits are found from there."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard.errors import EstimateError
from steelyard.estimate import Estimated
from steelyard.estimators import ESTIMATORS, Estimator, methods_on_factors, methods_with_start, settings_tables
from steelyard.identification import Settings, fit_arm, settings_from_table, with_options
from steelyard.study import StudySettings

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("one", ESTIMATORS.values(), ids=list(ESTIMATORS))
def test_what_the_registry_names_exists(one):
    assert callable(one.load())
    assert (DOCS / one.document).is_file()
    assert one.summary
    assert bool(one.settings) == bool(one.table) == (one.data == "rows")
    if one.settings:
        assert isinstance(Settings(method=one.name).of_method, one.load_settings())
    else:
        assert Settings(method=one.name).of_method is None
    if one.many:
        assert callable(one.load_many())


def test_the_methods_that_differ_are_those_that_did():
    assert methods_on_factors() == ("gls", "wls", "iterated", "ols")
    assert methods_with_start() == ("rls", "ekf", "iv", "didim")
    assert {name for name, one in ESTIMATORS.items() if one.starts_at_prior} == {"rls", "ekf"}
    assert {table: one.name for table, one in settings_tables().items()} == {x: x for x in ("rls", "ekf", "ml", "iv")}


@dataclass(frozen=True)
class ShrunkSettings:
    """Settings of an estimator of somebody else."""

    factor: float = 0.5


def shrunk(evidence, settings, prior, progress):
    """Weighted least squares, made smaller."""
    return Estimated(replace(evidence.plain, values=settings.factor * evidence.plain.values, method="shrunk"))


@pytest.fixture
def registered(monkeypatch):
    module = ModuleType("steelyard.estimate.shrunk")
    vars(module).update(shrunk=shrunk, ShrunkSettings=ShrunkSettings)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entry = Estimator(
        "shrunk", "smaller", "methods/estimation.md", "shrunk", "shrunk", "rows", "ShrunkSettings", "shrunk"
    )
    monkeypatch.setitem(ESTIMATORS, "shrunk", entry)


@pytest.mark.parametrize(("options", "factor"), [((), 0.5), (("factor=0.25",), 0.25)])
def test_a_new_estimator_is_one_module_and_one_entry(registered, options, factor):
    usual = fit_arm("scara_2r", [scara(0)], Settings(method="wls")).fit.estimate
    settings = settings_from_table(with_options({"method": "shrunk"}, options))
    found = fit_arm("scara_2r", [scara(0)], settings).fit.estimate
    np.testing.assert_array_equal(found.values, factor * usual.values)
    assert StudySettings(methods=("shrunk",)).cases[0].start is None
    with pytest.raises(EstimateError, match="covariance 'hac' with method 'shrunk', which brings its own"):
        replace(settings, covariance="hac")
    with pytest.raises(EstimateError, match=r"shrunk.*: unknown key 'facto'; allowed: factor"):
        settings_from_table(with_options({"method": "shrunk"}, ["facto=1"]))


def test_a_method_that_is_not_registered_is_refused():
    with pytest.raises(EstimateError, match="method is 'shrunk'; allowed: gls, wls"):
        Settings(method="shrunk")
    with pytest.raises(
        EstimateError, match="method 'wls' has no options of its own; those that have: rls, ekf, ml, iv"
    ):
        with_options({"method": "wls"}, ["factor=1"])

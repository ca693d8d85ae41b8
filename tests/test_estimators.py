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
from steelyard.estimate import Estimated, generalised, weighted
from steelyard.estimators import ESTIMATORS, Estimator, methods_on_factors, methods_with_start, settings_tables
from steelyard.identification import Settings, fit_arm, identify, settings_from_table, with_options
from steelyard.study import StudySettings

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("one", ESTIMATORS.values(), ids=list(ESTIMATORS))
def test_what_the_registry_names_exists(one):
    assert callable(one.load())
    assert (DOCS / one.document).is_file()
    assert one.summary
    assert bool(one.settings) == bool(one.table)
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


def ridge(observations, columns, settings):
    """Weighted least squares, made smaller, from the factors."""
    found = weighted(observations, columns)
    return replace(found, values=settings.factor * found.values, method="ridge")


def shrunk_gls(sources, plain, settings, threads):
    """Generalised least squares, made smaller."""
    found = generalised(sources, plain, threads=threads)
    return replace(found, estimate=replace(found.estimate, values=settings.factor * found.estimate.values))


@pytest.mark.parametrize(("data", "function", "usual"), [("factors", ridge, "wls"), ("whitened", shrunk_gls, "gls")])
def test_estimators_on_factors_get_their_settings(monkeypatch, data, function, usual):
    module = ModuleType("steelyard.estimate.on_factors")
    vars(module).update(on_factors=function, ShrunkSettings=ShrunkSettings)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    page = "methods/estimation.md"
    entry = Estimator("own", "smaller", page, "on_factors", "on_factors", data, "ShrunkSettings", "own")
    monkeypatch.setitem(ESTIMATORS, "own", entry)
    expected = fit_arm("scara_2r", [scara(0)], Settings(method=usual)).fit.estimate
    settings = settings_from_table(with_options({"method": "own"}, ["factor=0.9999"]))
    found = fit_arm("scara_2r", [scara(0)], settings).fit.estimate
    np.testing.assert_array_equal(found.values, 0.9999 * expected.values)


def test_options_of_methods_are_checked():
    with pytest.raises(EstimateError, match="options is 'integrator'; allowed: rls, ekf, ml, iv"):
        Settings(method="ekf", options={"integrator": "euler"})
    with pytest.raises(EstimateError, match=r"options of 'ekf'.*KalmanSettings"):
        Settings(method="ekf", options={"ekf": {"integrator": "euler"}})


def test_the_result_says_with_which_options_it_was_made():
    settings = settings_from_table(with_options({"method": "rls"}, ["forgetting=0.999"]))
    found = identify("scara_2r", [scara(0)], settings=settings).to_json()
    assert found["options"]["forgetting"] == 0.999
    assert identify("scara_2r", [scara(0)], settings=Settings(method="wls")).to_json()["options"] is None


def test_a_method_that_is_not_registered_is_refused():
    with pytest.raises(EstimateError, match="method is 'shrunk'; allowed: gls, wls"):
        Settings(method="shrunk")
    with pytest.raises(
        EstimateError, match="method 'wls' has no options of its own; those that have: rls, ekf, ml, iv"
    ):
        with_options({"method": "wls"}, ["factor=1"])

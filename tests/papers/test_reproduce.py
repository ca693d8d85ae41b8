"""Papers by name; what cannot be reproduced is rejected in one line."""

from __future__ import annotations

import importlib
from functools import partial

import pytest

from steelyard.errors import EstimateError
from steelyard.papers import PAPERS, reproduce
from steelyard.papers.p1 import p1


def test_the_papers_that_can_be_reproduced_are_known():
    assert PAPERS == ("P1", "P2", "P3", "P4", "P5")


@pytest.mark.parametrize("name", ["P9", "", "p1"])
def test_an_unknown_paper_is_refused_with_those_known(name):
    with pytest.raises(EstimateError, match="allowed are P1, P2, P3, P4, P5"):
        reproduce(name)


def test_a_small_letter_is_met_with_the_right_name():
    with pytest.raises(EstimateError, match="did you mean 'P5'"):
        reproduce("p5")


@pytest.mark.parametrize("settings", [{"seeds": 0}, {"seeds": -1}, {"threads": 0}])
def test_fewer_than_one_seed_or_thread_is_refused(settings):
    with pytest.raises(EstimateError, match="allowed are whole numbers from 1 on"):
        reproduce("P1", **settings)


@pytest.mark.large
def test_seeds_and_stages_reach_the_paper(monkeypatch):
    module = importlib.import_module("steelyard.papers")
    monkeypatch.setitem(module._PAPERS, "P1", partial(p1, starts=1))
    stages = []

    def stage(name):
        stages.append(name)
        return lambda done, total: None

    result = reproduce("P1", seeds=1, stage=stage)
    assert result.paper == "P1"
    assert result.notes[0].startswith("1 simulated experiments")
    filters = "Kalman filter and recursive least squares"
    assert stages == ["simulating the SCARA", "fitting", filters, "optimising quintic moves"]

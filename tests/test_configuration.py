"""The configuration reader: kinds of values, sections of tables, records, and one form of error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from steelyard.configuration import (
    ROOT,
    Section,
    checked,
    choice,
    flag,
    in_radians,
    kind_of,
    names,
    number,
    numbers,
    per_joint,
    read_config,
    record_from,
    text,
    texts,
    toml_file,
    vector,
    whole_number,
)
from steelyard.errors import ConfigError, DesignError, SimulationError


def section(**table) -> Section:
    return Section(table, "[part]", DesignError)


@pytest.mark.parametrize(
    ("kind", "value", "converted"),
    [
        (text, "a", "a"),
        (texts, "a", ("a",)),
        (texts, ["a", "b"], ("a", "b")),
        (names(), [], ()),
        (choice("in", "out"), "in", "in"),
        (flag, False, False),
        (whole_number(1), 3, 3),
        (number(), 2, 2.0),
        (number(infinite=True), -2e9, -math.inf),
        (number(above=0, most=1), 1, 1.0),
        (number(least=0), 0, 0.0),
        (numbers(2), [1, 2], (1.0, 2.0)),
        (vector, (0, 0, 1), (0.0, 0.0, 1.0)),
        (per_joint(number()), 2, 2.0),
        (per_joint(number()), [1, 2], (1.0, 2.0)),
        (per_joint(number()), {"a": 1}, {"a": 1.0}),
        (in_radians(per_joint(number())), {"a": 180}, {"a": math.pi}),
        (in_radians(vector), [180, 0, -180], (math.pi, 0.0, -math.pi)),
        (kind_of(float), 1, 1.0),
        (kind_of((float, list)), [1, "a"], [1, "a"]),
        (kind_of(tuple[float, ...] | float), 2, 2.0),
        (kind_of(tuple[float, ...] | None), 2, (2.0,)),
        (kind_of(tuple[int, int]), [1, 2], (1, 2)),
        (kind_of(float | None), None, None),
        (kind_of(Literal["a", "b"]), "b", "b"),
    ],
)
def test_a_value_is_converted_to_its_kind(kind, value, converted):
    got = checked(value, kind, "it", DesignError)
    assert got == converted
    assert type(got) is type(converted)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (text, "", "it is ''; allowed: a text"),
        (texts, [], "it is []; allowed: a text or a list of texts"),
        (names("links"), ["a", 1], "it is ['a', 1]; allowed: a list of links"),
        (names(twice=False), ["a", "a"], "it is ['a', 'a']; allowed: a list of names, each once"),
        (choice("in", "out"), "inn", "it is 'inn'; allowed: in, out; did you mean 'in'?"),
        (choice("in", "out"), ["in"], "it is ['in']; allowed: in, out"),
        (flag, 1, "it is 1; allowed: true or false"),
        (whole_number(1), True, "it is True; allowed: a whole number from 1"),
        (whole_number(1), 0, "it is 0; allowed: a whole number from 1"),
        (number(), True, "it is True; allowed: a finite number"),
        (number(), math.inf, "it is inf; allowed: a finite number; leave it out if it is unknown"),
        (number(), -2e9, "it is -2000000000.0; allowed: a finite number up to 1e+09; check the unit (SI)"),
        (
            number(),
            10**400,
            "it is a very large whole number; allowed: a finite number up to 1e+09; check the unit (SI)",
        ),
        (number(infinite=True), math.nan, "it is nan; allowed: a number; leave it out if it is unknown"),
        (number(above=0, most=1), 0, "it is 0; allowed: a finite number above 0 and at most 1"),
        (number(above=0, most=1), 1.5, "it is 1.5; allowed: a finite number above 0 and at most 1"),
        (number(least=0), -1, "it is -1; allowed: a finite number of 0 or more"),
        (numbers(2), [1], "it is [1]; allowed: a list of 2 numbers"),
        (numbers(), [1, "a"], "it is [1, 'a']; allowed: a list of numbers; entry 2 must be a finite number"),
        (vector, 3, "it is 3; allowed: three numbers, such as [0, 0, 0.1]"),
        (per_joint(number()), [], "it is []; allowed: a number, a list of numbers or a table by joint name"),
        (kind_of((float, list)), True, "it is True; allowed: a number or a list"),
        (kind_of(tuple[float, ...] | float), "a", "it is 'a'; allowed: a number or a list"),
        (kind_of(tuple[int, int]), [1.5, 2], "it is [1.5, 2]; allowed: a list of 2; entry 1 must be a whole number"),
        (kind_of(float), 10**400, "it is a very large whole number; allowed: a number"),
        (kind_of(int | None), "a", "it is 'a'; allowed: a whole number"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(kind, value, message):
    with pytest.raises(DesignError) as caught:
        checked(value, kind, "it", DesignError)
    assert str(caught.value) == message


def test_a_section_says_which_key_is_wrong():
    table = section(rate=3, angle_deg=180, both=1, both_deg=1, inner={"a": 1}, rows=[{"a": 1}], one=2)
    assert table.get("rate", number()) == 3.0
    assert table.get("other", number(), 1.0) == 1.0
    assert table.optional("other", number()) is None
    assert table.angles("angle", number()) == math.pi
    assert table.section("inner").get("a", number()) == 1.0
    assert table.sections("rows")[0].where == "[part] rows 1"
    for wrong, message in (
        (lambda: table.get("rates", text), "[part]: 'rates' is missing; add rates = ..., allowed: a text"),
        (lambda: table.angles("both", number()), "[part]: both both and both_deg are given; keep one"),
        (lambda: table.section("inner").get("a", text), "[part]: inner: a is 1; allowed: a text"),
        (lambda: table.section("one"), "[part]: one is 2; allowed: a table, write [one] on a line of its own"),
        (lambda: table.sections("inner"), "[part]: inner is no list of tables; write [[inner]], with double brackets"),
        (lambda: table.check_keys(["rate", "ones"]), "[part]: unknown key 'angle_deg'; allowed: rate, ones"),
        (lambda: section(raet=1).values({"rate": number()}), "[part]: unknown key 'raet'; allowed: rate; did you mean"),
        (lambda: table.named_sections(), "[part]: rate is 3; allowed: a table, write [part.rate]"),
    ):
        with pytest.raises(DesignError) as caught:
            wrong()
        assert str(caught.value).startswith(message)


@dataclass(frozen=True)
class Inner:
    kind: Literal["white", "pink"]
    std: tuple[float, ...] = ()


@dataclass(frozen=True)
class Outer:
    rate: float = 1.0
    inner: Inner | None = None
    count: int | tuple[int, ...] = 3


def test_a_record_is_read_by_its_annotations():
    table = {"rate": 2, "inner": {"kind": "white", "std": 3}, "count": [1, 2]}
    assert record_from(Outer, Section(table, ROOT, SimulationError)) == Outer(2.0, Inner("white", (3.0,)), (1, 2))
    assert record_from(Outer, Section({"inner": None}, ROOT, SimulationError)) == Outer()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"rat": 1}, "unknown key 'rat'; allowed: rate, inner, count; did you mean 'rate'?"),
        ({"rate": "a"}, "rate is 'a'; allowed: a number"),
        ({"inner": 3}, "inner is 3; allowed: a table"),
        ({"inner": {"std": [1]}}, "[inner]: 'kind' is missing; add kind = ..., allowed: white, pink"),
        ({"inner": {"kind": "whit"}}, "[inner]: kind is 'whit'; allowed: white, pink; did you mean 'white'?"),
        ({"inner": {"kind": "white", "sdt": 1}}, "[inner]: unknown key 'sdt'; allowed: kind, std"),
        ({"count": 1.5}, "count is 1.5; allowed: a whole number or a list; entry 1 must be a whole number"),
    ],
)
def test_a_record_refuses_what_it_does_not_annotate(table, message):
    with pytest.raises(SimulationError) as caught:
        record_from(Outer, Section(table, ROOT, SimulationError))
    assert str(caught.value).startswith(message)


def test_errors_of_a_file_name_it(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("[model]\nrate = 3\n", encoding="utf-8")
    with pytest.raises(DesignError, match=r"a\.toml: \[model\]: rate is 3; allowed: a text"):  # noqa: SIM117
        with toml_file(path, "limits", DesignError) as file:
            file.section("model").get("rate", text)
    assert read_config(path, "model", {"rate": float}) == {"rate": 3}
    assert read_config(path, "identify", {}) == {}
    with pytest.raises(ConfigError, match=r"a\.toml: \[model\]: unknown key 'rate'"):
        read_config(path, "model", {"rat": float})


def test_numbers_of_numpy_are_numbers():
    assert number()(np.int64(3)) == 3.0
    assert number()(np.float32(0.5)) == 0.5
    assert type(whole_number(1)(np.int64(3))) is int
    with pytest.raises(ValueError, match="finite"):
        number()(np.float32("nan"))
    with pytest.raises(ValueError, match="number"):
        number()(np.True_)

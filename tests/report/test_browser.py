"""The report in a browser: it opens without complaint or request, and what it offers works."""

from __future__ import annotations

import csv

import pytest

from browser import MISSING, Browser, is_installed
from steelyard.report import DataTable, Page, PageSection, page_html

OVERLAPS = """
    const found = [];
    for (const plot of document.querySelectorAll('#friction .plot, #histogram .plot')) {
        const boxes = [...plot.querySelectorAll('.annotation-text-g')].map((one) => one.getBoundingClientRect());
        boxes.forEach((a, k) => boxes.slice(k + 1).forEach((b) => {
            if (a.x < b.right && b.x < a.right && a.y < b.bottom && b.y < a.bottom) found.push([a.x, b.x]);
        }));
    }
    return found;
"""
"""Titles of small plots that lie over each other."""

pytestmark = pytest.mark.skipif(not is_installed(), reason=MISSING)


@pytest.fixture(scope="module")
def browser(page):
    with Browser() as opened:
        opened.open(page)
        opened.draw_all()
        yield opened


def test_it_opens_without_complaint_and_without_a_request(browser):
    assert [one for one in browser.errors() if "Canvas2D" not in one] == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "blob:"))] == []
    assert browser.run("return document.querySelectorAll('.plot .main-svg').length") >= 12


def test_names_from_outside_do_nothing(browser):
    assert browser.run("return window.hacked === undefined")
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.run("return document.body.textContent.includes('<img src=x onerror=')")


def test_zoom_is_linked(browser):
    browser.run(
        "return Plotly.relayout(document.querySelector('#torques .plot'), {'xaxis.range': [1, 2]}).then(() => 0)"
    )
    browser.wait_for("document.querySelector('#torques .plot')._fullLayout.xaxis2.range[1] === 2")
    assert browser.run("return document.querySelector('#torques .plot')._fullLayout.xaxis2.range") == [1, 2]
    browser.run("Plotly.relayout(document.querySelector('#torques .plot'), {'xaxis.autorange': true})")


def column(browser: Browser, number: int) -> list[str]:
    script = (
        "return [...document.querySelectorAll('#parameters tbody tr')].map((r) => r.cells[arguments[0]].textContent)"
    )
    return browser.run(script, number)


def test_the_table_sorts_filters_and_is_copied(browser):
    before, regrouped = column(browser, 0), column(browser, 9)
    sort = "document.querySelectorAll('#parameters .sort')[1].click()"
    browser.run(sort)
    ascending = [float(cell) for cell in column(browser, 1) if cell]
    assert ascending == sorted(ascending)
    browser.run(sort)
    assert [float(cell) for cell in column(browser, 1) if cell] == ascending[::-1]
    assert sorted(column(browser, 0)) == sorted(before)
    browser.run(
        "const box = document.querySelector('#parameters .search'); box.value = 'ZZ';"
        "box.dispatchEvent(new Event('input'))"
    )
    shown = browser.run("return [...document.querySelectorAll('#parameters tbody tr:not([hidden])')].length")
    assert shown == sum("ZZ" in name + parts for name, parts in zip(before, regrouped, strict=True)) < len(before)
    copied = copy(browser, "csv").splitlines()
    assert copied[0].startswith("name,value,± 95 %")
    assert len(copied) == 1 + shown
    clear = "const box = document.querySelector('#parameters .search'); box.value = '';"
    browser.run(f"{clear} box.dispatchEvent(new Event('input'))")


def copy(browser: Browser, kind: str) -> str:
    browser.run("document.querySelector(`#parameters .copy[data-as=${arguments[0]}]`).click()", kind)
    return browser.run("return document.querySelector('#parameters').dataset.copied")


def test_csv_has_all_digits_and_latex_those_shown(browser, found):
    rows = {row["name"]: row for row in found.to_json()["parameters"]}
    table = {row[0]: row for row in csv.reader(copy(browser, "csv").splitlines())}
    assert table.pop("name")[-1] == "regrouping"
    assert table.keys() == rows.keys()
    for name, row in table.items():
        assert row[1] == ("" if rows[name]["value"] is None else repr(float(rows[name]["value"])))
        assert row[-1] == rows[name]["regrouping"]
    first = copy(browser, "latex").splitlines()[2].split(" & ")
    assert first[1] == column(browser, 1)[0]
    assert len(first[1]) < len(table[first[0]][1])
    assert len(first) == 10


def test_a_formula_in_a_name_is_copied_as_text(tmp_path):
    table = DataTable("parameters", ["name", "value"], [["=1+1", -0.1 - 0.2], ["-2", 3]], "Names.")
    path = tmp_path / "page.html"
    path.write_text(page_html(Page("t", "s", [PageSection("p", [table])])), encoding="utf-8")
    with Browser() as opened:
        opened.open(path)
        assert copy(opened, "csv") == "name,value\n'=1+1,-0.30000000000000004\n-2,3\n"


def test_the_arm_moves_and_a_click_on_an_outlier_shows_its_pose(browser):
    names = browser.run("return document.querySelector('#arm .plot').layout.sliders[0].steps.map((s) => s.label)")
    assert len(names) > 50
    place = browser.run(
        """
        const plot = document.querySelector('#torques .plot');
        plot.scrollIntoView({block: 'start'});
        const trace = plot.data.find((one) => one.meta === 'outlier'), box = plot.getBoundingClientRect();
        const full = plot._fullData.find((one) => one.meta === 'outlier'), x = full.x[0], y = full.y[0];
        const axes = [plot._fullLayout.xaxis, plot._fullLayout[trace.yaxis.replace('y', 'yaxis')]];
        return {x: box.x + axes[0]._offset + axes[0].l2p(x), y: box.y + axes[1]._offset + axes[1].l2p(y), time: x};
        """
    )
    for shift in (-3, 0):
        browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=place["x"] + shift, y=place["y"])
    browser.wait_for("document.querySelector('#torques .hoverlayer').childElementCount > 0")
    for kind in ("mousePressed", "mouseReleased"):
        browser.command("Input.dispatchMouseEvent", type=kind, x=place["x"], y=place["y"], button="left", clickCount=1)
    browser.wait_for("document.querySelector('#arm .plot').dataset.shown")
    shown = browser.run("return document.querySelector('#arm .plot').dataset.shown")
    assert abs(float(shown) - place["time"]) < 0.002
    assert shown in names


def test_regroupings_are_shown_by_a_button_and_in_print(browser):
    shown = "return [...document.querySelectorAll('#parameters td:last-child')].map((one) => one.offsetWidth > 0)"
    assert not any(browser.run(shown))
    browser.command("Emulation.setEmulatedMedia", media="print")
    assert all(browser.run(shown))
    browser.command("Emulation.setEmulatedMedia", media="")
    browser.run("document.querySelector('#parameters .unfold').focus()")
    for kind in ("keyDown", "keyUp"):
        browser.command("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                        windowsVirtualKeyCode=13)  # fmt: skip
    assert all(browser.run(shown))
    assert browser.run("return document.querySelector('#parameters .unfold').getAttribute('aria-pressed')") == "true"
    browser.run("document.querySelector('#parameters .unfold').click()")
    assert not any(browser.run(shown))


@pytest.mark.large
def test_dark_and_narrow(page):
    with Browser(420, 900, dark=True) as narrow:
        narrow.open(page)
        narrow.draw_all()
        assert narrow.run("return document.documentElement.classList.contains('dark')")
        assert narrow.run("return document.documentElement.scrollWidth") <= 420
        hidden = "const box = document.querySelector('.criteria'); return [box.scrollWidth - box.clientWidth, "
        assert narrow.run(hidden + "box.scrollHeight - box.clientHeight]") == [0, 0]
        assert narrow.run(OVERLAPS) == []
        narrow.run("document.getElementById('theme').click()")
        assert not narrow.run("return document.documentElement.classList.contains('dark')")
        assert [one for one in narrow.errors() if "Canvas2D" not in one] == []

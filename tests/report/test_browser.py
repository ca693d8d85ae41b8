"""The report in a browser: it opens without complaint or request, and what it offers works."""

from __future__ import annotations

import pytest

from browser import MISSING, Browser, is_installed

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
    before = column(browser, 0)
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
    assert shown == sum("ZZ" in name for name in before)
    browser.run("document.querySelector('#parameters .copy').click()")
    copied = browser.run("return document.querySelector('#parameters').dataset.copied").splitlines()
    assert copied[0].startswith("name,value,± 95 %")
    assert len(copied) == 1 + shown


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


@pytest.mark.large
def test_dark_and_narrow(page):
    with Browser(420, 900, dark=True) as narrow:
        narrow.open(page)
        narrow.draw_all()
        assert narrow.run("return document.documentElement.classList.contains('dark')")
        assert narrow.run("return document.documentElement.scrollWidth") <= 420
        narrow.run("document.getElementById('theme').click()")
        assert not narrow.run("return document.documentElement.classList.contains('dark')")
        assert [one for one in narrow.errors() if "Canvas2D" not in one] == []

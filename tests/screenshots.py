"""Makes every kind of report, and pictures of it: wide and narrow, light and dark; or checks its accessibility.

PYTHONPATH=tests python tests/screenshots.py [--out screenshots] [--axe axe.min.js]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path

from browser import MISSING, Browser, is_installed
from simulated_experiments import scara
from steelyard.cli import main
from steelyard.recording import write_recording

WIDTHS = (1400, 420)
SERIOUS = ("serious", "critical")


def identification(folder: Path) -> Path:
    """Identify the SCARA from two logs."""
    logs = [str(write_recording(scara(seed), folder / f"log_{seed}.npz")) for seed in (1, 2, 3)]
    return made(folder / "identify", "identify", "scara_2r", *logs[:2], "--validate", logs[2])


def demonstration(folder: Path) -> Path:
    """Run the demo: seven joints, two kinds of torque."""
    return made(folder / "demo", "demo")


def payload(folder: Path) -> Path:
    """Identify the payload of the demo's arm."""
    arm = made(folder / "arm", "identify", "kuka_lwr4", str(folder / "demo" / "without.npz"), "--torque", "both")
    return made(folder / "payload", "payload", str(arm.parent), str(folder / "demo" / "with.npz"))


def calibration(folder: Path) -> Path:
    """Calibrate the UR10e from the demo's tracker points."""
    points, others = (str(folder / "demo" / f"{name}.csv") for name in ("points", "other_points"))
    return made(folder / "calibrate", "calibrate", "ur10e", points, "--validate", others)


def motion(folder: Path) -> Path:
    """Design a motion of the SCARA."""
    return made(folder / "design", "design", "scara_2r", "--starts", "1", "--duration", "6")


def poses(folder: Path) -> Path:
    """Choose configurations of the UR10e to measure."""
    return made(folder / "poses", "poses", "ur10e", "--count", "20")


def study(folder: Path) -> Path:
    """Compare three estimators on the SCARA."""
    return made(
        folder / "montecarlo", "montecarlo", "scara_2r", "--methods", "wls,gls,iv", "--seeds", "6", "--rate", "100"
    )


def paper(folder: Path) -> Path:
    """Reproduce P3."""
    return made(folder / "papers", "papers", "P3")


def comparison(folder: Path) -> Path:
    """Compare a run with one of another log."""
    other = made(folder / "other", "identify", "scara_2r", str(folder / "log_3.npz"))
    return made(folder / "compare", "compare", str(folder / "identify"), str(other.parent))


def checked(folder: Path) -> Path:
    """Check the SCARA's logs."""
    return made(folder / "check", "check", "scara_2r", str(folder / "log_1.npz"), str(folder / "log_2.npz"))


KINDS: dict[str, Callable[[Path], Path]] = {
    "identify": identification,
    "demo": demonstration,
    "payload": payload,
    "calibrate": calibration,
    "design": motion,
    "poses": poses,
    "montecarlo": study,
    "papers": paper,
    "compare": comparison,
    "check": checked,
}
"""In this order: later ones use the logs of earlier ones."""


def made(out: Path, *command: str) -> Path:
    """Run a command that saves a run, and return its report."""
    with contextlib.redirect_stdout(io.StringIO()):
        code = main([*command, "--out", str(out)])
    if code == 1:
        sys.exit(f"steelyard {' '.join(command)} failed")
    return out / "report.html"


def pictures(page: Path, name: str, out: Path) -> None:
    """Take the pictures of one page."""
    for width in WIDTHS:
        for dark in (False, True):
            with Browser(width, 1000, dark=dark) as browser:
                browser.open(page)
                browser.draw_all()
                path = out / f"{name}_{width}_{'dark' if dark else 'light'}.png"
                print(browser.screenshot(path), *browser.errors(), sep="\n  ")


def accessibility(page: Path, axe: str) -> int:
    """Print the findings of axe-core on one page, and return how many are serious."""
    with Browser() as browser:
        browser.open(page)
        browser.draw_all()
        browser.run(f"{axe}; window.axe = axe")
        browser.run("window.found = null; axe.run(document).then((result) => { window.found = result.violations; })")
        browser.wait_for("window.found !== null", 120)
        found = browser.run(
            "return window.found.map((one) => [one.impact, one.id, one.help, one.nodes.length, one.nodes[0].html])"
        )
    for impact, rule, text, count, example in found:
        print(f"  {impact}: {rule} ({text}), {count} times, such as {example[:150]}")
    return sum(impact in SERIOUS for impact, *_ in found)


def run() -> int:
    """Make the reports and look at them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--axe", type=Path)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    given = parser.parse_args()
    if not is_installed():
        sys.exit(MISSING)
    given.out.mkdir(exist_ok=True)
    serious = 0
    for name in given.kinds:
        page = KINDS[name](given.out)
        if given.axe is None:
            pictures(page, name, given.out)
        else:
            print(name)
            serious += accessibility(page, given.axe.read_text(encoding="utf-8"))
    return int(serious > 0)


if __name__ == "__main__":
    sys.exit(run())

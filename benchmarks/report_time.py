"""Time and size of a report, 7 joints and 100,000 samples, beside a page of the torques alone by plotly's own writer.

That page has every sample of the measured torque and no other figure: what a user's script would write.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.log_length import ROBOT, write_log

if TYPE_CHECKING:
    from steelyard.recording import Recording

ROWS = 100_000
WANTED = "wanted: at most 5 s and 8 MB"


def run() -> None:
    """Print time and size of both pages; times are of the processor."""
    from steelyard import identify, read_recording

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        write_log(path, ROWS)
        begun = time.process_time()
        log = read_recording(ROBOT, path)
        found = identify(ROBOT, log)
        print(f"  identify {ROBOT}, {ROWS} samples: {time.process_time() - begun:.2f} s, compilation included")
        begun = time.process_time()
        page = found.to_html()
        first = time.process_time() - begun
        begun = time.process_time()
        found.to_html()
        again = time.process_time() - begun
        print(f"  report: {first:.2f} s, again {again:.2f} s, {len(page.encode()) / 1e6:.1f} MB ({WANTED})")
        seconds, size = _of_plotly(log, Path(folder) / "plotly.html")
        print(f"  measured torques alone by plotly, not thinned: {seconds:.2f} s, {size / 1e6:.1f} MB")
        print(f"  the whole report takes {first / seconds:.2f} of its time and {len(page) / size:.2f} of its size")


def _of_plotly(log: Recording, path: Path) -> tuple[float, int]:
    from plotly.subplots import make_subplots

    begun = time.process_time()
    figure = make_subplots(rows=len(log.joints), shared_xaxes=True)
    for row, values in enumerate(log.torque().values):
        figure.add_scattergl(x=log.time.tolist(), y=values.tolist(), row=row + 1, col=1)
    figure.write_html(path)
    return time.process_time() - begun, path.stat().st_size


if __name__ == "__main__":
    run()

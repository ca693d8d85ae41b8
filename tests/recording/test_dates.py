"""Dates as stamps, and encodings of text logs: the same recording as with seconds in UTF-8."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recording.logs import HEADER, kinds, one
from steelyard.errors import RecordingError
from steelyard.recording import read_recording, setup_from_table
from steelyard.tables import read_columns
from steelyard.tables import text as text_module
from steelyard.tables.dates import date_order, seconds_of

START = datetime(2024, 5, 31, 23, 59, 58, tzinfo=UTC)
FORMATS = {
    "iso": lambda d: d.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    "milliseconds": lambda d: d.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
    "blank": lambda d: d.strftime("%Y-%m-%d %H:%M:%S.%f"),
    "zone": lambda d: d.astimezone(timezone(timedelta(hours=-3, minutes=-30))).isoformat(),
    "slashes": lambda d: d.strftime("%Y/%m/%d %H:%M:%S.%f"),
    "day first, points": lambda d: d.strftime("%d.%m.%Y %H:%M:%S.%f"),
    "day first, slashes": lambda d: d.strftime("%d/%m/%Y %H:%M:%S.%f"),
    "month first": lambda d: d.strftime("%m/%d/%Y %H:%M:%S.%f"),
}


def lines_with_dates(motion, form, separator=",", header=HEADER):
    rows = motion.table().tolist()
    dates = [form(START + timedelta(microseconds=round(row[0] * 1e6))) for row in rows]
    body = [separator.join([date, *map(repr, row[1:])]) for date, row in zip(dates, rows, strict=True)]
    return "\n".join([header.replace(",", separator), *body]) + "\n"


def assert_same(recording, motion):
    assert recording.time[0] == START.timestamp()
    np.testing.assert_allclose(recording.time - recording.time[0], motion.time, atol=5e-7)
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.torque().values, motion.tau)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("separator", [",", ";", "\t", " ", " , "])
def test_dates_are_seconds_in_every_layout(robot, motion, tmp_path, form, separator):
    path = tmp_path / "log.csv"
    path.write_text(lines_with_dates(motion, FORMATS[form], separator))
    recording = read_recording(robot, path)
    assert_same(recording, motion)
    assert not kinds(recording.findings) & {"garbage_lines", "truncated_lines", "text"}


def test_a_damaged_date_is_a_garbage_line(robot, motion, tmp_path):
    lines = lines_with_dates(motion, FORMATS["blank"]).splitlines()
    lines[10] = lines[10].replace("2024-05-31", "2024-02-30")
    lines[20] = lines[20].replace("2024-05-31", "2024-13-01")
    lines[30] = lines[30].replace("23:59", "23:61")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    recording = read_recording(robot, tmp_path / "log.csv")
    assert one(recording.findings, "garbage_lines").where == (11.0, 21.0, 31.0)
    assert recording.samples == motion.time.size - 3


def test_dates_that_may_be_day_or_month_first_are_refused_where_they_are_needed(robot, motion, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(lines_with_dates(motion, lambda d: (d - timedelta(days=26)).strftime("%d/%m/%Y %H:%M:%S.%f")))
    assert path.read_text().splitlines()[1].startswith("05/05/2024")
    text = path.read_text().replace("05/05/2024", "04/05/2024")
    path.write_text(text)
    with pytest.raises(RecordingError, match="may have the day or the month first; write them as 2024-05-01"):
        read_recording(robot, path)
    setup = {"rate": 200, "q": "q", "torque": {"kind": "joint_torque", "columns": "joint_torque"}}
    np.testing.assert_array_equal(read_recording(robot, setup_from_table(setup), files=path).q, motion.q)


ENCODINGS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-8": b"\xef\xbb\xbf"}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("piece", [20_011, 1 << 24])
def test_encodings_with_decimal_commas_and_dates(robot, motion, tmp_path, monkeypatch, encoding, end, piece):
    """As the German Excel writes them; units and a degree sign stand in the header."""
    monkeypatch.setattr(text_module, "PIECE_BYTES", piece)
    header = HEADER.replace("qd[shoulder]", "v1 °/s").replace("qd[elbow]", "v2 °/s")
    text = lines_with_dates(motion, FORMATS["day first, points"], ";", header)
    head, _, body = text.partition("\n")
    dotted = body.replace(".", ",").replace("31,05,2024", "31.05.2024").replace("01,06,2024", "01.06.2024")
    path = tmp_path / "log.csv"
    path.write_bytes(ENCODINGS[encoding] + (head + end + dotted.replace("\n", end)).encode(encoding))
    recording = read_recording(robot, path)
    assert_same(recording, motion)
    assert not kinds(recording.findings) & {"garbage_lines", "truncated_lines", "text"}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_measurements_are_read_in_every_encoding(tmp_path, encoding):
    path = tmp_path / "points.csv"
    path.write_bytes(ENCODINGS[encoding] + "marker;x\nnäse;1,5\nohr;2\n".encode(encoding))
    columns = read_columns(path)
    assert columns.texts("marker") == ["näse", "ohr"]
    assert columns.numbers("x").tolist() == [1.5, 2.0]


def test_a_cut_utf16_file_is_read_to_its_end(robot, motion, tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(lines_with_dates(motion, FORMATS["iso"]).encode("utf-16")[:-1001])
    recording = read_recording(robot, path)
    assert recording.samples > motion.time.size - 10
    assert kinds(recording.findings) & {"truncated_lines", "garbage_lines", "text"}


def test_utf32_is_refused(robot, tmp_path):
    (tmp_path / "log.csv").write_bytes(lines_of_two().encode("utf-32"))
    with pytest.raises(RecordingError, match="is UTF-32 text; save it as UTF-8"):
        read_recording(robot, tmp_path / "log.csv")


def lines_of_two() -> str:
    return "time,q[shoulder],q[elbow]\n0,1,2\n1,2,3\n"


MOMENTS = st.datetimes(datetime(1601, 1, 1), datetime(9999, 1, 1))


@given(st.lists(MOMENTS, min_size=1, max_size=20), st.integers(-14 * 60, 14 * 60))
def test_seconds_are_those_of_pythons_calendar(moments, minutes):
    zone = timezone(timedelta(minutes=minutes))
    aware = [moment.replace(tzinfo=zone) for moment in moments]
    texts = [moment.isoformat(timespec="microseconds") for moment in aware]
    assert date_order([text.encode() for text in texts]) == "year"
    found = seconds_of(pl.Series(texts), "year").to_list()
    expected = [(moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() for moment in aware]
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-6)


@given(st.text(max_size=40))
def test_other_texts_are_no_dates(text):
    order = date_order([text.encode("utf-8", "replace")])
    assert order is None or "-" in text or "/" in text or "." in text

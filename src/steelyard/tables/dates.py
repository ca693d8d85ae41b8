"""Dates as stamps in text logs: ISO 8601, and day or month first where the numbers leave no doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl

_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9})\d*)?)?\s*(Z|z|[+-]\d{2}:?\d{2})?"
_YEAR_FIRST = rf'^[\s"]*(\d{{4}})([-/.])(\d{{1,2}})[-/.](\d{{1,2}})[Tt ]\s*{_CLOCK}[\s"]*$'
_YEAR_LAST = rf'^[\s"]*(\d{{1,2}})([./])(\d{{1,2}})[./](\d{{4}})[Tt ]\s*{_CLOCK}[\s"]*$'
_ORDERS = {"year": _YEAR_FIRST, "day": _YEAR_LAST, "month": _YEAR_LAST}
AMBIGUOUS = "ambiguous"
_LIKE_A_DATE = re.compile(rb'^"?\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{4})[Tt ]\s*\d{1,2}:\d{2}')
_GAP = re.compile(rb"(?<![\d.])(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{4}) +(?=\d{1,2}:\d{2})")
_DAYS = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_MONTHS_LAST = 12
_LONGEST = 64
"""Letters of a date; patterns take a time that grows with the square of the blanks in a longer cell."""


def is_date(cell: bytes) -> bool:
    """Return whether a cell looks like a date with a time of day."""
    return len(cell) <= _LONGEST and _LIKE_A_DATE.match(cell) is not None


def joined_dates(text: bytes) -> bytes:
    """Return text in which dates and times of day are joined by a T: a blank between them could separate columns."""
    return _GAP.sub(rb"\1T", text) if b":" in text else text


def date_order(cells: Sequence[bytes]) -> str | None:
    """Return in which order the dates of a column are written; None if most of its cells are no dates.

    Returns:
        ``year``, ``day`` or ``month``, whichever comes first, or ``ambiguous`` if it may be day or month.
    """
    if 2 * sum(map(is_date, cells)) <= len(cells):
        return None
    texts = [cell.decode("utf-8", "replace") for cell in cells if is_date(cell)]
    if 2 * sum(re.match(_YEAR_FIRST, text) is not None for text in texts) > len(cells):
        return "year"
    found = [match for match in (re.match(_YEAR_LAST, text) for text in texts) if match]
    first, second = [int(match[1]) for match in found], [int(match[3]) for match in found]
    if first == second or max(first, default=0) > _MONTHS_LAST:
        return "day"
    return "month" if max(second) > _MONTHS_LAST else AMBIGUOUS


def seconds_of(texts: pl.Series, order: str) -> pl.Series:
    """Return dates as seconds since 1970 (UTC where no zone is given), null where a text is no date."""
    import polars as pl  # imported when used: most commands read no text log

    parts = _parts(texts, _ORDERS[order])
    places = {"year": ("1", "3", "4"), "day": ("4", "3", "1"), "month": ("4", "1", "3")}[order]
    keys = (*places, "5", "6", "7")
    fits = parts["5"].is_not_null().to_numpy()
    year, month, day, hour, minute, second = (parts[key].fill_null(0).to_numpy().astype(np.int64) for key in keys)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    longest = _DAYS[np.clip(month, 1, 12) - 1] - ((month == 2) & ~leap)
    fits &= (month >= 1) & (month <= _MONTHS_LAST) & (day >= 1) & (day <= longest)
    fits &= (hour < 24) & (minute < 60) & (second <= 60)
    whole = 86_400 * _days(year, month, day) + 3600 * hour + 60 * minute + second - parts["zone"].to_numpy()
    values = whole + parts["fraction"].to_numpy()
    return pl.Series(np.where(fits, values, np.nan)).fill_nan(None)


def _parts(texts: pl.Series, pattern: str) -> pl.DataFrame:
    """Return the numbers of dates (``1`` ... ``7``), fractions of the second and offsets of the zone [s]."""
    import polars as pl  # imported when used, as above

    frame = pl.DataFrame({"text": texts}).select(pl.col("text").str.extract_groups(pattern)).unnest("text")
    zone = pl.col("9").str.replace(":", "", literal=True)
    minutes = 60 * zone.str.slice(1, 2).cast(pl.Int64, strict=False) + zone.str.slice(3, 2).cast(pl.Int64, strict=False)
    sign = pl.when(zone.str.starts_with("-")).then(-60).otherwise(60)
    return frame.select(
        *(pl.col(key).cast(pl.Int64, strict=False) for key in ("1", "3", "4", "5", "6", "7")),
        (pl.lit("0.") + pl.col("8")).cast(pl.Float64, strict=False).fill_null(0.0).alias("fraction"),
        (sign * minutes).fill_null(0).alias("zone"),
    )


def _days(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Return days since 1970 in the Gregorian calendar; years begin in March, so that leap days are their last."""
    shifted = year - (month <= 2)
    era, of_era = np.divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return 146_097 * era + 365 * of_era + of_era // 4 - of_era // 100 + of_year - 719_468

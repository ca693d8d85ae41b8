"""The papers' tables as printed, by column of the model."""

from __future__ import annotations

from ..judge import published_run


def printed(name: str) -> dict[str, tuple[float, float]]:
    """Return a published run as printed: estimate and relative sigma [%] by column (``ZZ2`` for ``ZZ2R``)."""
    return {
        parameter.removesuffix("R"): (each.value, _percent(each.value, each.sigma))
        for parameter, each in published_run(name).parameters.items()
    }


def _percent(value: float, sigma: float | None) -> float:
    """Return the relative sigma as it was printed, to three digits."""
    return float("nan") if sigma is None else float(f"{100 * sigma / abs(value):.3g}")

"""The noises of an experiment, together."""

from __future__ import annotations

from dataclasses import fields, replace

from ..simulate import Experiment, Noise


def noises_of(experiment: Experiment) -> dict[str, Noise]:
    """Return the noises of an experiment by the name of their setting, those that are there and not zero."""
    given = {one.name: getattr(experiment, one.name) for one in fields(Experiment)}
    return {name: noise for name, noise in given.items() if isinstance(noise, Noise) and any(noise.std)}


def scaled(experiment: Experiment, level: float) -> Experiment:
    """Return the experiment with all noise deviations multiplied."""
    noises = {
        name: replace(noise, std=tuple(level * std for std in noise.std))
        for name, noise in noises_of(experiment).items()
    }
    return replace(experiment, **noises)


def without_noise(experiment: Experiment) -> Experiment:
    """Return the experiment without any noise."""
    return replace(experiment, **dict.fromkeys(noises_of(experiment)))

"""The arm and the motion most tests use."""

from __future__ import annotations

import pytest

from recording.logs import Motion, arm
from steelyard.robot import Robot


@pytest.fixture
def robot() -> Robot:
    return arm()


@pytest.fixture
def motion() -> Motion:
    return Motion()

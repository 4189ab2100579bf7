"""What the tests with other PySparks and with clusters share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from tmqp_spark.testing import Broker


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Leave the environment of this process as it was: Spark's is for programs."""
    with patch.dict(os.environ):
        yield


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker for one test."""
    with Broker(tmp_path / "broker") as running:
        yield running

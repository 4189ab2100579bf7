"""The table of attacks can be made, and shows what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmqp
from tests.tmqp_server.attacks.__main__ import measured

pytestmark = [
    pytest.mark.alone,
    pytest.mark.long,
    pytest.mark.cold,
    pytest.mark.timeout(120),
]

LIMIT_MS = 50 if tmqp.compiled else 250


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("forged results", "0 of 30 counted"),
        ("TLS connections", "791 of 1,000 connections stay"),
        ("beginnings of large messages", "of 400 connections got through"),
    ],
)
def test_an_attack_fails_and_nobody_else_notices(name: str, outcome: str, tmp_path: Path) -> None:
    row = measured(name, tmp_path)
    assert outcome in row[2]
    p99_ms = float(row[3].split()[0])
    assert p99_ms < LIMIT_MS, row

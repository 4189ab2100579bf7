"""Wire logs as files, which ``replay`` plays again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tmqp_conformance.records import as_recording

__all__ = ["write_wire"]


def write_wire(directory: Path, record: dict[str, Any]) -> Path:
    """Write the wire log of a case; returns where.

    :raises OSError: when that fails.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{record['id']}.json"
    steps = as_recording(record["wire"], record["role"])
    path.write_text(json.dumps(steps, indent=1) + "\n", encoding="utf-8")
    return path

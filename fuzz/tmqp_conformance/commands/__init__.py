"""The commands of ``tmqp-conformance``, one module for each subject."""

from __future__ import annotations

__all__: list[str] = []

"""Planted bugs in what the server does when its clocks restart; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.model.times import NEVER
from tmqp_server.storage.forms import StoredForms

__all__ = ["CLOCK_BUGS"]


def _expired_before_the_boot_is_never(original: Any) -> Any:
    def kept(self: StoredForms, *arguments: Any) -> Any:
        message = original(self, *arguments)
        if message.expires_at <= 0.0:
            message.expires_at = NEVER
        return message

    return kept


def _forgets_the_offset(original: Any) -> Any:
    def expiry_us(self: StoredForms, expires_at: float) -> int:
        offset_s, self._offset_s = self._offset_s, round(self._offset_s, -2)
        try:
            saved: int = original(self, expires_at)
            return saved
        finally:
            self._offset_s = offset_s

    return expiry_us


CLOCK_BUGS: Final = (
    (
        "immortal-after-reboot", "what expired before the clock's start never expires",
        StoredForms, "kept", _expired_before_the_boot_is_never,
    ),
    (
        "expiry-by-boot-time", "an expiry is saved by the clock of one boot, not by the wall clock",
        StoredForms, "_expiry_us", _forgets_the_offset,
    ),
)  # fmt: skip

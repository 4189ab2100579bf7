"""The bugs that are planted in the server's audit; part of ``shell_bugs.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.access.auditing import Auditor
from tmqp_server.engine.effects import Effect, Reply

__all__ = ["AUDIT_BUGS"]


def _forgets(original: Any) -> Any:
    def answered(self: Auditor, effect: Effect) -> None:
        if isinstance(effect, Reply):
            self._take(effect.session, effect.request)
        else:
            original(self, effect)

    return answered


def _logs_out_twice(original: Any) -> Any:
    def gone(self: Auditor, number: int, place: Any, now: float) -> None:
        who = self._known.get(number)
        original(self, number, place, now)
        if who is not None:
            self._known[number] = who
            original(self, number, place, now)

    return gone


AUDIT_BUGS: Final = (
    ("audit-forgets", "what is answered is not audited", Auditor, "answered", _forgets),
    ("audit-repeats", "clients log out twice", Auditor, "gone", _logs_out_twice),
)

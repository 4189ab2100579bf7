"""The judge of the server's audit: each change that the broker carries out has one record."""

from __future__ import annotations

from typing import Final

from tmqp_server.access.auditing import ACTIONS, LOG_IN, LOG_OUT, AuditLog, Auditor, AuditRecord
from tmqp_server.engine.commands import Command
from tmqp_sim.world import Violation, World

__all__ = ["Notebook"]

_OF_CLIENTS: Final = (LOG_IN, LOG_OUT)
_UNAUTHORIZED: Final = 401


class Notebook(AuditLog):
    """Counts the records of one life of the server, and the commands that they are about."""

    def __init__(self, world: World) -> None:
        self.auditor = Auditor(self)
        self._world = world
        self._carried_out = 0
        self._recorded = 0
        #: Records that are about commands carried out, until they are complete.
        self._begun: dict[int, AuditRecord] = {}
        self._in = 0
        self._out = 0

    def write(self, record: AuditRecord) -> None:
        """A record is complete."""
        if record.action not in _OF_CLIENTS:
            # The broker, too, answers so: somebody's own rule for a channel.
            begun = self._begun.pop(id(record), None) is not None
            self._recorded += begun or record.code != _UNAUTHORIZED
            self._world.mark(f"audited: {'refused' if record.code >= 400 else 'done'}")
        elif record.code < 400:
            self._in += record.action == LOG_IN
            self._out += record.action == LOG_OUT

    def is_ready(self) -> bool:
        """Always."""
        return True

    def asked(self, command: Command) -> None:
        """The broker carries a command out."""
        if type(command) in ACTIONS:
            self._carried_out += 1
            for _, record in self.auditor.waiting.get(getattr(command, "session", 0), ()):
                self._begun[id(record)] = record

    def check(self) -> None:
        """Compare.

        :raises Violation: when a change has no record, or a record no change.
        """
        begun = 0
        for waiting in self.auditor.waiting.values():
            begun += sum([record.action not in _OF_CLIENTS for _, record in waiting])
        if self._recorded + begun != self._carried_out:
            text = f"{self._recorded} records and {begun} begun, of {self._carried_out} changes"
            raise Violation("audit", text)
        if self._out > self._in:
            raise Violation("audit", f"{self._out} clients logged out, {self._in} had logged in")

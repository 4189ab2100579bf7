"""An audit that is kept in a list."""

from __future__ import annotations

from tmqp_server.access.auditing import AuditLog, AuditRecord

__all__ = ["Kept"]


class Kept(AuditLog):
    """Keeps records in a list."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []
        self.ready = True

    def write(self, record: AuditRecord) -> None:
        """Keep it."""
        self.records.append(record)

    def is_ready(self) -> bool:
        """As the test says."""
        return self.ready

    def told(self) -> list[tuple[str, str, str, int]]:
        """The gist of all records."""
        return [(each.who, each.action, each.subject, each.code) for each in self.records]

"""Makes the audit of a server, and changes it when the configuration is reloaded."""

from __future__ import annotations

from tmqp_server.access.auditing import Auditor
from tmqp_server.config import ConfigError
from tmqp_server.hub.hub import Hub
from tmqp_server.io.audit_file import AuditFile
from tmqp_server.settings.audit import AuditSettings

__all__ = ["Audit"]


class Audit:
    """The audit of one server.

    :param hub: the hub whose commands are audited.
    :param offset_s: seconds to add to the engine's time to get Unix time.
    :raises ConfigError: when the file cannot be opened.

    Attributes: ``file``, with the last records; ``auditor``, which counts them.
    """

    def __init__(self, hub: Hub, settings: AuditSettings, offset_s: float) -> None:
        self.file = AuditFile(offset_s)
        self.auditor = Auditor(self.file)
        self._hub = hub
        self.use(settings)

    def use(self, settings: AuditSettings) -> None:
        """Use these settings from now on; the file is opened again.

        :raises ConfigError: when it cannot be opened; then nothing changes.
        """
        path = settings.file if settings.enabled else ""
        try:
            self.file.use(path, logs=settings.enabled and settings.log)
        except OSError as error:
            raise ConfigError(f"audit.file: cannot open {path}: {error.strerror}") from error
        self.auditor.change(required=settings.required)
        self._hub.auditor = self.auditor if settings.enabled else None

    def own(self, who: str, action: str, code: int, now: float) -> None:
        """Record what an operator did by a signal."""
        if self._hub.auditor is not None:
            self.auditor.own(who, action, "", code, now)

"""The commands about a data directory: ``check``, ``backup``, ``export`` and ``import``."""

from __future__ import annotations

from tmqp_server.commands.backup import backup
from tmqp_server.commands.check import check
from tmqp_server.commands.transfer import export_messages, import_messages

__all__ = ["backup", "check", "export_messages", "import_messages"]

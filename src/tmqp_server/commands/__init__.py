"""Commands beside the server: about a data directory, others' configurations, and keys."""

from __future__ import annotations

from tmqp_server.commands.backup import backup
from tmqp_server.commands.check import check
from tmqp_server.commands.curve_keys import curve_keys
from tmqp_server.commands.goms_config import goms_config
from tmqp_server.commands.transfer import export_messages, import_messages

__all__ = [
    "backup",
    "check",
    "curve_keys",
    "export_messages",
    "goms_config",
    "import_messages",
]

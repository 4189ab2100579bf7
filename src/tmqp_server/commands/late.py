"""Commands that do not need the server; each is imported when it is used."""

from __future__ import annotations

from typing import Final

import click

__all__ = ["LateCommands"]

_NAMES: Final = ("backup", "check", "curve-keys", "export", "goms-config", "import", "rebuild")


class LateCommands(click.Group):
    """A group of commands that also has those of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted([*super().list_commands(ctx), *_NAMES])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name, or None."""
        return _found(cmd_name) if cmd_name in _NAMES else super().get_command(ctx, cmd_name)


def _found(name: str) -> click.Command:
    if name == "backup":
        from tmqp_server.commands.backup import backup  # noqa: PLC0415 - see above

        return backup
    if name == "check":
        from tmqp_server.commands.check import check  # noqa: PLC0415 - see above

        return check
    if name == "curve-keys":
        from tmqp_server.commands.curve_keys import curve_keys  # noqa: PLC0415 - see above

        return curve_keys
    if name == "goms-config":
        from tmqp_server.commands.goms_config import goms_config  # noqa: PLC0415 - see above

        return goms_config
    if name == "rebuild":
        from tmqp_server.commands.rebuild import rebuild  # noqa: PLC0415 - see above

        return rebuild
    from tmqp_server.commands.transfer import (  # noqa: PLC0415 - see above
        export_messages,
        import_messages,
    )

    return export_messages if name == "export" else import_messages

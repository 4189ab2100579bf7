"""What the books of clients of foreign protocols are told by who watches the broker."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Append, Confirm, Deliver, Effect, Reply
from tmqp_server.engine.model.message import Message

__all__ = ["SideBooks"]


class SideBooks:
    """The books of one protocol; these note nothing."""

    def asked(self, command: Command) -> None:
        """A command is about to be carried out."""

    def sent(self, channel: str, message: Message, sessions: Sequence[int]) -> None:
        """The broker sends a message."""

    def kept(self, effect: Append) -> None:
        """A message is to be written to the disk."""

    def told(self, effect: Reply) -> None:
        """The broker answers a session."""

    def confirm(self, effect: Confirm) -> None:
        """The broker tells a producer what happened to its message."""

    def see(self, effect: Effect) -> None:
        """The broker has said something."""
        if isinstance(effect, Deliver):
            self.sent(effect.channel, effect.message, effect.sessions)
        elif isinstance(effect, Append):
            self.kept(effect)
        elif isinstance(effect, Reply):
            self.told(effect)
        elif isinstance(effect, Confirm):
            self.confirm(effect)

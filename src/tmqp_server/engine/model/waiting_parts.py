"""``WaitingPart``: some consecutive waiting messages, in order."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.model.message import Message

__all__ = ["WaitingPart"]


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingPart:
    """Messages in order: this base has the messages themselves, and its owner may change ``made``.

    Subclasses make them when they are needed, and take less memory until then (``made`` is None).
    """

    __slots__ = ("is_loose", "made")

    def __init__(self, made: list[Message] | None) -> None:
        self.made = made
        #: Its list is not shared, so it may be changed.
        self.is_loose = made is not None

    def messages(self) -> list[Message]:
        """The messages, always the same ones.  Do not change the list unless the part is loose."""
        made = self.made
        if made is None:
            made = self._make()
            self.made = made
        return made

    def take_in(self, message: Message, packed: bytes) -> bool:
        """Append a message; return False if the part does not accept it, as this base.

        :param packed: its wire form, see ``Wires.pack``.
        """
        return False

    def complete(self) -> None:
        """Accept no more messages, because the part is shared now."""

    def _make(self) -> list[Message]:
        """Make the messages; called once."""
        raise NotImplementedError

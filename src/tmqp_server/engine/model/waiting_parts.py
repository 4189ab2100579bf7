"""``WaitingPart``: some consecutive waiting messages, in order."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.model.message import Message

__all__ = ["WaitingPart"]


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingPart:
    """Messages in order: this base has them as they are, and whoever owns it may change ``made``.

    Others make them when somebody asks for them, and until then take less memory (``made`` is None
    then).
    """

    __slots__ = ("is_loose", "made")

    def __init__(self, made: list[Message] | None) -> None:
        self.made = made
        #: Its list is nobody else's, so that it may be changed.
        self.is_loose = made is not None

    def messages(self) -> list[Message]:
        """The messages, always the same ones.  Never change the list of a part that is not
        loose."""
        made = self.made
        if made is None:
            made = self._make()
            self.made = made
        return made

    def take_in(self, message: Message, packed: bytes) -> bool:
        """Let one more message wait here as the last one; False where nothing more comes in, as in
        this base.

        :param packed: its wire form, see ``Wires.pack``.
        """
        return False

    def complete(self) -> None:
        """Take no more in: somebody else looks at this part, too."""

    def _make(self) -> list[Message]:
        """The messages, asked for once."""
        raise NotImplementedError

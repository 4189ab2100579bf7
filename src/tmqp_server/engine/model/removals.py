"""``Removal``: a channel that is being removed, which may take several steps."""

from __future__ import annotations

from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session

__all__ = ["Removal"]


class Removal:
    """A channel that is being removed.

    *session*, if it is not None, is answered when the removal is over.  With *deserted*, the
    channel is removed because it is empty (F101): queues that are not empty stay, and so does
    everything else if a client joins meanwhile.  With ``unused``, it is removed because it has
    neither consumers nor feeds.  ``others`` are removed together with it, and must be over before
    the session is answered.  ``change`` is the ticket of the last change that the storage was asked
    to save, 0 for none.
    """

    __slots__ = (
        "channel",
        "session",
        "request",
        "deserted",
        "begun",
        "unused",
        "over",
        "others",
        "change",
    )

    def __init__(
        self, channel: Channel, session: Session | None, request: object, deserted: bool
    ) -> None:
        self.channel = channel
        self.session = session
        self.request = request
        self.deserted = deserted
        self.begun = False
        self.unused = False
        self.over = False
        self.others: list[Removal] | None = None
        self.change = 0

    def last_change(self) -> int:
        """The ticket of the last change of this removal and the others; 0 for none."""
        last = self.change
        for each in self.others or ():
            last = max(last, each.change)
        return last

    def waits(self) -> bool:
        """Whether other removals that belong to it are not over."""
        others = self.others
        if others is not None:
            for each in others:
                if not each.over:
                    return True
        return False

    def is_void(self) -> bool:
        """Whether its reason no longer applies."""
        channel = self.channel
        if self.unused and not self.begun:
            return channel.is_used()
        return self.deserted and (
            bool(channel.audience.subscriptions) or not channel.options.destroy_when_empty
        )

    def next_queue(self) -> Queue | None:
        """The next queue to close, in the order of creation; the channel must have one.

        It may be closed already, because other operations remove queues, too.  None if each has
        been examined once and that is enough.
        """
        leaving = self.channel.leaving
        if not leaving:
            if self.begun and self.deserted:
                return None
            leaving.extend(self.channel.queues.values())
            leaving.reverse()
        self.begun = True
        return leaving.pop()

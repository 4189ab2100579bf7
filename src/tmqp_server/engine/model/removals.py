"""``Removal``: a channel that is being removed, which may take several steps."""

from __future__ import annotations

from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session

__all__ = ["Removal"]


class Removal:
    """A channel that is being removed.

    *session* is told when it is over; None tells nobody.  With *deserted* the channel is removed
    because it is empty (F101): queues that are not are left, and so is the rest when somebody joins
    meanwhile.  With ``unused`` it is removed because it has neither consumers nor feeds any more.
    ``others`` are removed together with it and must be over before the session is told.
    ``change`` is the ticket of the last change that the storage was asked for, 0 for none.
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
        """The last change of it and the others that the storage was asked for; 0 for none."""
        last = self.change
        for each in self.others or ():
            last = max(last, each.change)
        return last

    def waits(self) -> bool:
        """Whether others that are removed together with it are not over."""
        others = self.others
        if others is not None:
            for each in others:
                if not each.over:
                    return True
        return False

    def is_void(self) -> bool:
        """Whether the reason for it has gone."""
        channel = self.channel
        if self.unused and not self.begun:
            return channel.is_used()
        return self.deserted and (
            bool(channel.audience.subscriptions) or not channel.options.destroy_when_empty
        )

    def next_queue(self) -> Queue | None:
        """The next queue, in the order of creation; the channel must have one.

        It may be closed already, for others remove queues as well.  None when each has been looked
        at once and that is enough.
        """
        leaving = self.channel.leaving
        if not leaving:
            if self.begun and self.deserted:
                return None
            leaving.extend(self.channel.queues.values())
            leaving.reverse()
        self.begun = True
        return leaving.pop()

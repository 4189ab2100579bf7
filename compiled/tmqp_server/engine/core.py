"""Owns what the parts of the broker share during a step: the tables, the books, the effects.

One ``Core`` belongs to one ``Broker``.  A step sets ``out`` to a new list, refills ``budget`` and
lets one of the parts work; each appends its effects and takes its units of work from the budget.
When the budget is used up, whoever has work left puts it into ``runnable``, ``awake``, ``pulls`` or
``trash`` and the broker's next deadline is at once.
"""

from __future__ import annotations

from collections import deque

from tmqp_server.engine.channels import Channel, ChannelTable
from tmqp_server.engine.delivery import HandlerRegistry, QueueFacts
from tmqp_server.engine.effects import Effect
from tmqp_server.engine.events import (
    ChannelFact,
    ClientFact,
    QueueFact,
    SubscriptionFact,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.message import Message
from tmqp_server.engine.notices import Notices
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.engine.queues import Queue, Trash
from tmqp_server.engine.sessions import Audience, Pulling, Session
from tmqp_server.engine.timers import Wakeups

__all__ = ["Core", "PendingSave"]


class PendingSave:
    """A message the storage was asked to keep, and the queue it was in."""

    __slots__ = ("message", "queue")

    def __init__(self, message: Message, queue: Queue) -> None:
        self.message = message
        self.queue = queue


class Core:
    """The state that the parts of one broker share."""

    __slots__ = (
        "limits",
        "options",
        "channels",
        "sessions",
        "clients",
        "by_name",
        "by_type",
        "notices",
        "now",
        "out",
        "budget",
        "wakeups",
        "runnable",
        "awake",
        "pulls",
        "trash",
        "tickets",
        "last_ticket",
        "total_bytes",
        "confirms_skipped",
        "dead_lettered",
        "stray_commands",
        "unknown_acks",
        "negative_unknown_acks",
        "unknown_tickets",
        "directs_skipped",
        "answers_dropped",
    )

    def __init__(
        self, limits: EngineLimits, options: BrokerOptions, handlers: HandlerRegistry
    ) -> None:
        self.limits = limits
        self.options = options
        self.channels = ChannelTable(limits, handlers)
        #: By number, in the order of connecting.
        self.sessions: dict[int, Session] = {}
        #: By client id.
        self.clients: dict[str, Session] = {}
        #: By client name and by client type, each in the order of connecting (F114).
        self.by_name: dict[str, dict[int, Session]] = {}
        self.by_type: dict[str, dict[int, Session]] = {}
        self.notices = Notices(options.events)
        #: The time of this step, in monotonic seconds.
        self.now = 0.0
        self.out: list[Effect] = []
        #: Units of work left in this step.
        self.budget = 0
        self.wakeups = Wakeups()
        #: Queues with messages that could be sent, but for the budget.
        self.runnable: deque[Queue] = deque()
        #: Lines of queues whose audience can take messages again.
        self.awake: deque[deque[QueueFacts]] = deque()
        #: Pulls that can go on.
        self.pulls: deque[Pulling] = deque()
        self.trash: deque[Trash] = deque()
        self.tickets: dict[int, PendingSave] = {}
        self.last_ticket = 0
        #: Bytes of all messages that are not settled, see Queue.bytes.
        self.total_bytes = 0
        #: Confirms not made because the producer had gone (F77).
        self.confirms_skipped = 0
        #: Messages moved to a dead-letter queue.
        self.dead_lettered = 0
        #: Commands of sessions the engine does not know, such as arrive after a Disconnect.
        self.stray_commands = 0
        #: Acknowledges for queues that do not exist (F95); for others see Queue.unknown_acks.
        self.unknown_acks = 0
        #: Those of them that were negative.
        self.negative_unknown_acks = 0
        #: Answers of the storage to nothing that was asked.
        self.unknown_tickets = 0
        #: Direct messages not sent to a client because its outbound buffer was full.
        self.directs_skipped = 0
        #: Responses and acknowledges not passed on: no such client, or its buffer stayed full.
        self.answers_dropped = 0

    def enlist(self, session: Session) -> None:
        """Make a session known."""
        self.sessions[session.number] = session
        self.clients[session.client_id] = session
        if session.name:
            _enter(self.by_name, session.name, session)
        if session.client_type:
            _enter(self.by_type, session.client_type, session)

    def strike(self, session: Session) -> None:
        """Forget a session, and that it wanted to be told of anything."""
        del self.sessions[session.number]
        del self.clients[session.client_id]
        if session.name:
            _leave(self.by_name, session.name, session)
        if session.client_type:
            _leave(self.by_type, session.client_type, session)
        self.notices.forget_session(session)

    def schedule(self, queue: Queue) -> None:
        """Let *queue* be worked on in the next ``on_deadline``."""
        if not queue.runnable:
            queue.runnable = True
            self.runnable.append(queue)

    def schedule_pull(self, pulling: Pulling) -> None:
        """Let a pull go on in the next ``on_deadline``."""
        if not pulling.runnable:
            pulling.runnable = True
            self.pulls.append(pulling)

    def release_pull(self, queue: Queue) -> None:
        """Let the first pull that waits for the acknowledge of *queue* go on, if it need not."""
        if queue.parked and queue.held is None:
            pulling = queue.parked.popleft()
            pulling.parked = False
            self.schedule_pull(pulling)

    def arm(self, queue: Queue) -> None:
        """Have *queue* woken when something must happen in it by itself."""
        due = queue.next_due()
        if due < queue.timer.wake_at:
            self.wakeups.arm(queue.timer, due)

    def wake_audience(self, audience: Audience) -> None:
        """Let the queues in an audience's line try again before the step ends."""
        if audience.line:
            self.awake.append(audience.line)
            audience.line = deque()

    def notify_client(self, event: int, session: Session) -> None:
        """Tell that a client connected or disconnected."""
        if self.notices.mask & event:
            fact = ClientFact(session.client_id, session.name, session.client_type)
            self.notices.tell(self.out, event, fact)

    def notify_channel(self, event: int, channel: Channel) -> None:
        """Tell that a channel was created or removed."""
        if self.notices.mask & event:
            active = len(channel.audience.subscriptions)
            fact = ChannelFact(channel.name, active, channel.options.client_limit)
            self.notices.tell(self.out, event, fact)

    def notify_subscription(self, event: int, channel: Channel, session: Session) -> None:
        """Tell that a client joined or left a channel."""
        if self.notices.mask & event:
            fact = SubscriptionFact(
                channel.name, session.client_id, session.name, session.client_type
            )
            self.notices.tell(self.out, event, fact, channel.key)

    def notify_queue(self, event: int, queue: Queue, status: int) -> None:
        """Tell that a queue was created, updated or removed."""
        if self.notices.mask & event:
            fact = QueueFact(
                queue.channel_name,
                queue.queue_id,
                queue.options.tag,
                status,
                queue.high_count,
                queue.regular_count,
            )
            self.notices.tell(self.out, event, fact, queue.channel_name.lower())


def _enter(groups: dict[str, dict[int, Session]], name: str, session: Session) -> None:
    group = groups.get(name)
    if group is None:
        groups[name] = {session.number: session}
    else:
        group[session.number] = session


def _leave(groups: dict[str, dict[int, Session]], name: str, session: Session) -> None:
    group = groups[name]
    del group[session.number]
    if not group:
        del groups[name]

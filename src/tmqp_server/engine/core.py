"""Owns what the parts of the broker share during a step: the tables, the books, the effects.

One ``Core`` belongs to one ``Broker``.  A step sets ``out`` to a new list, refills ``budget`` and
lets one of the parts work; each appends its effects and takes its units of work from the budget.
When the budget is used up, whoever has work left puts it into ``runnable``, ``awake``, ``pulls``,
``trash`` or ``removals`` and the broker's next deadline is at once.
"""

from __future__ import annotations

from collections import deque

from tmqp_server.engine.channels import Channel, ChannelTable
from tmqp_server.engine.delivery import HandlerRegistry, QueueFacts
from tmqp_server.engine.effects import Effect
from tmqp_server.engine.events import (
    CLIENT_CONNECTED,
    NODE_CONNECTED,
    NODE_DISCONNECTED,
    ChannelFact,
    ClientFact,
    NodeFact,
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

__all__ = ["Core", "Master", "PendingSave", "Removal"]


class Master:
    """A master of this server; ``since`` is when it was connected, in monotonic seconds."""

    __slots__ = ("node_id", "host", "connected", "since")

    def __init__(self, node_id: str, host: str, connected: bool, since: float) -> None:
        self.node_id = node_id
        self.host = host
        self.connected = connected
        self.since = since


class PendingSave:
    """A message the storage was asked to keep, and the queue it was in."""

    __slots__ = ("message", "queue")

    def __init__(self, message: Message, queue: Queue) -> None:
        self.message = message
        self.queue = queue


class Removal:
    """A channel that is being removed.

    *session* is told when it is over; None tells nobody.  With *deserted* it ends, and leaves what
    is left, when somebody joins meanwhile.
    """

    __slots__ = ("channel", "session", "request", "deserted", "left")

    def __init__(
        self, channel: Channel, session: Session | None, request: object, deserted: bool
    ) -> None:
        self.channel = channel
        self.session = session
        self.request = request
        self.deserted = deserted
        #: The queues still to be closed, the next one last.
        self.left: list[Queue] = []

    def is_void(self) -> bool:
        """Whether the reason for it has gone."""
        return self.deserted and bool(self.channel.audience.subscriptions)

    def next_queue(self) -> Queue:
        """The next queue, in the order of creation; the channel must have one.

        It may be closed already, for others remove queues as well.
        """
        if not self.left:
            self.left = list(self.channel.queues.values())
            self.left.reverse()
        return self.left.pop()


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
        "removals",
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
        "takes_nodes",
        "shares_decisions",
        "masters",
        "decisions_applied",
        "decisions_unknown",
    )

    def __init__(
        self, limits: EngineLimits, options: BrokerOptions, handlers: HandlerRegistry
    ) -> None:
        self.limits = limits
        self.options = options
        self.channels = ChannelTable(limits, handlers, options)
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
        #: Channels with so many queues that a step does not close them all.
        self.removals: deque[Removal] = deque()
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
        #: Whether a session may be a node; else its Connect says so in vain.
        self.takes_nodes = False
        #: Whether nodes tell each other what their queues are done with (F63).
        self.shares_decisions = False
        #: The masters of this server, by the name it has for them.
        self.masters: dict[str, Master] = {}
        #: Decisions of other nodes that removed a message here, or keep it from being sent again.
        self.decisions_applied = 0
        #: Those about messages that were not there (any more).
        self.decisions_unknown = 0

    def enlist(self, session: Session) -> None:
        """Make a session known."""
        self.sessions[session.number] = session
        self.clients[session.client_id] = session
        if session.node:
            return  # no client: nothing is addressed to it
        if session.name:
            _enter(self.by_name, session.name, session)
        if session.client_type:
            _enter(self.by_type, session.client_type, session)

    def strike(self, session: Session) -> None:
        """Forget a session, and that it wanted to be told of anything."""
        del self.sessions[session.number]
        del self.clients[session.client_id]
        if session.node:
            return
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
        """Tell that a client, or a slave, connected or disconnected."""
        if session.node:
            node_event = NODE_CONNECTED if event == CLIENT_CONNECTED else NODE_DISCONNECTED
            fact_of_node = NodeFact(session.client_id, session.name, session.host, True)
            self.notify_node(node_event, fact_of_node)
        elif self.notices.mask & event:
            fact = ClientFact(session.client_id, session.name, session.client_type)
            self.notices.tell(self.out, event, fact)

    def notify_node(self, event: int, fact: NodeFact) -> None:
        """Tell that a node connected or disconnected."""
        if self.notices.mask & event:
            self.notices.tell(self.out, event, fact)

    def notify_channel(self, event: int, channel: Channel) -> None:
        """Tell that a channel was created or removed."""
        if self.notices.mask & event:
            active = len(channel.audience.subscriptions)
            fact = ChannelFact(channel.name, active, channel.options.client_limit)
            self.notices.tell(self.out, event, fact)
            self.notices.tell_handler(self.out, event, fact, channel.key)

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

"""The things of the model broker: what a message, a queue, a channel, a client are to it.

Plain lists, dicts and numbers: slow, and short enough to be believed.  Nothing here comes from the
engine; the words are the specification's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = [
    "BROADCAST",
    "CACHE",
    "COUNTS",
    "DEFAULTS",
    "PAUSED",
    "PULL",
    "PUSH",
    "ROUND_ROBIN",
    "SENDING",
    "STOPPED",
    "Asked",
    "Channel",
    "Client",
    "Letter",
    "Line",
    "Member",
    "Word",
]

#: One thing the broker says: a kind, and what it is about.
Word = tuple[object, ...]

# F72.
BROADCAST, PUSH, ROUND_ROBIN, PULL, CACHE, PAUSED, STOPPED = range(7)
SENDING = (BROADCAST, PUSH, ROUND_ROBIN)

#: F73, and what the server's documentation adds: 20 put-backs, no dead letters.
DEFAULTS: dict[str, object] = {
    "status": PUSH,
    "request_acknowledge": True,
    "acknowledge_timeout_ms": 15_000,
    "message_timeout_ms": 0,
    "use_message_id": True,
    "wait_for_acknowledge": False,
    "hide_client_names": False,
    "send_only_first_acquirer": False,
    "skip_slow_consumers": False,
    "message_limit": 0,
    "message_size_limit": 0,
    "bytes_limit": 0,
    "disk_limit_bytes": 0,
    "when_full": "refuse",
    "expired_to_dead_letter": False,
    "put_back_limit": 20,
    "dead_letter": None,
    "delivery_handler": "ack-if-asked",
    "tag": None,
}

#: What queue information counts (F68, F100), beside what lies in the queue.
COUNTS = (
    "accepted",
    "done",
    "expired",
    "dead",
    "cleared",
    "dropped",
    "displaced",
    "received_messages",
    "sent_messages",
    "deliveries",
    "negative_acks",
    "acks",
    "unknown_acks",
    "ack_timeouts",
    "saved_messages",
    "removed_messages",
    "errors",
    "refused",
    "requeued",
    "released",
)


@dataclass(eq=False)
class Client:
    """One connection."""

    number: int
    client_id: str
    name: str | None
    kind: str | None
    alive: bool = True
    blocked: bool = False
    unknown_acks: int = 0
    #: It wants to hear of deliveries that are its own no more.
    hears: bool = False
    #: Its direct messages that wait for an answer.
    questions: list[Question] = field(default_factory=list)


@dataclass(eq=False)
class Question:
    """A direct message that asked for an answer, and who may still give which."""

    message_id: str
    until: float
    asks_response: bool
    acknowledges: set[int]
    responses: set[int]
    #: How many could answer when it was asked last.
    asked: int


@dataclass(eq=False)
class Letter:
    """One message."""

    message_id: str
    producer: Client
    spelling: str
    queue_id: int
    high: bool
    wants: bool
    size: int
    wire: object
    number: int
    expires: float | None = None
    attempts: int = 0
    put_backs: int = 0
    hops: int = 0
    told: bool = False
    ticket: str = ""
    saving: bool = False
    #: A confirm that the storage has to release (rule 1).
    promise: Word = ()
    saved: bool = False
    #: Its event waits for the storage as well.
    untold: bool = False
    #: Who has it and has not answered, and of the present sending: when, answered, where back to.
    holders: list[Client] = field(default_factory=list)
    #: To how many it went in the step in which it was pushed; -1 when nobody asked.
    receivers: int = -1
    #: How many had it when it was sent last.
    sent_to: int = 0
    sent_at: float = 0.0
    answered: bool = False
    back: str = ""
    failed: bool = False
    #: It was given back: so that it does not count, and not to be sent before then.
    uncounted: bool = False
    due: float = 0.0
    #: When those who have their own time must have answered; empty as long as nobody had one.
    dues: dict[Client, float] = field(default_factory=dict)
    #: Somebody who is there was silent in this sending.
    silent: bool = False


@dataclass(eq=False)
class Asked:
    """A pull under way."""

    client: Client
    request: object
    line: Line
    count: int
    newest_first: bool
    clear_high: bool
    clear_regular: bool
    info: bool
    sent: int = 0
    over: bool = False


@dataclass(eq=False)
class Line:
    """One queue."""

    channel: Channel
    queue_id: int
    options: dict[str, object]
    high: list[Letter] = field(default_factory=list)
    regular: list[Letter] = field(default_factory=list)
    #: Not yet to be sent, each with its time.
    deferred: list[tuple[float, Letter]] = field(default_factory=list)
    flights: list[Letter] = field(default_factory=list)
    held: Letter | None = None
    turn: int = 0
    letters: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    pulls: list[Asked] = field(default_factory=list)
    #: Of these the ones that wait for an acknowledge, in the order they began to.
    parked: list[Asked] = field(default_factory=list)

    @property
    def place(self) -> tuple[str, int]:
        """What this queue is called in words."""
        return self.channel.name, self.queue_id

    def is_on(self, option: str) -> bool:
        """Whether an option is set."""
        return bool(self.options[option])

    def amount(self, option: str) -> int:
        """An option that is a number."""
        value = self.options[option]
        assert isinstance(value, int)
        return value

    def waiting(self) -> list[Letter]:
        """What waits, the next one first (F85)."""
        return self.high + self.regular

    def live(self) -> list[Letter]:
        """Every message that has not come to an end."""
        return self.waiting() + [letter for _, letter in self.deferred] + self.flights

    def disk_bytes(self) -> int:
        """What the storage has of it, or was asked to keep."""
        return sum(letter.size for letter in self.live() if letter.ticket)

    def has_disk_for(self, letter: Letter) -> bool:
        """Whether one more message may be kept."""
        most = self.amount("disk_limit_bytes")
        return not most or self.disk_bytes() + letter.size <= most

    def take(self, letter: Letter) -> None:
        """Take a waiting message out."""
        (self.high if letter.high else self.regular).remove(letter)

    def only_one(self) -> bool:
        """Whether a message goes to one consumer."""
        return self.options["status"] == ROUND_ROBIN or self.is_on("send_only_first_acquirer")

    def takers(self) -> list[Member]:
        """Who may get messages: an exclusive consumer alone, where each goes to one."""
        members = self.channel.members
        alone = self.channel.options["single_consumer"]
        wanting = [member for member in members if alone or member.exclusive]
        if not wanting or not self.only_one():
            return members
        highest = max(member.priority for member in wanting)
        return [member for member in wanting if member.priority == highest][:1]

    def snapshot(self) -> dict[str, object]:
        """What queue information tells."""
        shown: dict[str, object] = {name: self.counts[name] for name in COUNTS}
        shown["priority_messages"] = len(self.high)
        shown["messages"] = len(self.regular)
        shown["deferred"] = len(self.deferred)
        shown["in_flight"] = len(self.flights)
        shown["timeout_messages"] = self.counts["expired"]
        shown["disk_bytes"] = self.disk_bytes()
        return shown

    def imbalance(self) -> int:
        """Accepted messages that are nowhere (C6)."""
        ends = sum(self.counts[end] for end in ("done", "expired", "dead", "cleared", "dropped"))
        return self.counts["accepted"] - len(self.live()) - ends


@dataclass(eq=False)
class Member:
    """A client that has joined; ``credit`` and ``window`` are -1 without a bound."""

    client: Client
    credit: int
    window: int = -1
    #: Its own time to answer in seconds: 0 for the queue's, infinite as long as it is there.
    wait_s: float = 0.0
    #: What becomes of what it has when it goes: start, end, or nothing at once.
    returns: str = ""
    priority: int = 0
    #: It wants all that goes to one consumer.
    exclusive: bool = False
    #: What it has unanswered, in the order of sending; None without terms.
    holds: list[tuple[Line, Letter]] | None = None

    def can_take(self) -> bool:
        """Whether it may be sent a message now."""
        full = self.holds is not None and 0 <= self.window <= len(self.holds)
        return not self.client.blocked and self.credit != 0 and not full

    def drop(self, letter: Letter) -> None:
        """It has a message no longer."""
        if self.holds is not None:
            self.holds = [each for each in self.holds if each[1] is not letter]


@dataclass(eq=False)
class Channel:
    """One channel."""

    name: str
    options: dict[str, object]
    queues: dict[int, Line] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    #: Whose connection it ends with.
    owner: Client | None = None
    #: When it is looked at next, and whether somebody has used it since it was looked at last.
    look_at: float | None = None
    used: bool = False

    def look_again(self, now: float) -> None:
        """It is looked at again when its idle timeout is over."""
        timeout_ms = self.options["idle_timeout_ms"]
        assert isinstance(timeout_ms, int)
        self.look_at = now + timeout_ms / 1_000 if timeout_ms else None
        self.used = False

    def member(self, client: Client) -> Member | None:
        """The client's membership, if it has joined."""
        for member in self.members:
            if member.client is client:
                return member
        return None

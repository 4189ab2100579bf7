"""The account of the memory that a broker takes, and the charge for each object in it.

``max_total_bytes`` limits one account.  Messages are charged their bytes and an overhead
(``MESSAGE_OVERHEAD_BYTES``); everything else that a command can create is *state*: connections,
sessions, channels, queues, subscriptions, routers, cursors and so on.  The code that creates an
object first checks that there is room and charges it, and refunds the same amount when the object
is removed.

*Refusals.* An object that does not fit is refused before it is created: with 503, because the
server is short of memory and no limit of the client is reached; a connection with 482, as when
there are too many.

*A reserve.* Connections, sessions, subscriptions and pulls may take a sixteenth more than the
limit, and at least 256 KiB. Messages can fill all of the memory; without the reserve, no consumer
could then connect and make room.  Deliveries in flight to several consumers are charged, too, but
never refused, so they can exceed the limit; then pushes are refused until consumers have
acknowledged.  Feeds may take half of the reserve, because moving messages makes room: without it, a
queue that fills the memory and has no consumer could never get a feed.

The amounts were measured as resident memory, interpreted and compiled, and the larger one applies;
``tests/tmqp_server/engine/test_memory.py`` measures them again.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import RESULT_BUSY, RESULT_LIMIT_EXCEEDED
from tmqp_server.engine.options import BindingOptions, ChannelOptions, QueueOptions

__all__ = [
    "BROWSE_BYTES",
    "BUCKET_BYTES",
    "CONNECTION_BYTES",
    "DEFERRAL_BYTES",
    "ENDED_SESSION_BYTES",
    "GRIP_BYTES",
    "MAX_SPELLINGS",
    "MESSAGE_OVERHEAD_BYTES",
    "OWNER_BYTES",
    "PENDING_BYTES",
    "PENDING_CURSOR_BYTES",
    "PULL_BYTES",
    "QUEUE_OPTIONS",
    "SUBSCRIPTION_BYTES",
    "TLS_BYTES",
    "Books",
    "batch_bytes",
    "binding_bytes",
    "cell_bytes",
    "channel_bytes",
    "cursor_bytes",
    "feed_bytes",
    "holders_bytes",
    "listening_bytes",
    "lock_bytes",
    "mark_bytes",
    "plain_question_bytes",
    "properties_bytes",
    "question_bytes",
    "queue_bytes",
    "router_bytes",
    "session_bytes",
    "shelved_bytes",
    "space_bytes",
    "text_bytes",
    "transaction_bytes",
    "watch_bytes",
]

#: What a message in memory takes beyond its own bytes: 410 to 470 measured for messages of 100 and
#: of 2,000 bytes, compiled and interpreted.
MESSAGE_OVERHEAD_BYTES: Final = 512
#: A text of ASCII, without its characters.
_TEXT_BYTES: Final = 64
#: A connection: its socket, tasks, protocol and door session.
CONNECTION_BYTES: Final = 16_384
#: What TLS adds to it: the state of OpenSSL, and its buffers once they have held large messages.
TLS_BYTES: Final = 49_152
_SESSION_BYTES: Final = 768
#: What is left of a session that has ended, while deliveries to it are in flight.
ENDED_SESSION_BYTES: Final = 512
#: What a session's name costs beyond the text, and its type: an entry in a table of groups.
_GROUP_BYTES: Final = 320
_PROPERTY_BYTES: Final = 128
#: A channel, its audience and its tables.
_CHANNEL_BYTES: Final = 1_536
_CHANNEL_OPTIONS_BYTES: Final = 512
#: A channel's place in the table of its owner, and the timer of one that may be idle.
_OWNED_BYTES: Final = 192
_IDLE_BYTES: Final = 256
_QUEUE_BYTES: Final = 3_712
_QUEUE_OPTIONS_BYTES: Final = 320
#: Spellings of its name that are remembered of a channel, and what each takes beyond the text.
MAX_SPELLINGS: Final = 8
_SPELLING_BYTES: Final = 128
#: One queue id in a list of those that a channel allows.
_QUEUE_ID_BYTES: Final = 40
#: A client's place in the audience of a channel.
SUBSCRIPTION_BYTES: Final = 512
#: A subscription to an event.
_LISTENING_BYTES: Final = 768
#: The entries of a deferred message in the order of time and in the table of ids.
DEFERRAL_BYTES: Final = 320
#: The same for a message that is on disk only, without its id.
_SHELVED_BYTES: Final = 384
#: A key locked by a message, a bucket with an owner, and an owner of buckets: each with the lane of
#: messages that may wait for it.
_LOCK_BYTES: Final = 1_664
BUCKET_BYTES: Final = 1_920
OWNER_BYTES: Final = 1_920
#: What ``Grip`` records about a message that is or has been in flight.
GRIP_BYTES: Final = 256
#: A browse, without the copied lists of the queue.
BROWSE_BYTES: Final = 2_048
#: A pull that waits, without its request.
PULL_BYTES: Final = 1_024
#: Stands for a limit that a queue's options set, where the name of a limit is expected.
QUEUE_OPTIONS: Final = "queue_options"
#: A feed: itself, the consumer that it is, and its places in the lists of both queues.
_FEED_BYTES: Final = 768
_ROUTER_BYTES: Final = 320
_BINDING_BYTES: Final = 448
#: An entry of a list or table: a queue of a binding or of a held answer.
_PLACE_BYTES: Final = 128
#: A table of the consumers that have a message in flight, and each of them.
_HOLDERS_BYTES: Final = 128
_HOLDER_BYTES: Final = 64
#: A direct message that waits for answers.
_QUESTION_BYTES: Final = 448
_CURSOR_BYTES: Final = 160
#: A change of the topology that the storage has not answered for.
PENDING_BYTES: Final = 1_024
#: Each further cursor of such a change.
PENDING_CURSOR_BYTES: Final = 192
#: An answer that is held until there is something new.
_WATCH_BYTES: Final = 2_048
_TRANSACTION_BYTES: Final = 1_536
#: A batch that the storage has not answered for, and each part of it beyond the message.
_BATCH_BYTES: Final = 1_024
_BATCH_PART_BYTES: Final = 640
#: A cell, its places in the tables of its space and in the wheel, and a space.
_CELL_BYTES: Final = 768
_SPACE_BYTES: Final = 8_192
#: The last epoch of an application.
_MARK_BYTES: Final = 320

#: Clients may exceed the limit by one part in so many, so that they can empty queues.
_RESERVE: Final = 16
_LEAST_RESERVE_BYTES: Final = 262_144


class Books:
    """The memory account: ``message_bytes`` for messages, ``state_bytes`` for everything else, and
    the limit ``most_bytes``."""

    __slots__ = (
        "limits_reached",
        "message_bytes",
        "most_bytes",
        "state_bytes",
        "_most_to_move",
        "_most_with_reserve",
        "_short_of",
    )

    def __init__(self, max_total_bytes: int) -> None:
        #: How often something was refused for a limit, by the limit's name.
        self.limits_reached: dict[str, int] = {}
        self._short_of = ""
        #: Of all messages that are not settled, see Queue.bytes; ``flights`` keeps it.
        self.message_bytes = 0
        self.state_bytes = 0
        self.limit_memory(max_total_bytes)

    def limit_memory(self, max_total_bytes: int) -> None:
        """Set the limit, and with it the reserve for what makes room."""
        self.most_bytes = max_total_bytes
        reserve = max(max_total_bytes // _RESERVE, _LEAST_RESERVE_BYTES)
        self._most_to_move = max_total_bytes + reserve // 2
        self._most_with_reserve = max_total_bytes + reserve

    def has_room(self, size: int) -> bool:
        """Whether something of *size* bytes can be created."""
        return self.message_bytes + self.state_bytes + size <= self.most_bytes

    def has_room_for_client(self, size: int) -> bool:
        """The same, with the reserve, for what consumers need to make room: connections,
        subscriptions, pulls."""
        return self.message_bytes + self.state_bytes + size <= self._most_with_reserve

    def has_room_to_move(self, size: int) -> bool:
        """The same, with half of the reserve, for feeds, and for copies of messages that make room
        where they are now."""
        return self.message_bytes + self.state_bytes + size <= self._most_to_move

    @property
    def total_bytes(self) -> int:
        """All memory that is charged."""
        return self.message_bytes + self.state_bytes

    # --- Limits that were reached ----------------------------------------------------------------

    def reached(self, limit: str, code: int = RESULT_LIMIT_EXCEEDED) -> int:
        """Count a refusal because of the limit of this name; return *code*."""
        self.limits_reached[limit] = self.limits_reached.get(limit, 0) + 1
        return code

    def no_room(self) -> int:
        """Count a refusal because the memory is full; return its result code."""
        return self.reached("max_total_bytes", RESULT_BUSY)

    def short_of(self, limit: str, code: int = RESULT_LIMIT_EXCEEDED) -> int:
        """Note the limit that a message would exceed; return *code*.  Only :meth:`count_short`
        counts the refusal, because the push may wait for room, or other messages may make way."""
        self._short_of = limit
        return code

    def count_short(self, code: int) -> int:
        """Count the refusal of a message for the limit that was noted last; return *code*."""
        if code in (RESULT_LIMIT_EXCEEDED, RESULT_BUSY) and self._short_of:
            self.reached(self._short_of)
        self._short_of = ""
        return code

    def charge(self, size: int) -> None:
        """Take *size* bytes for something that was created."""
        self.state_bytes += size

    def refund(self, size: int) -> None:
        """Give back what was charged for something that was removed."""
        self.state_bytes -= size


def text_bytes(text: str | None) -> int:
    """What a text takes in memory, at most."""
    if not text:
        return 0
    if text.isascii():
        return _TEXT_BYTES + len(text)
    return 80 + 4 * len(text)


def properties_bytes(properties: dict[str, str] | None) -> int:
    """What the further properties of a client take."""
    total = 0
    if properties:
        for key, value in properties.items():
            total += _PROPERTY_BYTES + text_bytes(key) + text_bytes(value)
    return total


def session_bytes(
    client_id: str, name: str | None, client_type: str | None, properties: dict[str, str] | None
) -> int:
    """What a session takes; its connection is another account."""
    size = _SESSION_BYTES + text_bytes(client_id) + properties_bytes(properties)
    if name:
        size += _GROUP_BYTES + text_bytes(name)
    if client_type:
        size += _GROUP_BYTES + text_bytes(client_type)
    return size


def _options_bytes(options: QueueOptions) -> int:
    size = _QUEUE_OPTIONS_BYTES + text_bytes(options.tag)
    if options.dead_letter is not None:
        size += _PLACE_BYTES + text_bytes(options.dead_letter[0])
    return size


def channel_bytes(name: str, options: ChannelOptions) -> int:
    """What a channel takes without its queues and subscriptions."""
    size = _CHANNEL_BYTES + _CHANNEL_OPTIONS_BYTES + 2 * text_bytes(name)
    size += MAX_SPELLINGS * (_SPELLING_BYTES + text_bytes(name))
    if options.needs_owner():
        size += _OWNED_BYTES
    if options.idle_timeout_ms:
        size += _IDLE_BYTES
    if options.allowed_queues is not None:
        size += _QUEUE_ID_BYTES * len(options.allowed_queues)
    return size + _options_bytes(options.queue)


def queue_bytes(options: QueueOptions) -> int:
    """What an empty queue takes."""
    return _QUEUE_BYTES + _options_bytes(options)


def feed_bytes(target: str, text: str) -> int:
    """What a feed takes, by the name of its target and the text of its filter."""
    return _FEED_BYTES + text_bytes(target) + 2 * text_bytes(text)


def shelved_bytes(message_id: str) -> int:
    """What a deferred message on disk only takes."""
    return _SHELVED_BYTES + text_bytes(message_id)


def lock_bytes(key: str) -> int:
    """What a locked key takes."""
    return _LOCK_BYTES + text_bytes(key)


def router_bytes(name: str) -> int:
    """What a router takes without its bindings."""
    return _ROUTER_BYTES + text_bytes(name)


def binding_bytes(options: BindingOptions) -> int:
    """What a binding takes."""
    return _BINDING_BYTES + text_bytes(options.name) + text_bytes(options.target)


def listening_bytes(channel: str) -> int:
    """What a subscription to an event takes, with the client's spelling of the channel."""
    return _LISTENING_BYTES + text_bytes(channel)


def holders_bytes(count: int) -> int:
    """What the table of so many consumers that have a message in flight takes."""
    return _HOLDERS_BYTES + _HOLDER_BYTES * count


def question_bytes(message_id: str, receivers: int) -> int:
    """What a direct message takes while it waits for answers from so many clients."""
    return _QUESTION_BYTES + text_bytes(message_id) + _HOLDER_BYTES * receivers


def plain_question_bytes(count: int, characters: int) -> int:
    """The same for *count* messages, each to one client, whose ids are ASCII and have so many
    characters in total."""
    return (_QUESTION_BYTES + _TEXT_BYTES + _HOLDER_BYTES) * count + characters


def cursor_bytes(name: str) -> int:
    """What a cursor takes in one queue."""
    return _CURSOR_BYTES + text_bytes(name)


def batch_bytes(parts: int, size: int) -> int:
    """What a batch of so many parts takes until it is saved; *size* is the bytes of its
    acknowledgements."""
    return _BATCH_BYTES + _BATCH_PART_BYTES * parts + size


def transaction_bytes(application: str) -> int:
    """What a transaction takes without what is staged in it."""
    return _TRANSACTION_BYTES + text_bytes(application)


def mark_bytes(application: str) -> int:
    """What the record of the last epoch of an application takes."""
    return _MARK_BYTES + text_bytes(application)


def watch_bytes(filter: str, queues: int) -> int:
    """What a held answer about so many queues takes."""
    return _WATCH_BYTES + text_bytes(filter) + _PLACE_BYTES * queues


def cell_bytes(key: bytes, value: bytes) -> int:
    """What a cell takes."""
    return _CELL_BYTES + len(key) + len(value)


def space_bytes(name: str) -> int:
    """What a space takes without its cells."""
    return _SPACE_BYTES + text_bytes(name)

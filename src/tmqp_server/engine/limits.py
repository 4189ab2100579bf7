"""Owns every bound of the engine: one documented field each, all of them enforced.

A bound that is reached is an answer (482, or 503 where the whole server is meant), never an
exception and never a closed connection (F43, F64).  A test walks the fields: at the limit works,
one above is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from tmqp.constants import MAX_NAME_BYTES, MAX_QUEUE_ID

__all__ = ["MESSAGE_OVERHEAD_BYTES", "EngineLimits"]

#: What a message in memory takes beyond its own bytes: 410 to 470 measured for messages of 100 and
#: of 2,000 bytes, compiled and interpreted.
MESSAGE_OVERHEAD_BYTES: Final = 512


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """What all clients together, and each of them, may cost.

    :raises ValueError: when a value is not a positive whole number (for another type a compiled
        build raises TypeError) or past what the protocol knows.
    """

    max_sessions: int = 10_000
    """Clients connected at one time; one more is refused with 482 (F33, F64)."""

    max_channels: int = 10_000
    """Channels; creating one more is answered with 482."""

    max_queues_per_channel: int = 1_000
    """Queues in one channel; creating one more is answered with 482.  A queue id has 16 bits, so
    65,536 is the most there can be.  How many queues there can be in all, ``max_total_bytes`` says:
    260,000 empty ones."""

    max_list_items: int = 10_000
    """Items in the answer to one list of channels, queues, consumers or clients; more are answered
    with 482 and not collected.  For every 32 queue ids that it shows, a channel counts as one item
    more."""

    max_subscriptions_per_session: int = 1_000
    """Channels one client may have joined; joining one more is answered with 482."""

    max_routers: int = 1_000
    """Routers; creating one more is answered with 482."""

    max_bindings_per_router: int = 100
    """Bindings of one router; adding one more is answered with 482."""

    max_queues_per_publish: int = 1_000
    """Queues that tag bindings bring one message for a router into; a binding that would bring it
    into more does not work, and the router goes on to the next."""

    max_clients_per_publish: int = 10_000
    """Clients that direct bindings bring one message for a router to; a binding that would bring it
    to more does not work, and the router goes on to the next."""

    max_http_calls: int = 256
    """HTTP requests of bindings that are under way or wait for their turn; past that an HTTP
    binding does not work, and the router goes on to the next."""

    max_http_call_bytes: int = 67_108_864
    """Bytes of the messages in those requests; past that the same happens."""

    max_event_subscriptions_per_session: int = 1_000
    """Subscriptions to events one client may have; one more is answered with 482."""

    max_answer_bytes_while_blocked: int = 1_048_576
    """Bytes of responses and acknowledges of other clients that are passed on to a client whose
    outbound buffer is full, until it has drained; what is beyond is dropped and counted."""

    max_questions_per_session: int = 10_000
    """Direct messages of one client that wait for an answer; for one more the oldest is forgotten,
    and its answers are dropped."""

    max_answer_wait_ms: int = 600_000
    """For how long answers to a direct message are passed on to its sender, in milliseconds; later
    ones are dropped."""

    max_messages_per_queue: int = 1_000_000
    """Messages of one queue, waiting and in flight together; a push past it is answered with 482.
    The option ``message_limit`` of a queue (waiting messages only, F75) can only be stricter."""

    max_message_bytes: int = 16_777_216
    """Size of one message in bytes; larger pushes are answered with 482 (F75)."""

    max_queue_bytes: int = 268_435_456
    """Bytes of the messages of one queue, waiting and in flight; pushes past it get 482."""

    max_messages_in_memory: int = 100_000
    """Waiting messages of one priority that a queue that may spill (durable, or with overflow)
    keeps in memory; the rest is on disk.  The option ``memory_limit`` of a queue comes before it.
    Such a queue also spills when its messages in memory take half of ``max_queue_bytes``."""

    max_unsynced_bytes: int = 67_108_864
    """Bytes of messages the storage was asked to keep and has not answered for; pushes past it
    into queues that save get 503."""

    max_reads: int = 64
    """Questions about what is kept (offsets, ranges, cursors that open at the earliest) which the
    storage has not answered; one more is answered with 503."""

    max_reads_per_session: int = 8
    """Those of one client, and of ranges that it waits for while one is read for it; one more is
    answered with 503."""

    max_held_reads: int = 256
    """Questions about offsets whose answer is held until there is something new; one more is
    answered with 503."""

    max_held_reads_per_session: int = 8
    """Those of one client; one more is answered with 503."""

    max_read_wait_ms: int = 60_000
    """The longest such an answer is held, in milliseconds; who asks for longer gets so much."""

    max_read_messages: int = 100_000
    """Messages in the answer to one range read; a reader that asks for more gets so many."""

    max_read_bytes: int = 2_097_152
    """Bytes of the answer to one range read, or its first message alone (two of the largest blocks
    have room); a reader that asks for more gets so much.  One that does not ask gets
    ``max_payload_bytes`` of connections at most."""

    max_queues_per_read: int = 10_000
    """Queues whose offsets can be asked for at once, and cursors that can be moved, dropped or
    listed as a group; more are answered with 482."""

    max_parts_per_split: int = 10_000
    """Parts in the answer to one split of a range; who wants more goes on behind the last."""

    max_cursors_per_queue: int = 100
    """Cursors of one queue; one more is answered with 482."""

    max_transactions: int = 1_000
    """Transactions that are open at one time; opening one more is answered with 482."""

    max_transaction_bytes: int = 17_179_869_184
    """Bytes staged in one transaction, nearly all of them on disk; a push past it is answered with
    482.  Each block of messages for one queue counts 512 bytes beyond its own, and 8 for each
    message where they differ in size."""

    max_transactions_bytes: int = 68_719_476_736
    """Bytes staged in all transactions; a push past it is answered with 503."""

    max_transactions_memory_bytes: int = 134_217_728
    """Bytes of all transactions that are in memory, counted in ``max_total_bytes`` as well; a push
    past it is answered with 503.  From a quarter of it on, what is staged goes to disk."""

    max_queues_per_transaction: int = 100
    """Queues that one transaction pushes into; one more is answered with 482."""

    max_transaction_timeout_ms: int = 86_400_000
    """The longest time without a push after which a transaction is given up, in milliseconds; more
    is answered with 482.  One that asks for none has ten minutes, or this if it is less."""

    max_transaction_marks: int = 10_000
    """Applications whose last committed epoch is kept; a commit of one more gets 482."""

    max_mark_age_ms: int = 2_592_000_000
    """For how long after its last commit an application's epoch is kept, in milliseconds: an epoch
    that is committed again after that is pushed again."""

    max_total_bytes: int = 1_073_741_824
    """Memory for everything: messages (their bytes, and 512 for each), and whatever else a command
    can create, at what it takes in memory: an empty queue about 4 kB, a channel 4 kB, a connection
    17 kB, a subscription 512 bytes.  What goes past it is answered with 503, for it is the server's
    fault, not the queue's; consumers go on, and what they take makes room.  Connections (482),
    subscriptions and pulls may take a sixteenth more, and at least 256 KiB: else nobody could make
    room when messages fill the memory."""

    max_in_flight_per_session: int = 10_000
    """Deliveries one client may leave unanswered.  A queue that keeps its messages sends it no
    more until a quarter has been answered or timed out; a broadcast goes on reaching it, but its
    acknowledges are no longer tracked."""

    max_name_bytes: int = MAX_NAME_BYTES
    """Bytes of UTF-8 in the name of a channel or a client's id; longer ones get 400 (F6)."""

    max_batch_length: int = 1_000
    """Commands in one batch; a longer batch is answered with 482 and none is applied."""

    max_pull_count: int = 1_000_000
    """Messages one pull may ask for; more is answered with `Unacceptable` (F105)."""

    max_pulls_per_session: int = 1_024
    """Pulls of one client that wait for it to read or acknowledge; one more is answered with
    `Unacceptable`."""

    max_put_backs: int = 1_000
    """The largest put-back limit a queue may ask for; a queue that asks for none (0) gets this, so
    no message goes round for ever (F98)."""

    max_dead_letter_hops: int = 4
    """Queues a message may go through as a dead letter; after that it is dropped and counted."""

    max_acknowledge_timeout_ms: int = 3_600_000
    """The longest acknowledge time-out a queue may ask for, in milliseconds; a queue that asks for
    none (0) gets this, so nothing stays in flight for ever.  More is answered with 482."""

    max_work_per_step: int = 1_000
    """Units of work in one step: a message sent, a delivery that wants an acknowledge, a message
    expired or cleared count one each, and a stored message that is sent one more for each KiB.
    What is left goes on in ``on_deadline``, so that no step keeps the server's other connections
    waiting, or fills a consumer's buffer before that can say so."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{field.name} must be a positive whole number, got {value!r}")
        if self.max_queues_per_channel > MAX_QUEUE_ID + 1:
            raise ValueError(f"max_queues_per_channel is at most {MAX_QUEUE_ID + 1}")
        if self.max_name_bytes > MAX_NAME_BYTES:
            raise ValueError(f"max_name_bytes is at most {MAX_NAME_BYTES}")

"""All limits of the engine, each a documented field that is enforced.

When a limit is reached, the server answers 482, or 503 for a limit of the whole server; it never
raises an exception or closes the connection (F43, F64).  A test checks each field: a value at the
limit works, one above is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from tmqp.constants import MAX_NAME_BYTES, MAX_QUEUE_ID

__all__ = ["LASTING_LIMITS", "EngineLimits"]

#: Limits that stay what they are at the beginning of a broker: parts of it have noted them.
LASTING_LIMITS: Final = ("max_in_flight_per_session", "max_name_bytes", "max_work_per_step")


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """The limits for all clients together and for each of them.

    :raises ValueError: if a value is not a positive integer, or larger than the protocol allows; a
        compiled build raises TypeError for a wrong type.
    """

    max_feeds: int = 10_000
    """Feeds of all queues; adding another is answered with 482."""

    max_feeds_per_queue: int = 256
    """Feeds of one queue; adding another is answered with 482. A message is copied to all of them
    in one step."""

    max_feeds_into_queue: int = 1_000
    """Feeds into one queue; adding another is answered with 482. When the queue is removed, all of
    them are removed in one step."""

    max_sessions: int = 10_000
    """Connected clients; a further one is refused with 482 (F33, F64)."""

    max_channels: int = 10_000
    """Channels; creating another is answered with 482."""

    max_queues_per_channel: int = 1_000
    """Queues in one channel; creating another is answered with 482. Queue ids have 16 bits, so
    65,536 is the maximum. ``max_total_bytes`` limits the queues in all channels: about 260,000
    empty ones."""

    max_list_items: int = 10_000
    """Items in the answer to one list of channels, queues, consumers or clients; a longer list is
    answered with 482 and not collected. A channel counts as one more item for every 32 queue ids
    that it shows."""

    max_subscriptions_per_session: int = 1_000
    """Channels that one client may join; joining another is answered with 482."""

    max_branches_per_session: int = 1_000
    """Consumers of one connection, at doors whose connections have several; another is answered
    with 482. The channels that they join count together for the connection; each consumer may have
    as many unacknowledged deliveries as a client."""

    max_owned_channels_per_session: int = 1_000
    """Channels that end with the connection of one client; creating another is answered with
    482."""

    min_idle_timeout_ms: int = 1_000
    """The shortest idle timeout of a channel, in milliseconds; less is answered with 482."""

    max_routers: int = 1_000
    """Routers; creating another is answered with 482."""

    max_bindings_per_router: int = 100
    """Bindings of one router; adding another is answered with 482."""

    max_queues_per_publish: int = 1_000
    """Queues that receive one message through tag bindings; a binding that would add more fails,
    and the router tries the next one."""

    max_clients_per_publish: int = 10_000
    """Clients that receive one message through direct bindings; a binding that would add more
    fails, and the router tries the next one."""

    max_http_calls: int = 256
    """HTTP requests of bindings in progress or waiting; beyond that, an HTTP binding fails, and the
    router tries the next one."""

    max_http_call_bytes: int = 67_108_864
    """Bytes of the messages in those requests; beyond that the binding fails, too."""

    max_event_subscriptions_per_session: int = 1_000
    """Event subscriptions of one client; another is answered with 482."""

    max_answer_bytes_while_blocked: int = 1_048_576
    """Bytes of other clients' responses and acknowledgements that are sent to a client whose
    outbound buffer is full, until it has drained; more are dropped and counted."""

    max_questions_per_session: int = 10_000
    """Direct messages of one client that wait for an answer; a further one replaces the oldest,
    whose answers are then dropped."""

    max_answer_wait_ms: int = 600_000
    """How long answers to a direct message are forwarded to its sender, in milliseconds; later ones
    are dropped."""

    max_messages_per_queue: int = 1_000_000
    """Messages of one queue, waiting and in flight together; further pushes are answered with 482.
    The option ``message_limit`` of a queue (waiting messages only, F75) can only be stricter."""

    max_message_bytes: int = 16_777_216
    """Size of one message in bytes; larger pushes are answered with 482 (F75)."""

    max_queue_bytes: int = 268_435_456
    """Bytes of the messages of one queue, waiting and in flight; further pushes get 482."""

    max_messages_in_memory: int = 100_000
    """Waiting messages of one priority that a queue that may spill (durable, or with overflow)
    keeps in memory; the rest is on disk. Such a queue keeps as many deferred messages in memory,
    and as many again that are due within two seconds. The option ``memory_limit`` of a queue
    overrides it. The queue also spills when its messages in memory reach half of
    ``max_queue_bytes``."""

    max_delay_ms: int = 31_622_400_000
    """The longest time for which a message can be deferred, in milliseconds: 366 days; a push with
    a longer one is answered with 482. The delay of a message that a consumer gives back is
    shortened to this."""

    max_deferred_per_queue: int = 1_000_000
    """Deferred messages of one queue, in memory or on disk; a further deferred push is answered
    with 482."""

    max_deferred_bytes_per_queue: int = 268_435_456
    """Bytes of the deferred messages of one queue that are in memory; a further deferred push is
    answered with 482."""

    max_unsynced_bytes: int = 67_108_864
    """Bytes of messages that the storage has not confirmed yet; further pushes into queues that
    save get 503."""

    max_reads: int = 64
    """Reads (offsets, ranges, cursors that open at the earliest) that the storage has not answered;
    another is answered with 503."""

    max_reads_per_session: int = 8
    """The same for one client, including ranges that wait while one is read for it; another is
    answered with 503."""

    max_held_reads: int = 256
    """Requests for offsets that wait for new messages; another is answered with 503."""

    max_held_reads_per_session: int = 8
    """The same for one client; another is answered with 503."""

    max_read_wait_ms: int = 60_000
    """The longest time that such an answer is held, in milliseconds; longer requests are shortened
    to this."""

    max_read_messages: int = 100_000
    """Messages in the answer to one range read, whatever the reader requests."""

    max_read_bytes: int = 2_097_152
    """Bytes of the answer to one range read, or its first message alone, whatever the reader asks
    for; two of the largest blocks fit. Without a request the limit is ``max_payload_bytes`` of
    connections."""

    max_queues_per_read: int = 10_000
    """Queues whose offsets can be requested at once, and cursors that can be moved, dropped or
    listed as a group; more are answered with 482."""

    max_parts_per_split: int = 10_000
    """Parts in the answer to one split of a range; request the next parts from the last one on."""

    max_browse_messages: int = 1_000
    """Messages in the answer to one request that browses a queue, whatever the client requests;
    ``max_read_bytes`` limits their bytes."""

    max_browses: int = 16
    """Clients that browse a queue at the same time; another is answered with 503."""

    max_cursors_per_queue: int = 100
    """Cursors of one queue; another is answered with 482."""

    max_cell_spaces: int = 1_000
    """Spaces that have cells; the first cell of another is answered with 482."""

    max_cells_per_space: int = 500_000
    """Cells of one space; making another is answered with 482."""

    max_cell_key_bytes: int = 1_024
    """Bytes in the key of a cell; a longer one is answered with 482."""

    max_cell_value_bytes: int = 1_048_576
    """Bytes that one cell holds; more are answered with 482."""

    max_cells_listed: int = 1_000
    """Cells in the answer to one list, whatever the client requests; request the next ones from the
    last one on."""

    max_transactions: int = 1_000
    """Open transactions; opening another is answered with 482."""

    max_transaction_bytes: int = 17_179_869_184
    """Bytes staged in one transaction, nearly all of them on disk; further pushes are answered with
    482. Each block of messages for one queue adds 512 bytes, and 8 for each message if they differ
    in size."""

    max_transactions_bytes: int = 68_719_476_736
    """Bytes staged in all transactions; further pushes are answered with 503."""

    max_transactions_memory_bytes: int = 134_217_728
    """Bytes of all transactions in memory, which also count in ``max_total_bytes``; further pushes
    are answered with 503. Beyond a quarter of it, staged messages go to disk."""

    max_queues_per_transaction: int = 100
    """Queues into which one transaction pushes; another is answered with 482."""

    max_transaction_timeout_ms: int = 86_400_000
    """The longest timeout of a transaction without a push, in milliseconds; more is answered with
    482. The default is ten minutes, or this if it is less."""

    max_transaction_marks: int = 10_000
    """Applications whose last committed epoch is kept; a commit of another gets 482."""

    max_mark_age_ms: int = 2_592_000_000
    """How long an application's epoch is kept after its last commit, in milliseconds: an epoch that
    is committed again later is pushed again."""

    max_total_bytes: int = 1_073_741_824
    """Memory for everything: messages (their bytes, and 512 for each), and whatever else a command
    can create, at its size in memory: an empty queue about 4 kB, a channel 4 kB, a connection 17 kB
    (with TLS 66 kB), an incomplete message of more than 16 KiB its received bytes, a subscription
    512 bytes. Beyond it the answer is 503, because the server is full, not the queue; consumers can
    continue, and the messages that they take make room. Connections (482), subscriptions and pulls
    may use a sixteenth more, and at least 256 KiB, because otherwise no client could make room when
    messages fill the memory; feeds may use half of that."""

    max_in_flight_per_session: int = 10_000
    """Unacknowledged deliveries of one client. A queue that keeps its messages sends it no more
    until a quarter is acknowledged or timed out; a broadcast still reaches it, but its
    acknowledgements are no longer tracked."""

    max_name_bytes: int = MAX_NAME_BYTES
    """Bytes of UTF-8 in the name of a channel or a client's id; longer ones get 400 (F6)."""

    max_batch_length: int = 1_000
    """Messages and acknowledgements in one batch; a longer batch is answered with 482 and has no
    effect."""

    max_batch_bytes: int = 16_777_216
    """Bytes of the messages and acknowledgements in one batch; a larger batch is answered with 482
    and has no effect."""

    max_pull_count: int = 1_000_000
    """Messages that one pull may request; more is answered with ``Unacceptable`` (F105)."""

    max_pulls_per_session: int = 1_024
    """Pulls of one client that wait until it reads or acknowledges; another is answered with
    ``Unacceptable``."""

    max_put_backs: int = 1_000
    """The largest put-back limit of a queue, and the limit of a queue that sets none (0), so that
    no message circulates for ever (F98)."""

    max_dead_letter_hops: int = 4
    """Queues through which a message may go as a dead letter; then it is dropped and counted."""

    max_acknowledge_timeout_ms: int = 3_600_000
    """The longest acknowledgement timeout of a queue, in milliseconds, and the timeout of a queue
    that sets none (0), so that nothing stays in flight for ever. More is answered with 482."""

    max_work_per_step: int = 1_000
    """Units of work in one step: a message sent, a delivery that wants an acknowledgement, a
    message expired or cleared, a queue removed with its channel count one each, and a stored
    message that is sent one more for each KiB. The rest is done in ``on_deadline``, so that no step
    delays other connections, or fills a consumer's buffer before it can report that."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{field.name} must be a positive whole number, got {value!r}")
        if self.max_queues_per_channel > MAX_QUEUE_ID + 1:
            raise ValueError(f"max_queues_per_channel is at most {MAX_QUEUE_ID + 1}")
        if self.max_name_bytes > MAX_NAME_BYTES:
            raise ValueError(f"max_name_bytes is at most {MAX_NAME_BYTES}")

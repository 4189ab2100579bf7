"""What the machine of ``test_model.py`` draws from: bounds, options, terms, routed messages."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.tmqp_server.engine.model.desk import Settings
from tests.tmqp_server.engine.model.policies import POLICIES
from tests.tmqp_server.engine.model.things import (
    BROADCAST,
    CACHE,
    PAUSED,
    PULL,
    PUSH,
    ROUND_ROBIN,
    STOPPED,
)
from tmqp.constants import PUT_BACK_END, PUT_BACK_NO, PUT_BACK_START
from tmqp_server.engine.commands import (
    BY_ID,
    BY_NAME,
    BY_TYPE,
    Envelope,
    Push,
    PushExtras,
    SendDirect,
)
from tmqp_server.engine.model.terms import Terms
from tmqp_server.engine.options import (
    TO_CLIENTS,
    TO_QUEUE,
    TO_TAG,
    BindingOptions,
    ChannelChanges,
    QueueChanges,
)

__all__ = [
    "BITS",
    "DEFAULTS",
    "GRAVES",
    "PLACES",
    "ROUTERS",
    "SETTINGS",
    "STATUSES",
    "RoutedEnvelope",
    "bindings",
    "changes",
    "channel_changes",
    "channels",
    "clients",
    "direct_ids",
    "extras",
    "queue_ids",
    "statuses",
    "terms",
]

#: Bounds small enough to be reached; but no step is too small for its work, because what is put
#: back in several portions need not come in one order.
SETTINGS = Settings(
    sessions=5,
    channels=7,
    queues=3,
    messages=10,
    message_bytes=40,
    queue_bytes=150,
    total_bytes=60_000,
    put_backs=5,
    hops=2,
    pull_count=9,
    pulls=3,
)
#: What becomes due in two queues at one moment may come in any order.  So each queue that is asked
#: for has a grave of its own, whose timeouts are never those of the queues that are asked for.
DEFAULTS: dict[str, object] = {"acknowledge_timeout_ms": 1_037, "put_back_limit": 2}
PLACES = (("one", 1), ("one", 2), ("Two", 1), ("Solo", 1))
GRAVES = ("g-one-1", "g-one-2", "g-two-1", "g-solo-1")
STATUSES = (BROADCAST, PUSH, PUSH, ROUND_ROBIN, ROUND_ROBIN, PULL, PULL, CACHE, PAUSED, STOPPED)

clients = st.sampled_from([1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6])
channels = st.sampled_from(
    ["one", "one", "one", "ONE", "Two", "Two", "two", "Solo", "solo", "three", "four", "no no"]
)
queue_ids = st.sampled_from([1, 1, 1, 1, 2, 2, 2, 3, 4])
direct_ids = st.sampled_from(["d1", "d2"])
statuses = st.sampled_from(STATUSES)
changes = st.builds(
    QueueChanges,
    status=st.none() | statuses,
    request_acknowledge=st.none() | st.booleans(),
    # Moments of answers are multiples of a quarter second, those of expiry never are.
    acknowledge_timeout_ms=st.sampled_from([500, 1_000, 1_000, 1_000, 3_000, 9_999_999]),
    message_timeout_ms=st.none() | st.sampled_from([0, 0, 700, 2_200]),
    wait_for_acknowledge=st.none() | st.booleans(),
    hide_client_names=st.none() | st.booleans(),
    send_only_first_acquirer=st.none() | st.booleans(),
    skip_slow_consumers=st.none() | st.booleans(),
    message_limit=st.none() | st.sampled_from([0, 2, 5]),
    message_size_limit=st.none() | st.sampled_from([0, 0, 25]),
    put_back_limit=st.none() | st.integers(-1, 3),
    bytes_limit=st.none() | st.sampled_from([0, 0, 60]),
    disk_limit_bytes=st.none() | st.sampled_from([0, 0, 20, 50]),
    when_full=st.none() | st.sampled_from(["refuse", "drop-oldest", "dead-letter"]),
    expired_to_dead_letter=st.none() | st.booleans(),
    delivery_handler=st.none() | st.sampled_from([*POLICIES, "nobody's"]),
    tag=st.none() | st.sampled_from(["red", "blue"]),
)
channel_changes = st.builds(
    ChannelChanges,
    allow_multiple_queues=st.none() | st.booleans(),
    allowed_queues=st.none() | st.sampled_from([(1, 2), (3,)]),
    client_limit=st.none() | st.sampled_from([0, 2]),
    queue_limit=st.none() | st.sampled_from([0, 2]),
    destroy_when_empty=st.none() | st.booleans(),
    lifetime=st.none() | st.sampled_from(["", "owner", "owner", "consumers"]),
    # Never at the moment of anything else.
    idle_timeout_ms=st.none() | st.sampled_from([0, 1_003, 4_057]),
    owner_only=st.none() | st.booleans(),
    single_consumer=st.none() | st.booleans(),
)
extras = st.builds(
    PushExtras,
    changes=st.none() | changes,
    expires_in_ms=st.sampled_from([0, 0, 700]),
    delay_ms=st.sampled_from([0, 0, 500]),
    silent=st.booleans(),
    counts_receivers=st.booleans(),
)
terms = st.builds(
    Terms,
    window=st.sampled_from([None, None, -1, 0, 1, 2, -2]),
    ack_timeout_ms=st.sampled_from([None, None, -1, 0, 250, 750, 2_000, -2, 10**9]),
    returns=st.none() | st.sampled_from([PUT_BACK_NO, PUT_BACK_START, PUT_BACK_END]),
    priority=st.sampled_from([None, None, 0, 1, 2]),
    exclusive=st.sampled_from([None, None, None, False, True]),
)
BITS = [1 << number for number in range(10)]
bindings = st.builds(
    lambda kind, **others: BindingOptions(kind=kind[0], target=kind[1], **others),
    kind=st.sampled_from(
        [
            (TO_QUEUE, "one"),
            (TO_QUEUE, "two"),
            (TO_QUEUE, "three"),
            (TO_TAG, "red"),
            (TO_TAG, "blue"),
            (TO_CLIENTS, "id:c2"),
            (TO_CLIENTS, "type:kind1"),
            (TO_CLIENTS, "name:name0"),
        ]
    ),
    name=st.sampled_from(["a", "b", "c", "d"]),
    content_type=st.none() | st.integers(1, 2),
    priority=st.integers(0, 2),
    interaction=st.sampled_from([0, 0, 1, 2]),
    method=st.integers(0, 2),
)
ROUTERS = ("r", "r", "R")


class RoutedEnvelope(Envelope):
    """A message for a router: copies have ids of their own unless they are to be answered."""

    def __init__(self, session: int, message_id: str, size: int) -> None:
        self.session = session
        self.message_id = message_id
        self.size = size

    def as_push(self, channel: str, queue_id: int | None, interaction: int) -> Push:
        name = f"{self.message_id} in {channel.lower()}/{queue_id}" if not interaction else ""
        number = 1 if queue_id is None else queue_id
        name = name or f"{self.message_id} asking {channel.lower()}/{queue_id}"
        asks = interaction == 1
        return Push(self.session, name, channel, number, False, asks, self.size, "copy")

    def as_direct(self, target: str, content_type: int | None, interaction: int) -> SendDirect:
        by, _, who = target.partition(":")
        wire = (self.message_id, content_type, interaction)
        way = {"id": BY_ID, "name": BY_NAME, "type": BY_TYPE}[by]
        return SendDirect(
            self.session, way, who, False, self.size, wire, None, self.message_id, interaction
        )

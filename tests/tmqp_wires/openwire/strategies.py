"""Commands of OpenWire, drawn."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tmqp_wires.openwire import commands as c
from tmqp_wires.openwire import data as d
from tmqp_wires.openwire import messages as m
from tmqp_wires.openwire.ids import (
    ConnectionId,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
    XaTransactionId,
)

__all__ = ["COMMANDS", "ENTRIES", "KINDS", "MESSAGES"]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MAYBE = st.none() | TEXT
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
INT = st.integers(-(1 << 31), (1 << 31) - 1)
FLAG = st.booleans()
DATA = st.binary(max_size=20)
CONSUMER = st.builds(ConsumerId, TEXT, LONG, LONG)
PRODUCER = st.builds(ProducerId, TEXT, LONG, LONG)
DESTINATION = st.builds(Destination, st.integers(100, 103), TEXT)
MESSAGE_ID = st.builds(MessageId, PRODUCER, LONG, LONG, MAYBE)
TRANSACTION = st.builds(LocalTransactionId, TEXT, LONG) | st.builds(
    XaTransactionId, INT, DATA, DATA
)
THROWABLE = st.builds(c.Throwable, TEXT, MAYBE)
OWNER = st.builds(ConnectionId, TEXT) | st.builds(SessionId, TEXT, LONG) | CONSUMER | PRODUCER
KINDS = (23, 24, 25, 26, 27, 28)


def _value(inner: Any) -> Any:
    return st.one_of(
        st.just((d.NULL, None)),
        st.tuples(st.just(d.BOOLEAN), FLAG),
        st.tuples(st.just(d.BYTE), st.integers(-128, 127)),
        st.tuples(st.just(d.CHARACTER), st.integers(0, 0xFFFF)),
        st.tuples(st.just(d.SHORT), st.integers(-(1 << 15), (1 << 15) - 1)),
        st.tuples(st.just(d.INTEGER), INT),
        st.tuples(st.just(d.LONG), LONG),
        st.tuples(st.just(d.DOUBLE), st.floats(allow_nan=False)),
        st.tuples(st.just(d.FLOAT), st.floats(allow_nan=False, width=32)),
        st.tuples(st.sampled_from([d.STRING, d.BIG_STRING]), TEXT),
        st.tuples(st.just(d.BYTES), DATA),
        inner,
    )


VALUE = _value(
    st.tuples(st.just(d.LIST), st.lists(_value(st.just((d.NULL, None))), max_size=3))
    | st.tuples(
        st.just(d.MAP),
        st.lists(
            st.tuples(TEXT, st.just(d.INTEGER), INT), max_size=3, unique_by=lambda entry: entry[0]
        ),
    )
)
ENTRIES = st.lists(
    st.tuples(TEXT, VALUE).map(lambda pair: (pair[0], *pair[1])),
    max_size=5,
    unique_by=lambda entry: entry[0],
)


def _with(command: Any, **fields: Any) -> Any:
    """A command, drawn, with further fields, drawn."""
    drawn = st.fixed_dictionaries(fields)

    def put(pair: tuple[Any, dict[str, Any]]) -> Any:
        found, values = pair
        for name, value in values.items():
            setattr(found, name, value)
        return found

    return st.tuples(command, drawn).map(put)


MESSAGES = _with(
    st.builds(m.Message, st.sampled_from(KINDS), MESSAGE_ID, st.none() | DESTINATION),
    transaction=st.none() | TRANSACTION,
    original_destination=st.none() | DESTINATION,
    original_transaction=st.none() | TRANSACTION,
    group_id=MAYBE,
    group_sequence=INT,
    correlation_id=MAYBE,
    persistent=FLAG,
    expiration=LONG,
    priority=st.integers(0, 9),
    reply_to=st.none() | DESTINATION,
    timestamp=LONG,
    jms_type=MAYBE,
    content=st.none() | DATA,
    properties=st.none() | ENTRIES.map(d.encode_map),
    structure=st.none() | st.builds(c.DestinationInfo, TEXT, DESTINATION, st.integers(0, 1)),
    target_consumer=st.none() | CONSUMER,
    compressed=FLAG,
    redelivery_counter=INT,
    arrival=LONG,
    user_id=MAYBE,
    droppable=FLAG,
    broker_in=LONG,
    broker_out=LONG,
    first_for_consumer=FLAG,
)

COMMANDS = _with(
    st.one_of(
        MESSAGES,
        st.builds(c.BrokerInfo, TEXT, TEXT, MAYBE),
        _with(
            st.builds(c.ConnectionInfo, TEXT, MAYBE, MAYBE, MAYBE),
            manageable=FLAG,
            fault_tolerant=FLAG,
            failover_reconnect=FLAG,
            client_ip=MAYBE,
        ),
        st.builds(c.SessionInfo, st.builds(SessionId, TEXT, LONG)),
        _with(
            st.builds(c.ConsumerInfo, CONSUMER, st.none() | DESTINATION, INT),
            browser=FLAG,
            selector=MAYBE,
            client_id=MAYBE,
            subscription=MAYBE,
            no_local=FLAG,
            exclusive=FLAG,
            retroactive=FLAG,
            priority=st.integers(-128, 127),
        ),
        st.builds(c.ProducerInfo, PRODUCER, st.none() | DESTINATION, INT),
        st.builds(c.TransactionInfo, TEXT, st.none() | TRANSACTION, st.integers(0, 7)),
        st.builds(c.DestinationInfo, TEXT, st.none() | DESTINATION, st.integers(0, 1), LONG),
        st.builds(c.RemoveSubscriptionInfo, TEXT, MAYBE, MAYBE),
        st.builds(c.ShutdownInfo),
        st.builds(c.RemoveInfo, OWNER, LONG),
        st.builds(c.ConnectionError_, THROWABLE, TEXT),
        _with(
            st.builds(c.ConsumerControl, st.none() | CONSUMER, st.none() | DESTINATION, INT),
            close=FLAG,
            flush=FLAG,
            start=FLAG,
            stop=FLAG,
        ),
        _with(st.builds(c.ConnectionControl), close=FLAG, reconnect_to=MAYBE, token=DATA),
        st.builds(c.ProducerAck, st.none() | PRODUCER, INT),
        _with(
            st.builds(c.MessagePull, st.none() | CONSUMER, st.none() | DESTINATION, LONG),
            correlation_id=MAYBE,
            message_id=st.none() | MESSAGE_ID,
        ),
        st.builds(
            m.MessageDispatch,
            st.none() | CONSUMER,
            st.none() | DESTINATION,
            st.none() | MESSAGES,
            INT,
        ),
        st.builds(
            m.MessageAck,
            st.integers(0, 6),
            st.none() | CONSUMER,
            st.none() | DESTINATION,
            st.none() | MESSAGE_ID,
            st.none() | MESSAGE_ID,
            INT,
            st.none() | TRANSACTION,
            st.none() | THROWABLE,
        ),
        st.builds(c.Response, INT),
        st.builds(c.ExceptionResponse, INT, st.none() | THROWABLE),
    ),
    command_id=INT,
    response_required=FLAG,
)

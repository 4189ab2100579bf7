"""Conversations of Throttr with a server in memory: the facts' samples, outcomes and traps."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.throttr.talk import (
    Peer,
    get,
    insert,
    publish,
    purge,
    put,
    query,
    subscribe,
    unsubscribe,
    update,
    world_with,
)
from tmqp_server.doors.throttr.door import ThrottrDoor
from tmqp_server.doors.throttr.options import ThrottrLimits, ThrottrOptions
from tmqp_server.engine.limits import EngineLimits
from tmqp_wires.throttr import Push, Reply, Request, words

NEWER = ThrottrOptions(dialect="7.3")
SEVENS = "07" + "37" * 7
BOTH = pytest.mark.parametrize("options", [ThrottrOptions(), NEWER], ids=["7.1", "7.3"])


def test_the_captured_conversation_with_two_byte_values() -> None:
    """The samples of the facts' section 10, as they were sent and answered."""
    world = world_with()
    client = world.client()
    for request, reply, seconds in (
        (f"01 0700 04 3c00 {SEVENS}", "01", 0.5),
        (f"02 {SEVENS}", "01 0700 04 3b00", 0),
        (f"03 00 02 0700 {SEVENS}", "01", 0),
        (f"03 00 02 0700 {SEVENS}", "00", 0),
        (f"03 01 01 3c00 {SEVENS}", "01", 0),
        (f"02 {SEVENS}", "01 0000 04 7700", 0),
        ("05 04 1e00 09 0400 696e2d6d656d6f7279 45484c4f", "01", 0.5),
        ("06 09 696e2d6d656d6f7279", "01 04 1d00 0400 45484c4f", 0),
        ("04 09 696e2d6d656d6f7279", "01", 0),
        ("06 09 696e2d6d656d6f7279", "00", 0),
        ("02 09 696e2d6d656d6f7279", "00", 0),
        ("04 09 696e2d6d656d6f7279", "00", 0),
        (f"01 0700 04 3c00 {SEVENS}" * 2, "00 00", 0),
    ):
        client.say(bytes.fromhex(request))
        assert client.hear() == bytes.fromhex(reply), request
        world.now += seconds
    client.say(b"\x18")
    assert len(client.hear()) == 17


@BOTH
def test_a_kind_that_is_not_asked_for_is_not_there(options: ThrottrOptions) -> None:
    peer = Peer(world_with(options))
    assert peer.does(insert(b"c"), put(b"b")) == [True, True]
    assert peer.does(query(b"b"), get(b"c")) == [False, False]
    assert peer.does(put(b"c"), insert(b"b")) == [False, False]
    assert peer.does(update(0, 1, b"b")) == [False]
    assert peer.one(query(b"c")).amount == 7
    assert peer.one(get(b"b")).value == b"EHLO"


def test_a_buffer_is_overwritten_with_its_time_to_live() -> None:
    peer = Peer(world_with())
    assert peer.does(put(value=b"old", ttl=9), put(value=b"", ttl=3, ttl_type=6)) == [True, True]
    found = peer.one(get())
    assert (found.value, found.ttl_type, found.ttl) == (b"", 6, 3)


@pytest.mark.parametrize("width", words.VALUE_SIZES)
def test_a_quota_wraps_when_it_is_increased_and_not_when_it_is_decreased(width: int) -> None:
    peer = Peer(world_with(ThrottrOptions(value_bytes=width)))
    most = words.most_of(width)
    assert peer.does(insert(quota=most - 1), update(1, 3)) == [True, True]
    assert peer.one(query()).amount == 1
    assert peer.does(update(2, 2), update(2, 1), update(0, most)) == [False, True, True]
    assert peer.one(query()).amount == most


def test_a_time_to_live_is_told_in_whole_units_and_as_much_as_fits() -> None:
    world = world_with(ThrottrOptions(value_bytes=1))
    peer = Peer(world)
    assert peer.does(insert(ttl=2, ttl_type=5), update(1, 255, attribute=1)) == [True, True]
    found = peer.one(query())
    assert (found.ttl_type, found.ttl) == (5, 255), "257 minutes"
    assert peer.does(update(0, 2, attribute=1)) == [True]
    world.now += 61.0
    assert peer.one(query()).ttl == 0
    world.now += 58.9
    assert peer.one(query()).ok
    world.now += 0.2
    assert not peer.one(query()).ok


@pytest.mark.parametrize(
    ("ttl_type", "ttl", "lives_s"),
    [(1, 50_000, 5e-5), (2, 50_000, 0.05), (3, 250, 0.25), (4, 2, 2.0), (5, 1, 60.0), (6, 1, 3600)],
)
def test_a_key_ends_exactly_then_in_each_of_the_six_units(
    ttl_type: int, ttl: int, lives_s: float
) -> None:
    world = world_with()
    peer = Peer(world)
    assert peer.does(insert(ttl=ttl, ttl_type=ttl_type)) == [True]
    began = world.now
    world.now = began + lives_s * 0.999
    assert peer.does(query()) == [True]
    world.now = began + lives_s * 1.000001
    assert peer.does(query()) == [False]
    assert peer.does(insert()) == [True], "its key is free at once"


def test_what_lives_for_nothing_has_been_kept_and_has_gone() -> None:
    peer = Peer(world_with())
    assert peer.does(insert(ttl=0), query()) == [True, False]


def test_what_cannot_be_is_refused_and_the_connection_goes_on() -> None:
    peer = Peer(world_with())
    assert peer.does(
        insert(ttl_type=0),
        insert(ttl_type=7),
        put(ttl_type=9),
        update(0, 1, b"missing"),
        insert(),
        update(3, 1),
        update(0, 1, attribute=2),
        insert(b""),
        query(b""),
    ) == [False, False, False, False, True, False, False, True, True]


def test_an_unknown_request_is_answered_and_ends_the_connection() -> None:
    client = world_with().client()
    client.say(b"\x18\x0a\x18")
    assert client.hear()[17:] == b"\x00"
    assert "0x0a" in client.closed
    other = world_with().client()
    other.say(b"GET / HTTP/1.1\r\n\r\n")
    assert other.hear() == b"\x00"
    assert "HTTP" in other.closed


def test_what_comes_before_an_unknown_request_is_answered_first() -> None:
    world = world_with(limits=ThrottrLimits(max_unanswered=16))
    peer = Peer(world)
    asked = [insert(b"%d" % n) for n in range(50)]
    peer.client.say(b"".join([peer.wire.send(each) for each in asked]) + b"\xff")
    assert peer.client.hear() == b"\x01" * 50 + b"\x00"
    assert peer.client.closed


def test_a_request_that_is_too_long_is_answered_and_ends_the_connection() -> None:
    """The original never answers it, and is busy with it even after its client has left."""
    world = world_with(limits=ThrottrLimits(max_request_bytes=100))
    peer = Peer(world)
    assert peer.does(put(value=b"x" * 80)) == [True]
    peer.client.say(peer.wire.send(put(value=b"x" * 1_000))[:9])
    assert peer.client.hear() == b"\x00"
    assert "more than 100" in peer.client.closed


def test_ten_thousand_pipelined_requests_are_all_answered_in_order() -> None:
    """The original answered 1,047 of 10,000, or 426."""
    peer = Peer(world_with())
    asked = [insert(b"%d" % n, n % 5_000) for n in range(10_000)]
    data = b"".join([peer.wire.send(each) for each in asked])
    peer.client.say(*[data[at : at + 65_536] for at in range(0, len(data), 65_536)])
    assert peer.client.hear() == b"\x01" * 10_000
    peer = Peer(world_with())
    both = [each for n in range(5_000) for each in (insert(b"%d" % n, n), query(b"%d" % n))]
    found = peer.ask(*both)
    assert [each.amount for each in found[1::2]] == list(range(5_000))


def test_a_chunk_in_bytes_is_the_same_as_in_one() -> None:
    peer = Peer(world_with())
    data = peer.wire.send(put()) + peer.wire.send(get()) + peer.wire.send(query(b"v"))
    peer.client.say(*[data[at : at + 1] for at in range(len(data))])
    first, second, third = peer.hear()
    assert isinstance(second, Reply)
    assert second.value == b"EHLO"
    assert isinstance(first, Reply)
    assert isinstance(third, Reply)
    assert (first.ok, third.ok) == (True, False)


# --- Channels ------------------------------------------------------------------------------------


def test_a_message_goes_to_everybody_on_a_channel_but_its_publisher_in_7_1() -> None:
    world = world_with()
    first, second, other = Peer(world), Peer(world), Peer(world)
    assert first.does(subscribe(), subscribe()) == [True, True]
    assert second.does(subscribe()) == [True]
    assert other.does(subscribe(b"CH")) == [True]
    assert second.does(publish()) == [True]
    assert (first.pushes(), second.pushes(), other.pushes()) == ([(b"", b"hi")], [], [])
    assert other.does(publish(b"", b"ch")) == [True]
    assert (first.pushes(), second.pushes()) == ([(b"", b"")], [(b"", b"")])


def test_a_publisher_of_7_3_gets_its_own_message_before_the_reply() -> None:
    """Clients of the original hang otherwise: the facts' traps 1 and 5."""
    world = world_with(NEWER)
    peer = Peer(world)
    assert peer.does(subscribe()) == [True]
    peer.say(publish())
    pieces = peer.client.pieces()
    assert pieces == [bytes.fromhex("19 02 0200 6368 6869") + b"\x01"]


def test_a_push_is_never_behind_a_reply_in_one_piece() -> None:
    """``status + push`` in one segment hangs a client of the original: trap 1."""
    world = world_with(NEWER)
    peer, other = Peer(world), Peer(world)
    peer.say(subscribe())
    other.ask(publish())
    assert peer.client.pieces() == [b"\x01", bytes.fromhex("19 02 0200 6368 6869")]
    peer.say(query(), publish(b"a"), query(), publish(b"b"))
    for piece in peer.client.pieces():
        push = piece.find(b"\x19")
        assert push in (-1, 0)


def test_a_large_push_is_one_piece_of_its_own() -> None:
    """Clients of the original do not take a push that comes in two segments: trap 2."""
    world = world_with(NEWER)
    peer, other = Peer(world), Peer(world)
    peer.ask(subscribe())
    other.ask(*[publish(b"x" * 20_000) for _ in range(3)], publish(b"y" * 65_000))
    sizes = [len(each) for each in peer.client.pieces()]
    assert sizes == [20_006, 20_006, 20_006, 65_006]


def test_whoami_is_answered_right_after_connecting() -> None:
    """A client of the original asks it first and waits for 17 bytes: trap 4."""
    world = world_with(NEWER)
    first, second = Peer(world), Peer(world)
    one, two = first.one(Request(words.WHOAMI)), second.one(Request(words.WHOAMI))
    assert len(one.name) == len(two.name) == 16
    assert one.name != two.name


def test_a_status_of_subscribe_is_there_whether_or_not_it_is_read() -> None:
    """A client of the original takes it for the reply to its next request: trap 5."""
    client = world_with(NEWER).client()
    client.say(b"\x11\x02ch")
    client.say(b"\x12\x02ch")
    client.say(b"\x02\x01k")
    assert client.hear() == b"\x01\x01\x00"


def test_pipelined_gets_are_whole_each() -> None:
    """A client of the original reads them from the wrong place: trap 3 is the client's."""
    peer = Peer(world_with())
    peer.ask(put(b"a", b"1" * 300), put(b"b", b"2"))
    found = peer.ask(get(b"a"), get(b"b"), get(b"a"))
    assert [each.value for each in found] == [b"1" * 300, b"2", b"1" * 300]


def test_nobody_on_a_channel_is_told_to_the_publisher() -> None:
    world = world_with()
    peer, other = Peer(world), Peer(world)
    assert peer.does(publish()) == [False]
    assert peer.does(subscribe(), publish()) == [True, False], "a publisher of 7.1 is not served"
    assert other.does(publish()) == [True]
    assert peer.does(unsubscribe(), unsubscribe()) == [True, False]
    assert other.does(publish()) == [False]


def test_the_end_of_a_connection_ends_its_subscriptions() -> None:
    world = world_with()
    peer, other = Peer(world), Peer(world)
    peer.ask(subscribe())
    peer.client.leave()
    assert other.does(publish()) == [False]
    assert other.one(Request(words.CHANNELS)).items == []


def test_everybody_of_7_3_is_on_one_channel_and_may_leave_it() -> None:
    world = world_with(NEWER)
    peers = [Peer(world) for _ in range(3)]
    for peer in peers:
        peer.ask(Request(words.WHOAMI))
    peers[0].ask(unsubscribe(b"*"))
    peers[1].say(publish(b"all", b"*"))
    assert peers[0].pushes() == []
    assert [type(each) for each in peers[1].hear()] == [Push, Reply]
    assert peers[2].pushes() == [(b"*", b"all")]


def test_a_client_of_7_3_is_reached_alone_by_its_id() -> None:
    world = world_with(NEWER)
    peer, other = Peer(world), Peer(world)
    name = peer.one(Request(words.WHOAMI)).name.hex().encode()
    assert other.does(publish(b"you", name)) == [True]
    assert peer.pushes() == [(name, b"you")]
    peer.say(publish(b"me", name))
    assert [type(each) for each in peer.hear()] == [Push, Reply]
    peer.ask(unsubscribe(name))
    assert other.does(publish(b"you", name)) == [False]
    peer.ask(subscribe(name))
    assert other.does(publish(b"you", name)) == [True]
    peer.client.leave()
    assert other.does(publish(b"you", name)) == [False]


def test_in_7_1_nobody_is_on_a_channel_from_the_beginning() -> None:
    world = world_with()
    peer, other = Peer(world), Peer(world)
    name = peer.one(Request(words.WHOAMI)).name.hex().encode()
    assert other.does(publish(b"x", b"*"), publish(b"x", name)) == [False, False]
    assert other.one(Request(words.CHANNELS)).items == []


def test_an_event_is_carried_out_for_the_connection() -> None:
    peer = Peer(world_with(NEWER))
    inner = peer.wire.send(insert(quota=3))
    peer.wire._asked.clear()
    found = peer.hear()
    assert found == []
    peer.say(Request(words.EVENT, b"any", inner))
    assert [each.ok for each in peer.hear() if isinstance(each, Reply)] == [True, True]
    assert peer.one(query()).amount == 3
    peer.say(Request(words.EVENT, b"any", b"\xff"))
    assert [each.ok for each in peer.hear() if isinstance(each, Reply)] == [True, False]


# --- Listings and figures ------------------------------------------------------------------------


@BOTH
def test_keys_are_listed_in_the_order_in_which_they_were_made(options: ThrottrOptions) -> None:
    world = world_with(options)
    peer = Peer(world)
    peer.ask(insert(b"b", ttl=9), put(b"a", b"xyz", 250, 3), insert(b"c", ttl=0))
    (found,) = peer.ask(Request(words.LIST))
    assert [(each.name, each.numbers) for each in found.items] == [
        (
            b"b",
            {
                "kind": 0,
                "ttl_type": 4,
                "time_point": int((world.now + 9) * 1e9),
                "bytes": 2,
            },
        ),
        (
            b"a",
            {
                "kind": 1,
                "ttl_type": 3,
                "time_point": int(world.now * 1e9) + 250_000_000,
                "bytes": 3,
            },
        ),
    ]


def test_nothing_to_list_is_nine_bytes() -> None:
    client = world_with().client()
    for code in (words.LIST, words.STATS, words.CHANNELS):
        client.say(bytes((code,)))
        assert client.hear() == b"\x01" + bytes(8)


def test_listings_are_made_in_portions_and_what_comes_behind_them_waits() -> None:
    world = world_with()
    peer = Peer(world)
    peer.ask(*[insert(b"%08d" % n, n) for n in range(1_200)])
    found = peer.ask(Request(words.LIST), purge(b"00000000"), Request(words.STATS), query(b"x"))
    listed = [each.name for each in found[0].items]
    assert listed == [b"%08d" % n for n in range(1_200)]
    assert [each.name for each in found[2].items] == listed[1:]
    assert [each.ok for each in found] == [True, True, True, False]
    assert found[0].fragments >= 12


def test_a_listing_that_is_too_long_is_not_written() -> None:
    world = world_with(limits=ThrottrLimits(max_listing_bytes=2_000))
    peer = Peer(world)
    peer.ask(*[insert(b"%d" % n) for n in range(100)])
    assert peer.does(Request(words.LIST), Request(words.STATS)) == [True, False]
    peer.ask(*[insert(b"more%d" % n) for n in range(100)])
    assert peer.does(Request(words.LIST), query(b"1")) == [False, True]


def test_figures_of_a_key_are_there_at_once() -> None:
    """The original shows zeros for up to a minute."""
    world = world_with()
    peer = Peer(world)
    peer.ask(insert(), query(), query(), update(1, 1))
    assert peer.one(Request(words.STAT, b"k")).numbers == {
        "reads_per_minute": 2,
        "writes_per_minute": 2,
        "reads": 2,
        "writes": 2,
    }
    assert not peer.one(Request(words.STAT, b"missing")).ok
    peer.ask(update(1, 600, attribute=1))
    world.now += 70.0
    (item,) = peer.one(Request(words.STATS)).items
    assert item.numbers == {"reads_per_minute": 0, "writes_per_minute": 0, "reads": 2, "writes": 3}


def test_info_tells_what_there_is_and_was_asked() -> None:
    world = world_with()
    peer, other = Peer(world), Peer(world)
    other.ask(subscribe())
    peer.ask(insert(), put(), query(), query())
    found = peer.one(Request(words.INFO))
    assert found.name == b"5.0.2"
    numbers = found.numbers
    assert len(numbers) == 52
    expected = {
        "timestamp": int(world.now),
        "requests": 6,
        "requests_per_minute": 6,
        "insert": 1,
        "query": 2,
        "query_per_minute": 2,
        "info": 1,
        "subscribe": 1,
        "keys": 2,
        "counters": 1,
        "buffers": 1,
        "counter_bytes": 2,
        "buffer_bytes": 4,
        "subscriptions": 1,
        "channel_count": 1,
        "connection_count": 2,
    }
    assert {name: numbers[name] for name in expected} == expected
    assert numbers["read_bytes"] == numbers["read_bytes_per_minute"] > 0
    world.now += 100.0
    later = peer.one(Request(words.INFO)).numbers
    assert (later["query"], later["query_per_minute"], later["keys"]) == (2, 0, 0)
    assert later["write_bytes"] > 433


@BOTH
def test_connections_are_listed_and_found_by_their_ids(options: ThrottrOptions) -> None:
    world = world_with(options)
    peers = [Peer(world) for _ in range(3)]
    ids = [peer.one(Request(words.WHOAMI)).name for peer in peers]
    found = peers[0].one(Request(words.CONNECTIONS))
    assert [each.name for each in found.items] == ids
    item = found.items[0]
    assert (item.peer, item.numbers["port"], item.numbers["ip_version"]) == ("127.0.0.1", 5000, 4)
    assert item.numbers["connected_at"] == int(world.now * 1e9)
    assert (item.numbers[words.WHOAMI], item.numbers[words.CONNECTIONS]) == (1, 1)
    one = peers[0].one(Request(words.CONNECTION, ids[2]))
    assert [each.name for each in one.items] == [ids[2]]
    assert not peers[0].one(Request(words.CONNECTION, bytes(16))).ok


def test_channels_are_listed_with_what_went_through_them() -> None:
    world = world_with()
    first, second = Peer(world), Peer(world)
    first.ask(subscribe(b"b"), subscribe(b"a"))
    second.ask(subscribe(b"b"), publish(b"12345", b"b"))
    found = first.one(Request(words.CHANNELS))
    assert [(each.name, each.numbers) for each in found.items] == [
        (b"a", {"read_bytes": 0, "write_bytes": 0, "subscribers": 1}),
        (b"b", {"read_bytes": 5, "write_bytes": 5, "subscribers": 2}),
    ]
    channel = second.one(Request(words.CHANNEL, b"b"))
    assert [each.numbers["read_bytes"] for each in channel.items] == [5, 0]
    assert channel.items[0].numbers["subscribed_at"] == int(world.now * 1e9)
    assert not second.one(Request(words.CHANNEL, b"nobody")).ok


def test_the_channels_of_7_3_are_those_of_everybody_too() -> None:
    world = world_with(NEWER)
    peer = Peer(world)
    name = peer.one(Request(words.WHOAMI)).name.hex().encode()
    found = peer.one(Request(words.CHANNELS))
    assert [each.name for each in found.items] == [b"*", name]
    assert len(peer.one(Request(words.CHANNEL, name)).items) == 1


# --- Bounds --------------------------------------------------------------------------------------


def test_what_the_engine_refuses_is_refused() -> None:
    world = world_with(engine_limits=EngineLimits(max_cells_per_space=2, max_cell_value_bytes=9))
    peer = Peer(world)
    assert peer.does(insert(b"1"), insert(b"2"), insert(b"3")) == [True, True, False]
    assert peer.does(purge(b"1"), put(value=b"x" * 10), put(value=b"x" * 9)) == [True, False, True]


def test_a_client_is_not_read_while_its_requests_wait() -> None:
    world = world_with(limits=ThrottrLimits(max_unanswered=16))
    peer = Peer(world)
    found = peer.ask(*[insert(b"%d" % n) for n in range(100)])
    assert all(each.ok for each in found)
    assert peer.client.reads


def test_requests_that_wait_are_carried_out_when_their_client_leaves() -> None:
    world = world_with(NEWER, ThrottrLimits(max_unanswered=16))
    peer, other = Peer(world), Peer(world)
    peer.ask(subscribe())
    session = world.hub._sessions[peer.client.number]
    asked = (*[publish()] * 16, insert(), put())
    data = b"".join([peer.wire.send(each) for each in asked])
    commands = session.receive(data, world.now)
    assert len(commands) == 16, "their replies are late"
    world.hub._run(peer.client.number, commands, world.now)
    peer.client.leave()
    assert other.does(query(), get()) == [True, True]


def space_of(options: ThrottrOptions | None = None) -> str:
    door = world_with(options).door
    assert isinstance(door, ThrottrDoor)
    return door.context.space


def test_doors_of_one_size_share_their_keys() -> None:
    assert space_of(NEWER) == space_of() == "throttr-2"
    assert space_of(ThrottrOptions(value_bytes=8)) == "throttr-8"
    assert space_of(ThrottrOptions(space="mine")) == "mine"


@pytest.mark.parametrize(
    "wrong",
    [{"dialect": "7"}, {"value_bytes": 3}, {"version": "x" * 17}],
)
def test_options_that_there_are_not(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ThrottrOptions(**wrong)  # type: ignore[arg-type]


def test_a_listing_tells_what_the_requests_before_it_in_a_chunk_have_changed() -> None:
    """CHANNELS noted who was there before the SUBSCRIBE in front of it was carried out."""
    peer = Peer(world_with(NEWER))
    found = peer.ask(subscribe(b"ch"), Request(words.CHANNELS), Request(words.CONNECTIONS))
    assert [each.name for each in found[1].items][0::2] == [b"*", b"ch"]
    assert len(found[2].items) == 1


@BOTH
def test_subscriptions_change_in_the_order_of_requests_in_a_chunk(options: ThrottrOptions) -> None:
    """An UNSUBSCRIBE behind a SUBSCRIBE in one chunk was told that there was nothing to end."""
    world = world_with(options)
    peer, other = Peer(world), Peer(world)
    assert peer.does(subscribe(), unsubscribe(), unsubscribe()) == [True, True, False]
    assert other.does(publish()) == [False]
    assert peer.does(subscribe(), unsubscribe(), subscribe(), subscribe()) == [True] * 4
    assert other.does(publish()) == [True]
    assert [payload for _, payload in peer.pushes()] == [b"hi"]
    assert peer.does(unsubscribe(), subscribe(), unsubscribe()) == [True] * 3
    assert other.does(publish()) == [False]
    assert other.does(unsubscribe(b"nobody")) == [False]


def test_a_hundred_subscribers_of_a_channel_are_all_served() -> None:
    """Each has a filter of its own in the dialect 7.1, of which a channel had 64 at most."""
    world = world_with()
    peers = [Peer(world) for _ in range(100)]
    for peer in peers:
        assert peer.ask(subscribe(b"c"))[0].ok
    assert peers[0].ask(publish(b"x", b"c"))[0].ok
    assert sum(len(peer.hear()) for peer in peers[1:]) == 99

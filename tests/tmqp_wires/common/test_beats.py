"""Heartbeats in both directions, as OpenWire and STOMP keep them."""

from __future__ import annotations

from tmqp_wires.common.beats import Heartbeats


def test_nothing_is_due_before_anything_was_agreed() -> None:
    beats = Heartbeats()
    beats.heard(5.0)
    assert beats.next_deadline() is None
    assert not beats.must_beat(1e9)
    assert not beats.is_lost(1e9)


def test_a_heartbeat_is_due_in_each_period_in_which_nothing_was_sent() -> None:
    beats = Heartbeats()
    beats.send_every(2.0, 10.0)
    assert beats.next_deadline() == 12.0
    sent = []
    for now in (11.0, 12.0, 13.0, 14.0, 16.0):
        if now == 13.0:
            beats.spoke()  # a message
        if beats.must_beat(now):
            beats.spoke()
            sent.append(now)
        beats.begin_period(now)
    # The one at 12.0 does not count as said in the period that it begins, the message at 13.0 does.
    assert sent == [12.0, 16.0]


def test_a_peer_is_lost_once_after_its_silence() -> None:
    beats = Heartbeats()
    beats.expect_within(3.0, 0.0)
    assert not beats.is_lost(2.9)
    beats.heard(2.9)
    assert not beats.is_lost(5.8)
    assert beats.is_lost(5.9)
    assert not beats.is_lost(99.0)
    assert beats.next_deadline() is None

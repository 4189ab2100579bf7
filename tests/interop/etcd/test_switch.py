"""The switch between namespaces: what it carries, and what it does not."""

from __future__ import annotations

from typing import Final

from tests.interop.etcd.switch import Switch

_EVERYBODY: Final = b"\xff" * 6
_MACHINES: Final = [bytes([2, 0, 0, 0, 0, number]) for number in range(3)]


def _frame(source: int, to: bytes) -> bytes:
    return to + _MACHINES[source] + b"\x08\x00 and so on"


def _known(seed: int = 1) -> Switch:
    """A switch that knows where each machine is."""
    switch = Switch(3, seed)
    for number in range(3):
        switch.take(_frame(number, _EVERYBODY), number, 0.0)
    switch.due(0.0)
    return switch


def test_a_frame_for_everybody_leaves_by_all_other_ports() -> None:
    switch = Switch(3, 1)
    frame = _frame(1, _EVERYBODY)
    switch.take(frame, 1, 0.0)
    assert switch.due(0.0) == [(0, frame), (2, frame)]


def test_a_frame_for_one_machine_leaves_by_its_port_alone() -> None:
    switch = _known()
    frame = _frame(0, _MACHINES[2])
    switch.take(frame, 0, 1.0)
    assert switch.due(1.0) == [(2, frame)]
    assert switch.wait_s(1.0) is None


def test_nothing_passes_a_cut_in_either_direction_until_it_is_mended() -> None:
    switch = _known()
    switch.change('{"cut": [[0, 2]], "delay_ms": 0, "loss": 0}')
    for one, other in ((0, 2), (2, 0)):
        switch.take(_frame(one, _MACHINES[other]), one, 1.0)
    assert switch.due(1.0) == []
    frame = _frame(0, _MACHINES[1])
    switch.take(frame, 0, 1.0)
    assert switch.due(1.0) == [(1, frame)]
    switch.change('{"cut": [], "delay_ms": 0, "loss": 0}')
    frame = _frame(0, _MACHINES[2])
    switch.take(frame, 0, 1.0)
    assert switch.due(1.0) == [(2, frame)]


def test_a_frame_is_delayed_by_half_to_one_and_a_half_times_as_much() -> None:
    switch = _known()
    switch.change('{"cut": [], "delay_ms": 20, "loss": 0}')
    for _ in range(50):
        switch.take(_frame(0, _MACHINES[1]), 0, 1.0)
    assert switch.due(1.0099) == []
    assert len(switch.due(1.0301)) == 50


def test_a_share_of_the_frames_is_lost_and_a_seed_loses_the_same_ones() -> None:
    def carried(seed: int) -> list[bytes]:
        switch = _known(seed)
        switch.change('{"cut": [], "delay_ms": 0, "loss": 0.25}')
        for number in range(400):
            switch.take(_frame(0, _MACHINES[1]) + b"%d" % number, 0, 1.0)
        return [frame for _, frame in switch.due(1.0)]

    assert 250 < len(carried(1)) < 350
    assert carried(1) == carried(1) != carried(2)

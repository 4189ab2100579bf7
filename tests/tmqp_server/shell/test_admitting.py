"""How long refused clients wait, by their address."""

from __future__ import annotations

from tmqp_server.shell.admitting import Pauses


def test_the_pause_grows_with_each_refusal_of_an_address_and_is_forgiven() -> None:
    pauses = Pauses()
    assert [pauses.next("10.0.0.1", float(second)) for second in range(7)] == [
        0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0
    ]  # fmt: skip
    assert pauses.next("10.0.0.2", 7.0) == 0.25
    assert pauses.next("10.0.0.1", 68.0) == 0.25
    for number in range(2_000):
        pauses.next(f"10.1.{number}.1", 100.0)
    assert len(pauses._refusals) == 1_024

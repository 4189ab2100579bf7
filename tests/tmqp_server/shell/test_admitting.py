"""How long refused clients wait, by their address."""

from __future__ import annotations

from tmqp_server.shell.admitting import Connected, Pauses


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


def test_connections_are_bounded_in_all_and_by_address() -> None:
    connected = Connected(4, 2)

    def admit(host: str, *, has_room: bool = True) -> str:
        return connected.admit(host, is_local=not host, has_room=has_room)

    assert [admit("a") for _ in range(3)] == ["", "", "2 connections from there"]
    assert admit("b", has_room=False) == "the memory is full (max_total_bytes)"
    assert [admit("") for _ in range(3)] == ["", "", "4 connections"]
    connected.leave("a")
    assert connected.count == 3
    assert admit("a") == ""
    for host in ("a", "a", "", ""):
        connected.leave(host)
    assert (connected.count, connected._by_host) == (0, {})

"""How many connections are let in."""

from __future__ import annotations

from tmqp_server.shell.admitting import Connected


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

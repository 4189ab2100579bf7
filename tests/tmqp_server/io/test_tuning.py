"""What the kernel is told about accepted connections."""

from __future__ import annotations

import socket

import pytest

from tmqp_server.io.tuning import KEEPALIVE_IDLE_S, KEEPALIVE_PROBE_S, KEEPALIVE_PROBES, tune


def test_the_end_of_a_peers_machine_is_noticed() -> None:
    """It was not, where a protocol has no sign of life: what the client had stayed with it."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        accepted, _ = listener.accept()
        with accepted:
            tune(accepted)
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for name, expected in (
                ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
                ("TCP_KEEPINTVL", KEEPALIVE_PROBE_S),
                ("TCP_KEEPCNT", KEEPALIVE_PROBES),
            ):
                option = getattr(socket, name, None)
                if option is not None:
                    assert accepted.getsockopt(socket.IPPROTO_TCP, option) == expected


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no such sockets here")
def test_a_socket_of_this_machine_has_no_such_options() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        tune(one)
        assert not one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

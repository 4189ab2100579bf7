"""Handles bytes that wait for a peer when its connection ends."""

from __future__ import annotations

from tmqp_server.hub.hub import Hub
from tmqp_server.shell.outbound import Outbound
from tmqp_server.shell.world import ERROR, Log, WorldEffect

__all__ = ["part"]


def part(hub: Hub, out: Outbound, world: list[WorldEffect], now: float, *, goes_on: bool) -> None:
    """Handle the end of a connection: its session may redirect bytes that have not left.

    A bug in the session is logged, and its connection ends nevertheless.

    :param goes_on: whether the rest is still sent; otherwise it is dropped.
    """
    try:
        out.take_back(hub.take_back(out.number, out.unsent(goes_on=goes_on), now))
    except Exception as error:  # noqa: BLE001 - a bug; it is logged
        world.append(Log(ERROR, "the session failed at its end", out.number, error))
    if not goes_on:
        out.drop()

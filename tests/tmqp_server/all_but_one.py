"""A server with two doors: the clients of one may do everything, those of the other all but one."""

from __future__ import annotations

from typing import Any

from tmqp.address import Address
from tmqp_server import ServerConfig
from tmqp_server.access import rights
from tmqp_server.config import read_config

__all__ = ["all_but_one"]


def all_but_one(door: dict[str, Any], missing: str, space: str = "*") -> ServerConfig:
    """Two doors like this one; at the second the right that is missing is missing.

    :param space: the space of cells for which rights are given.
    """
    others = [each for each in rights.RIGHTS if each != missing]
    everything = {"channels": ["*"], "clients": ["*"], "routers": ["*"], "spaces": [space]}
    values = read_config(
        {
            "doors": [{**door, "as": "all"}, {**door, "as": "some"}],
            "access": {
                "roles": {
                    "all": {"rights": ["all"], **everything},
                    "some": {"rights": others, **everything, "applications": ["*"]},
                },
                "tokens": [
                    {"name": "all", "token": "1" * 20, "roles": ["all"]},
                    {"name": "some", "token": "2" * 20, "roles": ["some"]},
                ],
            },
        }
    )
    return ServerConfig(**{**values, "listen": (Address("127.0.0.1", 0),)})

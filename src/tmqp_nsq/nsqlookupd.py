"""The program ``nsqlookupd``: the directory of nsqds, with the original's flags (N136 to N148)."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp.address import Address
from tmqp_nsq.addresses import parse_address
from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.server_flags import NSQLOOKUPD
from tmqp_nsq.serving import door_address, serve
from tmqp_nsq.starting import hostname, run_program
from tmqp_server import DoorSettings, ServerConfig

__all__ = ["lookupd_config", "main", "run"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``nsqlookupd``; ends the process with its exit status."""
    run_program(NSQLOOKUPD, run, arguments)


def lookupd_config(values: FlagValues) -> ServerConfig:
    """The configuration of the server for the flags.

    :raises FlagError: if one cannot be used.
    """
    limits = {}
    for flag in ("inactive-producer-timeout", "tombstone-lifetime"):
        if values.number(flag) <= 0:
            raise FlagError(f"--{flag} must be positive, not {values.number(flag)}")
        limits[f"{flag.replace('-', '_')}_s"] = values.seconds(flag)
    return ServerConfig(
        listen=(),
        allow_remote=True,
        doors=(
            DoorSettings(
                "nsqlookupd",
                (_listen(values, "tcp-address"),),
                limits=limits,
                options={"broadcast_address": values.text("broadcast-address") or hostname()},
            ),
            DoorSettings("nsqlookupd-http", (_listen(values, "http-address"),)),
        ),
    )


def _listen(values: FlagValues, flag: str) -> Address:
    return door_address(parse_address(values.text(flag), flag, listening=True))


async def run(values: FlagValues) -> None:
    """Run until SIGTERM or SIGINT.

    :raises FlagError: if the flags do not fit together.
    """
    await serve(lookupd_config(values))

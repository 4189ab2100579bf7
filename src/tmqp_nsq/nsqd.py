"""The program ``nsqd``: this project's server with the NSQ doors and the original's flags.

Without ``--data-path``, messages are kept in the working directory, as the original does.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from tmqp_nsq.addresses import Address, parse_address
from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.nodes.statsd import StatsdPush
from tmqp_nsq.server_flags import NSQD
from tmqp_nsq.serving import door_address, serve
from tmqp_nsq.starting import hostname, run_program
from tmqp_nsq.statistics import push_statistics
from tmqp_server import (
    AccessConfig,
    ConfigError,
    DoorSettings,
    EngineLimits,
    Server,
    ServerConfig,
    TlsSettings,
)

__all__ = ["main", "nsqd_config", "run"]

#: Durations that the door wants in milliseconds.
_DURATIONS: Final = (
    "msg-timeout",
    "max-msg-timeout",
    "max-req-timeout",
    "max-heartbeat-interval",
    "max-output-buffer-timeout",
    "min-output-buffer-timeout",
    "output-buffer-timeout",
    "e2e-processing-latency-window-time",
)
#: Numbers and switches that the door has under the same name.
_SAME: Final = (
    "mem-queue-size",
    "max-output-buffer-size",
    "max-channel-consumers",
    "max-deflate-level",
    "deflate",
    "snappy",
)
_LIMITS: Final = ("max-msg-size", "max-body-size", "max-rdy-count")
#: What clients are asked for a heartbeat after, unless a shorter maximum is set (N18).
_HEARTBEAT_MS: Final = 30_000
logger = logging.getLogger("tmqp_nsq")

_MOST_PORT: Final = 65_535
_OLD_TLS: Final = ("ssl3.0", "tls1.0", "tls1.1")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``nsqd``; ends the process with its exit status."""
    run_program(NSQD, run, arguments)


def nsqd_config(values: FlagValues, statistics_socket: str = "") -> ServerConfig:
    """The configuration of the server for the flags.

    :param statistics_socket: path of a Unix socket for the program's own questions; empty for none.
    :raises FlagError: if a flag cannot be used.
    """
    tls = _tls(values)
    required = _tls_required(values)
    if required != "false" and not tls.certificate:
        raise FlagError("--tls-required and --tls-client-auth-policy need --tls-cert and --tls-key")
    heartbeat = min(_HEARTBEAT_MS, _positive_ms(values, "max-heartbeat-interval"))
    options: dict[str, Any] = {name: values.values[name] for name in _SAME}
    options |= {f"{name}_ms": _positive_ms(values, name) for name in _DURATIONS}
    options["heartbeat_interval_ms"] = heartbeat
    # The original's 0 keeps all messages on disk; here they are there anyway, and one in memory.
    options["mem-queue-size"] = max(1, values.number("mem-queue-size"))
    options["tls_required"] = required != "false"
    options["e2e_processing_latency_percentiles"] = _percentiles(values)
    options["auth_required"] = bool(values.texts("auth-http-address"))
    options["broadcast_address"] = values.text("broadcast-address") or hostname()
    options["broadcast_tcp_port"] = _broadcast_port(values, "tcp")
    options["broadcast_http_port"] = _broadcast_port(values, "http")
    options["nsqlookupd_tcp_addresses"] = [
        str(parse_address(each, "lookupd-tcp-address"))
        for each in values.texts("lookupd-tcp-address")
    ]
    nsq = DoorSettings(
        "nsq",
        (door_address(_listen(values, "tcp-address")),),
        limits={name.replace("-", "_"): _positive(values, name) for name in _LIMITS},
        options={name.replace("-", "_"): value for name, value in options.items()},
        tls_client_auth=_client_policy(values),
    )
    http = _http_doors(values, required == "true", bool(tls.certificate), statistics_socket)
    return ServerConfig(
        listen=(),
        allow_remote=True,
        data=values.text("data-path") or str(Path.cwd()),
        tls=tls,
        access=_access(values),
        broker=EngineLimits(
            max_message_bytes=max(
                EngineLimits().max_message_bytes, values.number("max-msg-size") + 1_024
            ),
            max_acknowledge_timeout_ms=max(
                EngineLimits().max_acknowledge_timeout_ms, values.milliseconds("max-msg-timeout")
            ),
        ),
        doors=(nsq, *http),
    )


def _http_doors(
    values: FlagValues, tls_required: bool, has_tls: bool, statistics_socket: str
) -> list[DoorSettings]:
    """The doors for HTTP and HTTPS; the private one first, so that lookupds are notified of the
    others."""
    doors = []
    if statistics_socket:
        private = door_address(Address("", 0, statistics_socket))
        doors.append(DoorSettings("nsqd-http", (private,)))
    https = _listen(values, "https-address") if has_tls and values.text("https-address") else None
    if https is not None:
        policy = _client_policy(values)
        address = door_address(https, tls=True)
        doors.append(DoorSettings("nsqd-http", (address,), tls=True, tls_client_auth=policy))
    if values.text("http-address"):
        plain = door_address(_listen(values, "http-address"))
        if tls_required and https is None:
            raise FlagError("--tls-required needs --https-address, or --http-address=''")
        options = {"https_port": https.port} if tls_required and https is not None else {}
        doors.append(DoorSettings("nsqd-http", (plain,), options=options))
    return doors


def _listen(values: FlagValues, flag: str) -> Address:
    return parse_address(values.text(flag), flag, listening=True)


def _broadcast_port(values: FlagValues, kind: str) -> int:
    """The port that lookupds are told; 0 for the one listened on.

    :raises FlagError: if it cannot be one.
    """
    port = values.number(f"broadcast-{kind}-port")
    if not 0 <= port <= _MOST_PORT:
        raise FlagError(f"--broadcast-{kind}-port must be 0 to {_MOST_PORT}, not {port}")
    return port


def _percentiles(values: FlagValues) -> list[float]:
    """The percentiles of end-to-end latency that are tracked.

    :raises FlagError: if one cannot be.
    """
    given: list[float] = list(values.values["e2e-processing-latency-percentile"])
    for each in given:
        if not 0 < each <= 1:
            raise FlagError(
                f"--e2e-processing-latency-percentile must be above 0 and at most 1.0, not {each:g}"
            )
    return given


def _positive(values: FlagValues, flag: str) -> int:
    if values.number(flag) <= 0:
        raise FlagError(f"--{flag} must be positive, not {values.number(flag)}")
    return values.number(flag)


def _positive_ms(values: FlagValues, flag: str) -> int:
    if values.milliseconds(flag) <= 0:
        shown = NSQD.find(flag)
        text = shown.kind.show(values.number(flag)) if shown is not None else ""
        raise FlagError(f"--{flag} must be at least 1ms, not {text}")
    return values.milliseconds(flag)


def _tls_required(values: FlagValues) -> str:
    """``true``, ``false`` or ``tcp-https``; a policy for certificates implies it (N99)."""
    words = {"1": "true", "t": "true", "0": "false", "f": "false"}
    word = words.get(values.text("tls-required"), values.text("tls-required"))
    if word == "false" and values.text("tls-client-auth-policy"):
        return "true"
    return word


def _client_policy(values: FlagValues) -> str:
    """What certificates clients are asked for: none without the flag (N100)."""
    return values.text("tls-client-auth-policy") or "none"


def _tls(values: FlagValues) -> TlsSettings:
    certificate, key = values.text("tls-cert"), values.text("tls-key")
    policy, roots = values.text("tls-client-auth-policy"), values.text("tls-root-ca-file")
    if bool(certificate) != bool(key):
        raise FlagError("--tls-cert and --tls-key go together")
    if policy and not roots:
        raise FlagError(
            f"--tls-client-auth-policy={policy} needs --tls-root-ca-file: unsigned certificates "
            f"prove nothing, so this server checks all of them"
        )
    if values.text("tls-min-version") == "tls1.3":
        raise FlagError("--tls-min-version: clients may always use tls1.2 or tls1.3")
    try:
        return TlsSettings(
            certificate=certificate,
            key=key,
            client_authorities=roots if certificate else "",
        )
    except ConfigError as error:
        raise FlagError(str(error)) from error


def _access(values: FlagValues) -> AccessConfig:
    """Who may do what: everybody, or those whom the auth servers let in."""
    addresses = values.texts("auth-http-address")
    if not addresses:
        return AccessConfig()
    for each in addresses:
        if "://" not in each:
            parse_address(each, "auth-http-address")
    arguments = {
        "addresses": list(addresses),
        "method": values.text("auth-http-request-method"),
        "timeout_s": values.seconds("http-client-request-timeout"),
    }
    return AccessConfig(kind="tmqp_server:NsqAuthServer", arguments=arguments)


async def run(values: FlagValues) -> None:
    """Run until SIGTERM or SIGINT.

    :raises FlagError: if the flags do not fit together.
    """
    path = values.text("data-path")
    if path and not Path(path).is_dir():  # noqa: ASYNC240 - nothing runs yet
        raise FlagError(f"--data-path: there is no directory {path}")
    if values.text("tls-min-version") in _OLD_TLS and "tls-min-version" in values.given:
        logger.warning("--tls-min-version: this server speaks tls1.2 and tls1.3, nothing older")
    if not values.text("statsd-address"):
        await serve(nsqd_config(values))
        return
    statsd = parse_address(values.text("statsd-address"), "statsd-address")
    with tempfile.TemporaryDirectory(prefix="nsqd-") as folder:
        socket_path = os.path.join(folder, "stats.sock")  # noqa: PTH118 - a text is wanted
        push = StatsdPush(
            values.text("statsd-prefix"),
            memory=values.is_on("statsd-mem-stats"),
            ephemeral=not values.is_on("statsd-exclude-ephemeral"),
        )
        await serve(nsqd_config(values, socket_path), _beside(values, socket_path, push, statsd))


def _beside(
    values: FlagValues, socket_path: str, push: StatsdPush, statsd: Address
) -> Callable[[Server], Coroutine[Any, Any, None]]:
    async def beside(_server: Server) -> None:
        await push_statistics(
            socket_path,
            push,
            statsd,
            interval_s=values.seconds("statsd-interval"),
            packet_bytes=_positive(values, "statsd-udp-packet-size"),
            http_port=_broadcast_port(values, "http"),
        )

    return beside

"""The options of ``--consumer-opt``, by the names and with the defaults of go-nsq (N167)."""

from __future__ import annotations

import difflib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from tmqp_nsq.flags import BOOL, DURATION, FLOAT, INT, TEXT, FlagError, Kind

__all__ = ["ConsumerOptions", "read_options"]

_SECOND: Final = 1_000_000_000
_KINDS: Final[dict[str, Kind]] = {"bool": BOOL, "int": INT, "float": FLOAT, "str": TEXT}
#: Options of go-nsq that change nothing here.
_IGNORED: Final = frozenset({"local_addr", "write_timeout", "low_rdy_timeout", "backoff_strategy"})


@dataclass(frozen=True)
class ConsumerOptions:
    """How a consumer behaves; durations, whose names end in ``_ns``, are nanoseconds."""

    max_in_flight: int = 200
    max_attempts: int = 5
    default_requeue_delay_ns: int = 90 * _SECOND
    max_requeue_delay_ns: int = 900 * _SECOND
    backoff_multiplier_ns: int = 1 * _SECOND
    max_backoff_duration_ns: int = 120 * _SECOND
    lookupd_poll_interval_ns: int = 60 * _SECOND
    lookupd_poll_jitter: float = 0.3
    low_rdy_idle_timeout_ns: int = 10 * _SECOND
    rdy_redistribute_interval_ns: int = 5 * _SECOND
    dial_timeout_ns: int = 1 * _SECOND
    read_timeout_ns: int = 60 * _SECOND
    heartbeat_interval_ns: int = 30 * _SECOND
    msg_timeout_ns: int = 0
    sample_rate: int = 0
    output_buffer_size: int = 16_384
    output_buffer_timeout_ns: int = 250_000_000
    client_id: str = ""
    hostname: str = ""
    user_agent: str = ""
    auth_secret: str = ""
    tls_v1: bool = False
    tls_root_ca_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_insecure_skip_verify: bool = False
    snappy: bool = False
    deflate: bool = False
    deflate_level: int = 6

    def tls_context(self) -> ssl.SSLContext:
        """What TLS connections use.

        :raises FlagError: if a file cannot be read.
        """
        try:
            context = ssl.create_default_context(cafile=self.tls_root_ca_file or None)
            if self.tls_cert:
                context.load_cert_chain(self.tls_cert, self.tls_key or None)
        except (OSError, ssl.SSLError) as error:
            raise FlagError(f"--consumer-opt: cannot load the TLS files: {error}") from error
        if self.tls_insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _known() -> dict[str, tuple[str, Kind]]:
    """The options by their names on the command line: field and kind."""
    found: dict[str, tuple[str, Kind]] = {}
    for each in fields(ConsumerOptions):
        if each.name.endswith("_ns"):
            found[each.name.removesuffix("_ns")] = (each.name, DURATION)
        else:
            found[each.name] = (each.name, _KINDS[str(each.type)])
    return found


def read_options(words: Sequence[str], start: ConsumerOptions) -> ConsumerOptions:
    """Change options by words such as ``max_attempts,10``; a word without value means true.

    :raises FlagError: if an option is unknown or its value is wrong.
    """
    known = _known()
    changes: dict[str, Any] = {}
    for word in words:
        name, comma, text = word.partition(",")
        # go-nsq takes dashes, too, and a second word for the certificate's checks.
        name = name.strip().replace("-", "_")
        if name in _IGNORED:
            continue
        if name not in known:
            near = difflib.get_close_matches(name, list(known), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise FlagError(f"--consumer-opt: unknown option {name!r}{hint}")
        place, kind = known[name]
        try:
            changes[place] = kind.read(text.strip() if comma else "true")
        except ValueError as error:
            raise FlagError(f"--consumer-opt: {name}: {error}") from None
    options = replace(start, **changes)
    _check(options)
    return options


def _check(options: ConsumerOptions) -> None:
    limits = (
        ("max_in_flight", options.max_in_flight, 1, 1_000_000),
        ("max_attempts", options.max_attempts, 0, 65_535),
        ("sample_rate", options.sample_rate, 0, 99),
        ("deflate_level", options.deflate_level, 1, 9),
        ("lookupd_poll_interval", options.lookupd_poll_interval_ns, 10_000_000, 300 * _SECOND),
    )
    for name, value, least, most in limits:
        if not least <= value <= most:
            raise FlagError(f"--consumer-opt: {name} must be from {least} to {most}, not {value}")
    if options.snappy and options.deflate:
        raise FlagError("--consumer-opt: snappy and deflate cannot both be on")

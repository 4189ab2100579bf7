"""The options of sources and sinks: names, values, and advice about common mistakes.

Options come from Spark as text, and the case of their names is ignored.  Each group is a frozen
dataclass; each field has the name of the option, the function that reads its text, and its
explanation.  A test compares the tables in ``docs/spark.md`` with them.  This module does not need
pyspark: a group is plain data that is sent to executors with the reader.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Final, TypeVar

from tmqp.address import parse_addresses
from tmqp.errors import LocalProtocolError
from tmqp_spark.errors import InvalidOption

__all__ = [
    "ConnectionOptions",
    "SinkOptions",
    "SourceOptions",
    "check_names",
    "check_table",
    "option",
    "option_names",
    "parse_duration_ms",
    "parse_size",
    "read_options",
    "read_stream_connection",
]

_Group = TypeVar("_Group")
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?", re.ASCII)
_DURATION_MS: Final = {
    None: 1,
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_SIZE: Final = re.compile(r"(\d+)\s*([kmg]?)(?:i?b)?", re.ASCII)
_SIZE_FACTOR: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_YES: Final = ("true", "1", "yes", "on")
_NO: Final = ("false", "0", "no", "off")
_SHOWN: Final = 100
#: Names in other connectors that are not similar enough to be suggested automatically.
_ELSEWHERE: Final = {
    "kafka.bootstrap.servers": "url",
    "topic": "channel",
    "path": "subscribe",
    "host": "url",
    "port": "url",
    "kafka.group.id": "group",
    "groupid": "group",
    "predefinedsubscription": "group",
}
#: Options of a streaming query for Spark itself, which passes them on.
_SPARKS_OWN: Final = ("checkpointlocation", "queryname")


# --- Reading one value ----------------------------------------------------------------------------


def parse_duration_ms(text: str) -> int:
    """Read a duration: ``250``, ``250ms``, ``15s``, ``10m``, ``1h``, ``1d``; return milliseconds.

    :raises ValueError: with the expected form.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("a duration such as 250ms, 15s, 10m or 1h")
    return round(float(match[1]) * _DURATION_MS[match[2]])


def parse_size(text: str) -> int:
    """Read a size: ``65536``, ``512k``, ``64m``, ``1g``; return bytes.

    :raises ValueError: with the expected form.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise ValueError("a positive size such as 65536, 512k, 64m or 1g")
    return int(match[1]) * _SIZE_FACTOR[match[2]]


def _number(least: int, most: int = 2**63 - 1) -> Callable[[str], int]:
    bounds = f"from {least} on" if most == 2**63 - 1 else f"from {least} to {most}"

    def read(text: str) -> int:
        text = text.strip()
        if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
            raise ValueError(f"a whole number {bounds}")
        return int(text)

    return read


def _batch_size(text: str) -> int:
    # A column of a batch has 31 bits for its bytes, and a message may come on top.
    size = parse_size(text)
    if size > 1 << 30:
        raise ValueError("at most 1g")
    return size


def _switch(text: str) -> bool:
    word = text.strip().lower()
    if word not in _YES and word not in _NO:
        raise ValueError("true or false")
    return word in _YES


def _word(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        word = text.strip().lower()
        if word not in words:
            raise ValueError(" or ".join(words))
        return word

    return read


def _text(text: str) -> str:
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("something: it is empty")
    return text.strip()


def _url(text: str) -> str:
    try:
        parse_addresses(text)
    except LocalProtocolError as error:
        raise ValueError(f"an address such as tmq://broker:2622 ({error})") from None
    return text.strip()


def _queue_id(text: str) -> int:
    number = _number(0)(text)
    if number > 65_535:
        raise ValueError("a queue id, 0 to 65535")
    return number


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression for channel/queue ({error})") from None
    return text


def option(
    name: str,
    read: Callable[[str], Any],
    about: str,
    default: Any = None,
    shown: str = "",
) -> Any:
    """Declare one field of a group.

    :param read: converts the text to the value; raises ValueError with the expected form.
    :param about: the explanation, in one line.
    :param shown: the default for the documentation, if it differs from the value.
    """
    return field(
        default=default, metadata={"name": name, "read": read, "about": about, "shown": shown}
    )


# --- The groups -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """The options of the connection to the broker."""

    url: str = option(
        "url",
        _url,
        "address of the broker: `tmq://host:port`, `tmqs://`, `unix:`; those of a group with commas"
        " between",
    )
    client_id: str = option("clientId", _text, "beginning of the ids of all connections", "")
    client_name: str = option("clientName", _text, "name that the broker shows", "tmqp-spark")
    client_type: str = option("clientType", _text, "type that the broker shows", "spark")
    token: str = option("token", _text, "the token for the broker's authenticator", "")
    token_file: str = option(
        "tokenFile", _text, "file with the token, read wherever a connection is opened", ""
    )
    tls: bool = option("tls", _switch, "speak TLS, as `tmqs://` does", False)
    tls_ca: str = option("tls.ca", _text, "file with the authorities to trust", "")
    tls_cert: str = option("tls.cert", _text, "file with this client's certificate", "")
    tls_key: str = option("tls.key", _text, "file with its key", "")
    connect_timeout_ms: int = option(
        "connectTimeoutMs", parse_duration_ms, "to reach the broker and be accepted", 10_000, "10s"
    )
    request_timeout_ms: int = option(
        "requestTimeoutMs", parse_duration_ms, "to get an answer", 30_000, "30s"
    )
    retries: int = option(
        "retries", _number(0), "attempts to reconnect after a lost connection or a busy broker", 10
    )
    retry_backoff_ms: int = option(
        "retryBackoffMs",
        parse_duration_ms,
        "pause before the first of them; it doubles, to 5 s",
        100,
    )
    outage_timeout_ms: int | None = option(
        "outageTimeout",
        parse_duration_ms,
        "how long to try to reconnect, instead of `retries` attempts",
        None,
        "a stream without `retries`: `10m`",
    )

    def __repr__(self) -> str:
        # A token must not reach a log.
        return f"ConnectionOptions(url={self.url!r}, client_name={self.client_name!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of sources: what to read, from where to where, and in what portions."""

    subscribe: str = option(
        "subscribe", _filled, "queues: `orders/7,orders/8`, or `orders` for all of a channel", ""
    )
    subscribe_pattern: str = option(
        "subscribePattern", _pattern, "regular expression that `channel/queue` must match whole", ""
    )
    assign: str = option("assign", _filled, 'queues as JSON: `{"orders":[7,8]}`', "")
    mode: str = option(
        "mode",
        _word("tap", "drain"),
        "`tap`, or `drain` for [queues without other consumers](#tap-and-drain)",
        "tap",
    )
    group: str = option(
        "group", _filled, "named group: a cursor in each queue, kept by the broker", ""
    )
    starting_offsets: str = option(
        "startingOffsets",
        _filled,
        "`earliest`, `latest`, `committed` or JSON",
        "",
        "`earliest`; a stream: `latest`",
    )
    starting_timestamp: int | None = option(
        "startingTimestamp", _number(0), "first message that came then or later, ms since 1970"
    )
    starting_offsets_by_timestamp: str = option(
        "startingOffsetsByTimestamp",
        _filled,
        'the same for each queue: `{"orders/7":1700000000000}`',
        "",
    )
    starting_strategy: str = option(
        "startingOffsetsByTimestampStrategy",
        _word("error", "latest"),
        "where nothing came then or later",
        "error",
    )
    ending_offsets: str = option("endingOffsets", _filled, "batch: `latest` or JSON", "latest")
    ending_timestamp: int | None = option(
        "endingTimestamp", _number(0), "batch: up to messages that came before, ms since 1970"
    )
    ending_offsets_by_timestamp: str = option(
        "endingOffsetsByTimestamp", _filled, "batch: the same for each queue", ""
    )
    journal_dir: str = option(
        "journalDir",
        _filled,
        "the broker's data directory, where tasks run [on its machine](#on-the-brokers-machine)",
        "",
    )
    prune: bool = option(
        "pruneAtBroker",
        _switch,
        "have the broker send [only what the schema needs](#less-over-the-network)",
        False,
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss",
        _switch,
        "fail when messages are missing, instead of continuing after them",
        True,
    )
    max_offsets: int | None = option(
        "maxOffsetsPerTrigger", _number(1), "stream: maximum number of messages in a batch"
    )
    max_bytes: int | None = option(
        "maxBytesPerTrigger", parse_size, "stream: maximum number of bytes in a batch"
    )
    min_offsets: int | None = option(
        "minOffsetsPerTrigger", _number(1), "stream: wait for this number, up to `maxTriggerDelay`"
    )
    max_trigger_delay_ms: int = option(
        "maxTriggerDelay",
        parse_duration_ms,
        "stream: wait for `minOffsetsPerTrigger`",
        900_000,
        "15m",
    )
    min_partitions: int | None = option("minPartitions", _number(1), "minimum number of tasks")
    max_records: int | None = option(
        "maxRecordsPerPartition", _number(1), "maximum number of messages in a task"
    )
    target_bytes: int = option(
        "targetPartitionBytes", parse_size, "bytes in a task, about", 64 << 20, "64m"
    )
    batch_bytes: int = option(
        "batchBytes", _batch_size, "bytes in an Arrow batch, about", 2 << 20, "2m"
    )
    prefetch: int = option("prefetch", _number(0, 6), "reads asked for ahead, up to 6", 2)
    poll_wait_ms: int = option(
        "pollWaitMs", parse_duration_ms, "stream: how long the broker may hold a question", 250
    )
    commit_mode: str = option(
        "commitMode", _word("eager", "lagged", "none"), "stream: when the group moves on", "eager"
    )
    commit_delay: int = option(
        "commitDelayBatches", _number(0), "stream: batches that the group stays behind", 0
    )
    filter_pushdown: bool = option(
        "filterPushdown",
        _switch,
        "batch: filter at the source; [load again for each query](#filters)",
        False,
    )
    include_headers: bool = option("includeHeaders", _switch, "column `headers`", False)
    include_frame: bool = option(
        "includeFrame", _switch, "column `frame`: the whole message", False
    )
    checksums: str = option(
        "checksums",
        _word("all", "index", "none"),
        "what of each block is checked: `all` of it, head and `index`, or `none`",
        "all",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of sinks: where to write, and with which guarantee."""

    channel: str = option("channel", _filled, "channel, where the rows have no such column", "")
    queue: int | None = option("queue", _queue_id, "queue, where the rows have no such column")
    guarantee: str = option(
        "guarantee",
        _word("exactly_once", "at_least_once"),
        "each row once whatever happens, or perhaps again after a failure",
        "exactly_once",
    )
    ack: str = option(
        "ack",
        _word("stored", "accepted", "none"),
        "at least once: the answer that a task waits for",
        "stored",
    )
    window: int = option("window", _number(1), "pieces on their way unanswered", 16)
    batch_bytes: int = option("batchBytes", parse_size, "bytes sent in one piece", 1 << 20, "1m")
    txn_timeout_ms: int = option(
        "txnTimeout",
        parse_duration_ms,
        "how long the broker keeps what is not committed",
        600_000,
        "10m",
    )
    txn_app_id: str = option("txnAppId", _filled, "batch: name under which a write counts once", "")
    txn_version: int | None = option("txnVersion", _number(0), "batch: number of the write, rising")
    create_queue: bool = option(
        "createQueue", _switch, "create the queue if it is not there", False
    )
    ignore_unknown: bool = option(
        "ignoreUnknownColumns", _switch, "skip columns without a meaning for the sink", False
    )


#: The options that Spark adds to the user's when it creates a catalogue table.
_TABLE_PROPERTIES: Final = frozenset({"provider", "owner", "location", "comment", "external"})
_TABLE_ADVICE: Final = (
    "Spark passes the options of CREATE TABLE to no Python format. Create the table with its"
    " columns and give the options where it is used, as in CREATE TABLE t (value BINARY, seq"
    " BIGINT) USING {0}; CREATE VIEW v AS SELECT * FROM t WITH (url='tmq://host:2622',"
    " subscribe='orders/7')"
)


def check_table(given: Iterable[str], format_name: str) -> None:
    """Check that the options do not come from Spark's catalogue, which loses the options of a
    table.

    :param given: the names of the options.
    :param format_name: as in ``USING``.
    :raises InvalidOption: when a table is created, or used without options.
    """
    names = {name.lower() for name in given}
    if "provider" in names and names & _TABLE_PROPERTIES - {"provider"}:
        raise InvalidOption(
            f"a table in Spark's catalogue cannot take its columns or options from {format_name}: "
            + _TABLE_ADVICE.format(format_name)
        )
    if "url" not in names:
        raise InvalidOption(
            "the option url is missing: where is the broker? tmq://host:2622. For a table in"
            " Spark's catalogue: " + _TABLE_ADVICE.format(format_name)
        )


#: How long a streaming query waits for an unreachable broker.
_STREAM_OUTAGE_MS: Final = 600_000


# --- Reading all of them --------------------------------------------------------------------------


def _declared(groups: Iterable[type[Any]]) -> dict[str, Field[Any]]:
    """The fields of some groups by the names of their options."""
    return {
        found.metadata["name"]: found
        for group in groups
        for found in fields(group)
        if "name" in found.metadata
    }


def option_names(*groups: type[Any]) -> list[str]:
    """The names of all options of some groups, as the documentation writes them."""
    return list(_declared(groups))


def check_names(given: Iterable[str], what: str, *groups: type[Any]) -> None:
    """Check that every option is in one of these groups.

    :param what: for whom, in a word: ``source``.
    :raises InvalidOption: if one is unknown; the text suggests the most similar one.
    """
    known = {name.lower(): name for name in option_names(*groups)}
    for name in given:
        lower = name.lower()
        if lower in known or lower in _SPARKS_OWN:
            continue
        near = _ELSEWHERE.get(lower, "").lower()
        if near not in known:
            near = next(iter(difflib.get_close_matches(lower, known, 1, 0.5)), "")
        advice = f"did you mean {known[near]}?" if near else f"known: {', '.join(known.values())}"
        raise InvalidOption(f"the tmqp {what} has no option {name!r}; {advice}")


def read_options(group: type[_Group], given: Mapping[str, str]) -> _Group:
    """Make a group from the given options; those of other groups are ignored.

    :raises InvalidOption: if a value is invalid.
    """
    lower = {name.lower(): value for name, value in given.items()}
    values: dict[str, Any] = {}
    for name, found in _declared([group]).items():
        text = lower.get(name.lower())
        if text is None:
            continue
        try:
            values[found.name] = found.metadata["read"](text)
        except ValueError as error:
            raise InvalidOption(f"option {name} must be {error}, got {text[:_SHOWN]!r}") from None
    if group is ConnectionOptions and "url" not in values:
        raise InvalidOption("the option url is missing: where is the broker? tmq://host:2622")
    return group(**values)


def read_stream_connection(given: Mapping[str, str]) -> ConnectionOptions:
    """Make the connection options of a streaming query.

    A streaming query tries to reconnect for ten minutes, unless ``outageTimeout`` or ``retries`` is
    set.

    :raises InvalidOption: as :func:`read_options`.
    """
    options = read_options(ConnectionOptions, given)
    if options.outage_timeout_ms is not None or "retries" in {name.lower() for name in given}:
        return options
    return replace(options, outage_timeout_ms=_STREAM_OUTAGE_MS)

"""Writes the items of long lists quickly.

The models of ``tmqp.models`` check and convert every value, as input from peers needs it.  The
engine's own data do not, and the largest list that fits an answer must be written within one step
(reliability.md, F8).  So these items are written by templates, which are made from the declarations
of the models.  The output is the same as that of the models, byte for byte (F65); a test compares
them.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import STATUS_INFORMATION_WORDS
from tmqp.models import (
    BindingInformation,
    CellInformation,
    ChannelInformation,
    ClientInformation,
    CursorInformation,
    FeedInformation,
    Model,
    OffsetsInformation,
    PartInformation,
    QueueInformation,
    RouterInformation,
    TransactionInformation,
)
from tmqp.models._json import dump
from tmqp.models._model import properties_of
from tmqp_server.doors.native.cells import KINDS, key_text, left_ms
from tmqp_server.engine.commands import (
    COUNTER,
    CellSnapshot,
    KeptPart,
    ListChannels,
    ListClients,
    ListCommand,
    ListConsumers,
    ListFeeds,
    ListQueues,
)
from tmqp_server.engine.model.snapshots import (
    ChannelSnapshot,
    ClientSnapshot,
    CursorSnapshot,
    FeedSnapshot,
    OffsetsSnapshot,
    QueueSnapshot,
    RouterSnapshot,
    TransactionSnapshot,
)
from tmqp_server.engine.options import BindingOptions
from tmqp_server.engine.options.table import ADDRESS, CHANNEL_OPTIONS, QUEUE_OPTIONS, Option

__all__ = ["most_items", "unix_ms", "written", "written_cursors"]


def _template(model: type[Model]) -> str:
    pairs = [f'"{each.name}":%s' for each in properties_of(model) if not each.extension]
    return "{" + ",".join(pairs) + "}"


_BINDING: Final[str] = _template(BindingInformation)
_CELL: Final[str] = _template(CellInformation)
_CHANNEL: Final[str] = _template(ChannelInformation)
_CLIENT: Final[str] = _template(ClientInformation)
_CURSORS: Final[list[str]] = _template(CursorInformation).split("%s")
_FEED: Final[str] = _template(FeedInformation)
_OFFSETS: Final[str] = _template(OffsetsInformation)
_PART: Final[str] = _template(PartInformation)
_QUEUE: Final[str] = _template(QueueInformation)
_ROUTER: Final[str] = _template(RouterInformation)
_TRANSACTION: Final[str] = _template(TransactionInformation)
_OPTIONS: Final[dict[str, Option]] = {each.attribute: each for each in QUEUE_OPTIONS}
#: Our own properties of a queue: the beginning of each, its attribute, and the option it shows.
_EXTENSIONS: Final[list[tuple[str, str, Option | None]]] = [
    (f',"{each.name}":', each.attribute, _OPTIONS.get(each.attribute))
    for each in properties_of(QueueInformation)
    if each.extension
]

_OPTIONS_OF_CHANNELS: Final[dict[str, Option]] = {each.attribute: each for each in CHANNEL_OPTIONS}
#: Our own properties of a channel, each shown only if it differs from its default.
_CHANNEL_EXTENSIONS: Final[list[tuple[str, str, Option | None]]] = [
    (f',"{each.name}":', each.attribute, _OPTIONS_OF_CHANNELS.get(each.attribute))
    for each in properties_of(ChannelInformation)
    if each.extension
]


def _least_bytes(template: str) -> int:
    """The bytes of the shortest item and a comma: each value has at least one byte."""
    return len(template) - template.count("%s") + 1


_LEAST_BYTES: Final[dict[type[ListCommand], int]] = {
    ListChannels: _least_bytes(_CHANNEL),
    ListClients: _least_bytes(_CLIENT),
    ListConsumers: _least_bytes(_CLIENT),
    ListFeeds: _least_bytes(_FEED),
    ListQueues: _least_bytes(_QUEUE),
}
#: Larger than any item.
_MOST_ITEM_BYTES: Final = 1 << 24
_STATUS: Final[tuple[str, ...]] = tuple(STATUS_INFORMATION_WORDS)


def written(item: object, wall_clock_offset_s: float) -> bytes | None:
    """The JSON object of an item of a long list; None for any other item.

    :param wall_clock_offset_s: what to add to the engine's times to get Unix time.
    """
    if isinstance(item, QueueSnapshot):
        return _queue(item, wall_clock_offset_s)
    if isinstance(item, ClientSnapshot):
        return _client(item)
    if isinstance(item, ChannelSnapshot):
        return _channel(item)
    if isinstance(item, TransactionSnapshot):
        return _transaction(item, wall_clock_offset_s)
    if isinstance(item, FeedSnapshot):
        return _feed(item)
    if isinstance(item, OffsetsSnapshot):
        return _offsets(item)
    if isinstance(item, CursorSnapshot):
        data = written_cursors([item], _MOST_ITEM_BYTES)
        assert data is not None, "a name, a channel and four numbers"
        return data[1:-1]
    if isinstance(item, CellSnapshot):
        return _cell(item)
    if isinstance(item, BindingOptions):
        return _binding(item)
    if isinstance(item, RouterSnapshot):
        return (_ROUTER % (_text(item.name), _flag(item.enabled), item.method)).encode()
    if isinstance(item, KeptPart):
        return (_PART % (item.first, item.last, item.count, item.bytes)).encode()
    return None


def most_items(kind: type[ListCommand], most_bytes: int) -> int:
    """The number of items that may fit an answer of this size; longer lists are not written."""
    return max(most_bytes // _LEAST_BYTES[kind], 1)


def unix_ms(seconds: float | None, offset_s: float) -> int:
    """A time of the engine as Unix milliseconds, 0 for never (F68)."""
    return 0 if seconds is None else int((seconds + offset_s) * 1000)


def _text(text: str | None) -> str:
    """A JSON string, or null."""
    if text is None:
        return "null"
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return '"' + text + '"'
    return dump(text).decode()


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _numbers(numbers: tuple[int, ...] | None) -> str:
    if numbers is None:
        return "null"
    return "[" + ",".join([str(number) for number in numbers]) + "]"


def _client(item: ClientSnapshot) -> bytes:
    values = (
        _text(item.client_id),
        _text(item.name),
        _text(item.client_type),
        item.online_ms,
        _flag(item.is_authenticated),
    )
    return (_CLIENT % values).encode()


def _channel(item: ChannelSnapshot) -> bytes:
    options = item.options
    queue = options.queue
    values = (
        _text(item.name),
        _numbers(item.queues),
        _flag(options.allow_multiple_queues),
        _numbers(options.allowed_queues),
        _flag(queue.send_only_first_acquirer),
        _flag(queue.request_acknowledge),
        queue.acknowledge_timeout_ms,
        queue.message_timeout_ms,
        _flag(queue.use_message_id),
        _flag(queue.wait_for_acknowledge),
        _flag(queue.hide_client_names),
        item.active_clients,
        options.client_limit,
        options.queue_limit,
        _flag(options.destroy_when_empty),
    )
    written = _CHANNEL % values
    more = ""
    for head, attribute, option in _CHANNEL_EXTENSIONS:
        value = getattr(item if option is None else options, attribute)
        if value is not None and (option is None or value != option.initial):
            more += head + dump(value).decode()
    return (written[:-1] + more + "}").encode() if more else written.encode()


def _binding(item: BindingOptions) -> bytes:
    values = (
        _text(item.name),
        _text(item.target),
        "null" if item.content_type is None else item.content_type,
        item.priority,
        item.interaction,
        item.kind,
        item.method,
    )
    return (_BINDING % values).encode()


def _transaction(item: TransactionSnapshot, offset_s: float) -> bytes:
    values = (
        item.number,
        _text(item.application),
        item.epoch,
        "null" if item.part is None else item.part,
        item.attempt,
        _text(item.state),
        item.count,
        item.size,
        max(unix_ms(item.at, offset_s), 0),
    )
    return (_TRANSACTION % values).encode()


def _feed(item: FeedSnapshot) -> bytes:
    values = (
        _text(item.channel),
        item.queue_id,
        _text(item.target),
        item.target_queue,
        _text(item.language),
        _text(item.text),
        item.copied,
        item.passed,
        item.skipped,
        item.waiting,
    )
    return (_FEED % values).encode()


def _cell(item: CellSnapshot) -> bytes:
    is_counter = item.kind == COUNTER
    values = (
        _text(key_text(item.key)),
        _text(KINDS[item.kind]),
        item.number,
        item.count if is_counter else 0,
        0 if is_counter else len(item.value),
        left_ms(item),
        item.reads,
        item.writes,
        item.reads_per_minute,
        item.writes_per_minute,
    )
    return (_CELL % values).encode()


def _offsets(item: OffsetsSnapshot) -> bytes:
    text = _OFFSETS % (
        _text(item.channel),
        item.queue_id,
        _text(item.incarnation),
        item.earliest,
        item.latest,
        item.count,
        item.bytes,
        item.oldest_us // 1_000,
    )
    if item.committed is not None:
        text = f'{text[:-1]},"Committed":{item.committed}}}'
    if item.at is not None:
        text = f'{text[:-1]},"At":{item.at}}}'
    return text.encode()


def written_cursors(items: list[CursorSnapshot], most_bytes: int) -> bytes | None:
    """The JSON array of cursors; None if it is larger than *most_bytes*.  The beginning of an item
    is made once for each channel, which takes half of the time."""
    before_name, before_channel, before_queue, before_incarnation, before_sequence, end = _CURSORS
    name = channel = begin = ""
    pieces: list[str] = []
    left = most_bytes - 1
    for item in items:
        if not begin or item.name != name or item.channel != channel:
            name, channel = item.name, item.channel
            begin = before_name + _text(name) + before_channel + _text(channel) + before_queue
        text = (
            begin
            + str(item.queue_id)
            + before_incarnation
            + _text(item.incarnation)
            + before_sequence
            + str(item.sequence)
        )
        if item.behind is not None and item.behind_bytes is not None:
            text += ',"Behind":' + str(item.behind) + ',"BehindBytes":' + str(item.behind_bytes)
        text += end
        left -= len(text) + 1  # at least so many bytes
        if left < 0:
            return None
        pieces.append(text)
    data = ("[" + ",".join(pieces) + "]").encode()
    return data if len(data) <= most_bytes else None


def _queue(item: QueueSnapshot, offset_s: float) -> bytes:
    options = item.options
    values = (
        _text(item.channel),
        _text(options.tag),
        item.queue_id,
        item.priority_messages,
        item.messages,
        _text(_STATUS[options.status]),
        _flag(options.send_only_first_acquirer),
        _flag(options.request_acknowledge),
        options.acknowledge_timeout_ms,
        options.message_timeout_ms,
        _flag(options.use_message_id),
        _flag(options.wait_for_acknowledge),
        _flag(options.hide_client_names),
        item.received_messages,
        item.sent_messages,
        item.deliveries,
        item.negative_acks,
        item.acks,
        item.timeout_messages,
        item.saved_messages,
        item.removed_messages,
        item.errors,
        unix_ms(item.last_message_received_s, offset_s),
        unix_ms(item.last_message_sent_s, offset_s),
        options.message_limit,
        options.message_size_limit,
    )
    text = _QUEUE % values
    extensions = _extensions(item)
    if extensions:
        text = text[:-1] + extensions + "}"
    return text.encode()


def _extensions(item: QueueSnapshot) -> str:
    """The extension properties that differ from their defaults, as JSON."""
    options = item.options
    parts: list[str] = []
    for begin, attribute, option in _EXTENSIONS:
        if option is not None:
            value: object = getattr(options, option.name)
            says_something = value != option.initial
            if option.kind == ADDRESS and isinstance(value, tuple):
                value = f"{value[0]};{value[1]}"
        else:
            value = item.spilled
            if attribute == "dropped_messages":
                value = item.overflowed + item.damaged
            elif attribute == "displaced_messages":
                value = item.displaced
            elif attribute == "dead_messages":
                value = item.dead
            elif attribute == "disk_bytes":
                value = item.disk_bytes
            elif attribute == "deferred_messages":
                value = item.deferred
            elif attribute == "released_messages":
                value = item.released
            elif attribute == "refused_messages":
                value = item.refused
            elif attribute == "skipped_deliveries":
                value = item.skipped
            says_something = value != 0
        if says_something:
            parts.append(begin + dump(value).decode())
    return "".join(parts)

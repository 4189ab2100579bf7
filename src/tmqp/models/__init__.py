"""Every JSON body of the protocol: of requests, answers and events.

Each model is a frozen class with keyword arguments, ``from_json``, ``from_object``, ``to_object``
and ``to_json``; ``parse_list`` and ``dump_list`` read and write arrays of them::

    options = QueueOptions.from_json(body)  # raises ModelError if it is invalid
    answer = dump_list([ClientInformation(id="c1", online_ms=1200)])

Reading is tolerant where the original is: unknown properties are ignored, null means missing, and
names in answers and events may have any case.  It is strict where guessing would be wrong: a status
must be a number, a queue id must fit into 16 bits, a name may occur once.  Limits are checked
before a body is parsed; reading raises only :class:`ModelError`.

Reading order: ``_json`` (bounded text), ``_model`` (properties and the base class), then the
declarations in ``options``, ``information``, ``reading``, ``transactions`` and ``events``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tmqp._lazy import loading as _loading
from tmqp.models._json import (
    MAX_NESTING_DEPTH,
    MAX_NUMBER_DIGITS,
    MAX_PROPERTIES,
    MIN_BYTES_PER_CONTAINER,
    MIN_BYTES_PER_NESTED,
    MIN_BYTES_PER_VALUE,
)
from tmqp.models._kinds import MAX_TEXT_CHARACTERS
from tmqp.models._model import (
    MAX_BODY_BYTES,
    MAX_LIST_BYTES,
    Model,
    ModelError,
    Property,
    dump_list,
    parse_list,
    properties_of,
)

if TYPE_CHECKING:
    from tmqp.models.cells import CellInformation
    from tmqp.models.events import (
        EVENT_MODELS,
        ChannelEvent,
        ClientEvent,
        MessageEvent,
        QueueEvent,
        SubscriptionEvent,
    )
    from tmqp.models.feeds import FeedInformation
    from tmqp.models.information import (
        ChannelInformation,
        ClientInformation,
        NodeInformation,
        QueueInformation,
        RouterInformation,
    )
    from tmqp.models.nodes import NodeDecision, ServerInformation
    from tmqp.models.options import BindingInformation, ChannelOptions, QueueOptions
    from tmqp.models.reading import (
        CursorInformation,
        GroupOffsets,
        KnownOffsets,
        OffsetsInformation,
        PartInformation,
    )
    from tmqp.models.transactions import TransactionInformation

__all__ = [
    "EVENT_MODELS",
    "MAX_BODY_BYTES",
    "MAX_LIST_BYTES",
    "MAX_NESTING_DEPTH",
    "MAX_NUMBER_DIGITS",
    "MAX_PROPERTIES",
    "MAX_TEXT_CHARACTERS",
    "MIN_BYTES_PER_CONTAINER",
    "MIN_BYTES_PER_NESTED",
    "MIN_BYTES_PER_VALUE",
    "BindingInformation",
    "CellInformation",
    "ChannelEvent",
    "ChannelInformation",
    "ChannelOptions",
    "ClientEvent",
    "ClientInformation",
    "CursorInformation",
    "FeedInformation",
    "GroupOffsets",
    "KnownOffsets",
    "MessageEvent",
    "Model",
    "ModelError",
    "NodeDecision",
    "NodeInformation",
    "OffsetsInformation",
    "PartInformation",
    "Property",
    "QueueEvent",
    "QueueInformation",
    "QueueOptions",
    "RouterInformation",
    "ServerInformation",
    "SubscriptionEvent",
    "TransactionInformation",
    "dump_list",
    "parse_list",
    "properties_of",
]

#: The names that each module defines.  Modules are loaded on demand, because each declaration takes
#: a millisecond.
_HOMES: Final = {
    "cells": "CellInformation",
    "events": "EVENT_MODELS ChannelEvent ClientEvent MessageEvent QueueEvent SubscriptionEvent",
    "feeds": "FeedInformation",
    "information": (
        "ChannelInformation ClientInformation NodeInformation QueueInformation RouterInformation"
    ),
    "nodes": "NodeDecision ServerInformation",
    "options": "BindingInformation ChannelOptions QueueOptions",
    "reading": "CursorInformation GroupOffsets KnownOffsets OffsetsInformation PartInformation",
    "transactions": "TransactionInformation",
}

__getattr__, __dir__ = _loading(globals(), _HOMES)

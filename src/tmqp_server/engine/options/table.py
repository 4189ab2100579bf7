"""The options of queues and channels, as ``tmqp.models.options`` declares them, for the server.

All code that handles every option uses these tables: the configuration, the stores, the door, the
documents, and ``tools/make_options.py``, which generates the records of ``values.py``.  Options
that no client can set in a body are declared here.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import QueueStatus
from tmqp.models import ChannelOptions, Model, QueueOptions
from tmqp.models._kinds import AddressKind
from tmqp.models._model import properties_of

__all__ = [
    "ADDRESS",
    "CHANNEL_OPTIONS",
    "FLAG",
    "IDS",
    "NUMBER",
    "QUEUE_OPTIONS",
    "STATUS",
    "TEXT",
    "Option",
]

#: The kinds of values.
FLAG: Final = "flag"
NUMBER: Final = "number"
TEXT: Final = "text"
#: The number of a status, which configurations write as a word.
STATUS: Final = "status"
#: A list of queue ids, or None.
IDS: Final = "ids"
#: A queue, by its channel's name and its id, or None.
ADDRESS: Final = "address"


class Option:
    """One option.

    ``name`` is used in records and in the configuration; ``attribute`` is the name in the model,
    empty if it has none.  Stores use the name ``kept``, which the configuration accepts, too.
    ``initial`` is the default.  A number is ``least`` or more, a text one of ``words`` if there are
    any.
    """

    __slots__ = ("attribute", "initial", "kept", "kind", "least", "meaning", "name", "words")

    def __init__(
        self,
        name: str,
        kind: str,
        initial: object,
        meaning: str,
        attribute: str,
        kept: str,
        least: int = 0,
        words: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.kind = kind
        self.initial = initial
        self.meaning = meaning
        self.attribute = attribute
        self.kept = kept
        self.least = least
        self.words = words


def _kind_of(initial: object) -> str:
    if isinstance(initial, bool):
        return FLAG
    if isinstance(initial, QueueStatus):
        return STATUS
    if isinstance(initial, int):
        return NUMBER
    return IDS if initial is None else TEXT


def _options_of(model: type[Model]) -> tuple[Option, ...]:
    found: list[Option] = []
    for each in properties_of(model):
        facts = each.option
        assert facts is not None, f"{each.name} is declared as a property only"
        name = facts.own or each.attribute
        initial = facts.initial
        kind = ADDRESS if isinstance(each.kind, AddressKind) else _kind_of(initial)
        if kind == STATUS and isinstance(initial, int):
            initial = int(initial)
        kept = facts.older or name
        least: int = min(getattr(each.kind, "low", 0), 0)
        found.append(
            Option(name, kind, initial, facts.meaning, each.attribute, kept, least, facts.words)
        )
    return tuple(found)


_OF_QUEUES: Final = _options_of(QueueOptions)
#: The options of queues.
QUEUE_OPTIONS: Final[tuple[Option, ...]] = (
    *_OF_QUEUES,
    Option("tag", TEXT, None, "The name by which tag bindings find the queue.", "", "tag"),
)
#: The options of channels, except the initial ones of their queues.
CHANNEL_OPTIONS: Final[tuple[Option, ...]] = tuple(
    [each for each in _options_of(ChannelOptions) if each.name not in {o.name for o in _OF_QUEUES}]
)

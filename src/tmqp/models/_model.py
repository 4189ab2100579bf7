"""What all JSON models share: their properties, reading, checking and writing.

Theory of operation
-------------------
A model is a frozen dataclass.  Each of its fields carries a :class:`Property` as metadata: the name
on the wire, other names that are read, and the *kind* (text, flag, number with its range, status).
That declaration is the only table: the order of the fields is the order on the wire.

``from_object`` only picks values by name.  Checking and converting happens in one place, when the
instance is made, whether a peer's body or a program's keywords made it: so an instance always has
values that can be written, and a program that passes ``status="Pull"`` gets the same error as a
peer that sends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar, Final, Self, TypeVar

from tmqp.errors import TmqpError
from tmqp.models._json import JsonRefusedError, dump, load
from tmqp.models._kinds import (
    STATUS_NUMBER,
    UNFIT,
    AddressKind,
    FlagKind,
    IntegerKind,
    IntegersKind,
    NumberedKind,
    PropertyKind,
    StatusWordKind,
    TextKind,
)
from tmqp.models._option_facts import OptionFacts

__all__ = [
    "MAX_BODY_BYTES",
    "MAX_LIST_BYTES",
    "Model",
    "ModelError",
    "Property",
    "address",
    "dump_list",
    "extension",
    "flag",
    "integer",
    "integers",
    "numbered",
    "option",
    "parse_items",
    "parse_list",
    "properties_of",
    "status_number",
    "status_word",
    "text",
]

#: Largest body of a request or of one event, in bytes.
MAX_BODY_BYTES: Final = 65_536
#: Largest list, or information with a list, in bytes; the default limit of a payload.
MAX_LIST_BYTES: Final = 1_048_576

_SHOWN_CHARACTERS: Final = 40

_M = TypeVar("_M", bound="Model")


class ModelError(TmqpError):
    """A JSON body, or a value passed to a model, is invalid.

    :ivar model: the model's name, ``"QueueOptions"``.
    :ivar property_name: the property's name on the wire; empty if the whole body is invalid.
    :ivar expected: what is valid, completing "must be ...".
    :ivar got: the invalid value, shortened.
    :ivar index: the index in a list, from 0; None outside of a list.
    """

    def __init__(
        self, model: str, property_name: str, expected: str, got: str, index: int | None = None
    ) -> None:
        place = model if index is None else f"{model}, item {index}"
        super().__init__(f"{place}: {property_name or 'the body'} must be {expected}, got {got}")
        self.model = model
        self.property_name = property_name
        self.expected = expected
        self.got = got
        self.index = index

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str, int | None]]:
        return type(self), (self.model, self.property_name, self.expected, self.got, self.index)


def _show(value: object) -> str:
    """Describe *value* for an error, in JSON's own words and shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        short = value[:_SHOWN_CHARACTERS]
        return repr(short) + (f"... of {len(value)} characters" if short != value else "")
    if isinstance(value, (list, tuple)):
        return f"an array of {len(value)}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 128:
        return "a far larger number"
    return repr(value)[:_SHOWN_CHARACTERS]


# --- Properties: the declarations of a model ---------------------------------------------------


class Property:
    """One property of a model: its wire name, its attribute and what it holds.

    :ivar name: the name that is written, and read first.
    :ivar also: other names that are read.
    :ivar attribute: the attribute of the model.
    :ivar kind: what it holds.
    :ivar required: whether a body without it is refused.
    :ivar nullable: whether the attribute may be None.
    :ivar extension: it is ours, and not written when it is None.
    :ivar option: what else is declared of it if it is an option; None if it is not.
    """

    __slots__ = (
        "also",
        "attribute",
        "default",
        "extension",
        "kind",
        "name",
        "nullable",
        "option",
        "required",
    )

    def __init__(self, name: str, kind: PropertyKind, also: tuple[str, ...] = ()) -> None:
        self.name = name
        self.kind = kind
        self.also = also
        self.attribute = ""
        self.required = False
        self.nullable = False
        self.extension = False
        self.option: OptionFacts | None = None
        #: The attribute's default if it needs neither a check nor a conversion.
        self.default: object = MISSING

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the largest integer that it may hold; None if it holds no integer."""
        kind = self.kind
        return (kind.low, kind.high) if isinstance(kind, IntegerKind) else None

    def bound_to(self, declared: Field[Any]) -> Property:
        """Return this property as the dataclass field *declared* completes it."""
        bound = Property(self.name, self.kind, self.also)
        bound.attribute = declared.name
        bound.required = declared.default is MISSING
        bound.nullable = declared.default is None
        bound.extension = self.extension
        bound.option = self.option
        default = declared.default
        if default is None or (default is not MISSING and self.kind.read(default) is default):
            bound.default = default
        return bound


_Metadata = dict[str, Property]
_KEY: Final = "tmqp"


def text(name: str, *also: str) -> _Metadata:
    """Declare a property that holds text."""
    return {_KEY: Property(name, TextKind(), also)}


def address(name: str) -> _Metadata:
    """Declare a property that holds the address of a queue."""
    return {_KEY: Property(name, AddressKind())}


def flag(name: str) -> _Metadata:
    """Declare a property that holds true or false."""
    return {_KEY: Property(name, FlagKind())}


def integer(name: str, bounds: tuple[int, int], *also: str) -> _Metadata:
    """Declare a property that holds an integer within *bounds*, both included."""
    return {_KEY: Property(name, IntegerKind(*bounds), also)}


def integers(name: str, bounds: tuple[int, int]) -> _Metadata:
    """Declare a property that holds an array of integers within *bounds*, both included."""
    return {_KEY: Property(name, IntegersKind(*bounds))}


def numbered(name: str, enumeration: type[IntEnum], *, strict: bool = True) -> _Metadata:
    """Declare a property that holds the number of a member of *enumeration*."""
    return {_KEY: Property(name, NumberedKind(enumeration, strict=strict))}


def status_number(name: str) -> _Metadata:
    """Declare a property that holds a queue status as a number."""
    return {_KEY: Property(name, STATUS_NUMBER)}


def status_word(name: str, words: tuple[str, ...]) -> _Metadata:
    """Declare a property that holds a queue status as one of *words*."""
    return {_KEY: Property(name, StatusWordKind(words))}


def option(
    metadata: _Metadata,
    initial: object,
    meaning: str,
    *,
    own: str = "",
    older: str = "",
    words: tuple[str, ...] = (),
) -> _Metadata:
    """Declare that a property is an option of a queue or a channel; see ``_option_facts``.

    :param own: empty for the attribute's name.
    :param older: empty for *own*.
    :param words: the texts that it may be; empty for any.
    """
    (declared,) = metadata.values()
    declared.option = OptionFacts(initial, meaning, own, older, words)
    return metadata


def extension(metadata: _Metadata) -> _Metadata:
    """Declare that a property is our extension of the specification, which other peers ignore."""
    metadata[_KEY].extension = True
    return metadata


def properties_of(model: type[Model]) -> tuple[Property, ...]:
    """Return the properties of *model* in the order of the wire.

    A model that extends another writes its own properties first: that is how the original client
    serializes channel options (F70).
    """
    table = _TABLES.get(model)
    if table is None:
        inherited = {name for base in model.__bases__ for name in _field_names(base)}
        declared = sorted(fields(model), key=lambda field: field.name in inherited)
        table = tuple([field.metadata[_KEY].bound_to(field) for field in declared])
        _TABLES[model] = table
    return table


#: The tables made so far; a model's never changes.
_TABLES: Final[dict[type, tuple[Property, ...]]] = {}


def _field_names(base: type) -> tuple[str, ...]:
    return tuple(getattr(base, "__dataclass_fields__", ()))


# --- Models ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Base class of all JSON models.

    The constructor checks every value, and converts values that have a better type (a status number
    to :class:`tmqp.constants.QueueStatus`, a list of ids to a tuple).

    :raises ModelError: if a value is invalid; it names the property, the valid values and the
        invalid one.
    """

    #: Whether names are read in any case, as the original client reads answers.  The original
    #: server ignores an option whose name has another case (F71), and so do we.
    ignores_case: ClassVar[bool] = True
    #: The largest body that is read, in bytes.
    max_bytes: ClassVar[int] = MAX_BODY_BYTES

    def __post_init__(self) -> None:
        for declared in properties_of(type(self)):
            value = getattr(self, declared.attribute)
            if value is declared.default:
                continue
            read = declared.kind.read(value)
            if read is UNFIT:
                model = type(self).__name__
                raise ModelError(model, declared.name, declared.kind.expected, _show(value))
            if read is not value:
                object.__setattr__(self, declared.attribute, read)

    @classmethod
    def from_json(cls, data: bytes | str, *, max_bytes: int | None = None) -> Self:
        """Read one JSON object.

        Unknown properties are ignored; null is the same as a property that is missing.

        :param max_bytes: the largest body, in bytes, instead of the model's own limit.
        :raises ModelError: if *data* is not such an object; no other error is raised.
        """
        return cls.from_object(_load(cls, data, cls.max_bytes if max_bytes is None else max_bytes))

    @classmethod
    def values_in(cls, data: bytes | str) -> dict[str, object]:
        """Return the values of the model that one JSON object makes, by attribute, without those
        that are None.

        This is :meth:`from_json` for code that only wants what was given: a model of fifty
        properties takes several times as long to make as one of them to read.

        :raises ModelError: as :meth:`from_json`.
        """
        given = cls._values_of(_load(cls, data, cls.max_bytes))
        names = _names_of(cls)
        values = names.defaults.copy()
        for attribute, value in given.items():
            read = names.kinds[attribute].read(value)
            if read is UNFIT:
                _make(cls, given)  # raises the error of the first one that is invalid
            values[attribute] = read
        return values

    @classmethod
    def from_object(cls, obj: object) -> Self:
        """Read a JSON object that is already a dict.

        :raises ModelError: if *obj* is not a dict, or a property is invalid.
        """
        return _make(cls, cls._values_of(obj))

    @classmethod
    def _values_of(cls, obj: object) -> dict[str, object]:
        """Return the values in an object by attribute, unchecked."""
        if not isinstance(obj, dict):
            raise ModelError(cls.__name__, "", "a JSON object", _show(obj))
        names = _names_of(cls)
        values: dict[str, object] = {}
        ranks: dict[str, int] = {}
        for key, value in obj.items():
            if value is None:
                continue
            found = names.exact.get(key)
            if found is None:
                if not cls.ignores_case or not isinstance(key, str):
                    continue
                found = names.folded.get(key.lower())
                if found is None:
                    continue
            attribute, rank = found
            if attribute in values and rank > ranks[attribute]:
                continue
            values[attribute] = value
            ranks[attribute] = rank
        for declared in names.required:
            if declared.attribute not in values:
                raise ModelError(cls.__name__, declared.name, declared.kind.expected, "nothing")
        return values

    def to_object(self) -> dict[str, object]:
        """Return the JSON object as a dict, with every property in the order of the wire.

        Properties that are extensions and None are left out.
        """
        result: dict[str, object] = {}
        for declared in properties_of(type(self)):
            value = getattr(self, declared.attribute)
            if value is None and declared.extension:
                continue
            result[declared.name] = None if value is None else declared.kind.write(value)
        return result

    def to_json(self) -> bytes:
        """Return the JSON object as the original writes it: compact, nulls included (F65)."""
        return dump(self.to_object())


def _make(model: type[_M], values: dict[str, object]) -> _M:
    make: Callable[..., _M] = model
    return make(**values)


class _Names:
    """The names under which a model's properties are read, the kind of each attribute, and the
    defaults that are not None.

    ``exact`` and ``folded`` (lower case) have an attribute and a rank for each name.  If a body has
    several names of one property, the lowest rank counts: the name that is written, then others
    that are read, then both in any case.
    """

    __slots__ = ("defaults", "exact", "folded", "kinds", "required")

    def __init__(self, model: type[Model]) -> None:
        properties = properties_of(model)
        self.exact: dict[object, tuple[str, int]] = {}
        self.folded: dict[str, tuple[str, int]] = {}
        self.kinds = {each.attribute: each.kind for each in properties}
        self.defaults: dict[str, object] = {
            each.name: self.kinds[each.name].read(each.default)
            for each in fields(model)
            if each.default is not MISSING and each.default is not None
        }
        self.required = [each for each in properties if each.required]
        for each in properties:
            names = (each.name, *each.also)
            for rank, name in enumerate(names):
                self.exact[name] = (each.attribute, rank)
                self.folded.setdefault(name.lower(), (each.attribute, len(names) + rank))


def _names_of(model: type[Model]) -> _Names:
    names = _NAMES.get(model)
    if names is None:
        names = _NAMES[model] = _Names(model)
    return names


#: Made once, like the tables of properties.
_NAMES: Final[dict[type, _Names]] = {}


def _load(model: type[Model], data: bytes | str, max_bytes: int) -> object:
    try:
        return load(data, max_bytes)
    except JsonRefusedError as error:
        raise ModelError(model.__name__, "", error.expected, error.got) from None


def parse_items(model: type[Model], data: bytes | str, *, max_bytes: int) -> list[object]:
    """Read a JSON array without models, for code that reads many small items faster itself.

    :raises ModelError: if *data* is not an array; it names *model*.
    """
    items = _load(model, data, max_bytes)
    if not isinstance(items, list):
        raise ModelError(model.__name__, "", "a JSON array", _show(items))
    return items


def parse_list(model: type[_M], data: bytes | str, *, max_bytes: int = MAX_LIST_BYTES) -> list[_M]:
    """Read a JSON array of *model* objects, the answer of the list operations.

    :param max_bytes: the largest body, in bytes; increase it together with the limit for payloads.
    :raises ModelError: if *data* is not such an array; ``index`` is the index of the invalid item.
    """
    result: list[_M] = []
    for index, item in enumerate(parse_items(model, data, max_bytes=max_bytes)):
        try:
            result.append(model.from_object(item))
        except ModelError as error:
            raise ModelError(
                error.model, error.property_name, error.expected, error.got, index
            ) from None
    return result


def dump_list(items: Iterable[Model]) -> bytes:
    """Return *items* as a JSON array, as the original server answers it (F65)."""
    return dump([item.to_object() for item in items])

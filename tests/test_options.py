"""An option is declared once: whatever goes through all options derives from the declaration.

The sources are read for the names of options.  Outside of the declaration, of the model of a
queue's information (which is what the wire shows) and of what is made by ``tools/make_options.py``,
only code that acts by an option may name it.
"""

from __future__ import annotations

import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from tools import make_options

from tests.project import ROOT
from tmqp.models import ChannelOptions, QueueInformation, QueueOptions
from tmqp.models._model import Property, properties_of
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.engine.options import ChannelOptions as EngineChannelOptions
from tmqp_server.engine.options import QueueOptions as EngineQueueOptions
from tmqp_server.engine.options.table import CHANNEL_OPTIONS, QUEUE_OPTIONS

DECLARATION: Final = "tmqp/models/options.py"
INFORMATION: Final = "tmqp/models/information.py"
LISTING: Final = "tmqp_server/doors/native/listing.py"
GENERATED: Final = "tmqp_server/engine/options/values.py"
#: Where options act: the engine decides by them, the stores keep what they say.
ACTING: Final = ("tmqp_server/engine/", "tmqp_server/storage/", "tmqp_server/commands/transfer.py")
#: Doors of other protocols say how the queues of these are made.
SHAPING: Final = tuple(
    f"tmqp_server/doors/{name}"
    for name in (
        "nsq",
        "smq/",
        "goms/",
        "throttr/",
        "zmtp/",
        "stomp/",
        "openwire",
        "jms/",
        "registry.py",
    )
)
#: What goes through all options, and the few that it treats by themselves.
DERIVED: Final[dict[str, frozenset[str]]] = {
    "tmqp_server/settings/options.py": frozenset(),
    # Headers say these too (F54).
    "tmqp_server/doors/native/operations.py": frozenset(
        {"status", "wait_for_acknowledge", "delivery_handler", "tag"}
    ),
    # What a store keeps for readers it must know.
    "tmqp_server/storage/topology.py": frozenset(
        {"retain_bytes", "retain_time_ms", "retain_for_readers"}
    ),
    "tmqp_client/cli/_options.py": frozenset({"status", "message_delivery_handler"}),
}
PROPERTIES: Final = {each.attribute: each for each in properties_of(ChannelOptions)}
EXTENSIONS: Final = [each for each in properties_of(QueueOptions) if each.extension]


def names_in(path: Path) -> Iterator[str]:
    """Identifiers, and strings that are one word."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.NAME:
                yield token.string
            elif token.type == tokenize.STRING:
                yield token.string.strip("\"'")


@cache
def sources() -> dict[str, Counter[str]]:
    """How often each word stands in each module of the protocol, the server and the commands."""
    src = ROOT / "src"
    packages = ("tmqp", "tmqp_server", "tmqp_client/cli")
    return {
        path.relative_to(src).as_posix(): Counter(names_in(path))
        for package in packages
        for path in sorted((src / package).rglob("*.py"))
        # Cases for other servers say on purpose what they send.
        if "conformance" not in path.parts
    }


def names_of(declared: Property) -> set[str]:
    facts = declared.option
    assert facts is not None
    return {declared.attribute, declared.name, facts.own, facts.older} - {""}


@pytest.mark.parametrize("declared", EXTENSIONS, ids=lambda each: each.attribute)
def test_an_option_is_named_where_it_is_declared_and_where_it_acts(declared: Property) -> None:
    names = names_of(declared)
    places = {
        module: count
        for module, words in sources().items()
        if (count := sum(words[name] for name in names))
        and not module.startswith(("tmqp_client/", *ACTING, *SHAPING))
    }
    assert places.pop(DECLARATION) == len(names), "each name once"
    assert places.pop(INFORMATION, 2) == 2, "the attribute and the property"
    # The specification's own part of the information is written property by property.
    shown = {each.attribute for each in properties_of(QueueInformation) if not each.extension}
    assert places.pop(LISTING, 0) == (1 if declared.attribute in shown else 0)
    assert places == {}


@pytest.mark.parametrize("declared", EXTENSIONS, ids=lambda each: each.attribute)
def test_an_option_is_no_string_where_it_acts(declared: Property) -> None:
    """A table of names is a second declaration."""
    src = ROOT / "src"
    for path in sorted((src / "tmqp_server").rglob("*.py")):
        module = path.relative_to(src).as_posix()
        # A queue and the store's record of retention have attributes of such names.
        if module in {GENERATED, "tmqp_server/engine/model/queues.py"} or "port.py" in module:
            continue
        text = path.read_text(encoding="utf-8")
        assert not any(f'"{name}"' in text for name in names_of(declared)), module


@pytest.mark.parametrize("module", DERIVED)
def test_what_goes_through_all_options_names_none(module: str) -> None:
    names = {each.name for each in (*QUEUE_OPTIONS, *CHANNEL_OPTIONS)} | set(PROPERTIES)
    assert {name for name in names if sources()[module][name]} <= DERIVED[module]


def test_every_property_of_an_option_is_declared_whole() -> None:
    for declared in PROPERTIES.values():
        facts = declared.option
        assert facts is not None, declared.name
        assert facts.meaning.endswith("."), declared.name
        assert facts.meaning[:1].isupper(), declared.name
        if facts.initial is not None:
            assert declared.kind.read(facts.initial) == facts.initial, declared.name


def test_the_records_of_the_engine_have_every_option() -> None:
    queue, channel = EngineQueueOptions(), EngineChannelOptions()
    for option in QUEUE_OPTIONS:
        assert getattr(queue, option.name) == option.initial, option.name
        assert getattr(QueueChanges(), option.name) is None, option.name
    for option in CHANNEL_OPTIONS:
        assert getattr(channel, option.name) == option.initial, option.name
        assert getattr(ChannelChanges(), option.name) is None, option.name


def test_what_is_made_of_the_declarations_is_up_to_date() -> None:
    assert make_options.RECORDS.read_text(encoding="utf-8") == make_options.records()
    text = make_options.PAGE.read_text(encoding="utf-8")
    assert make_options.page(text) == text, "run python -m tools.make_options"
    assert make_options.main(["--check"]) == 0


def test_what_is_out_of_date_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "records.py"
    page = tmp_path / "page.md"
    text = make_options.PAGE.read_text(encoding="utf-8")
    page.write_text(text.replace("| `durable` | `false` |", "| `durable` | `true` |"))
    monkeypatch.setattr(make_options, "RECORDS", stale)
    monkeypatch.setattr(make_options, "PAGE", page)
    assert make_options.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert f"{stale} is out of date" in said
    assert f"{page} is out of date" in said
    assert make_options.main([]) == 0
    assert make_options.main(["--check"]) == 0
    assert page.read_text(encoding="utf-8") == text
    page.write_text("nothing")
    with pytest.raises(ValueError, match=r"the table of \[queue\] is not marked"):
        make_options.main(["--check"])

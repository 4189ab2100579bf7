"""What a configuration file says of the broker: every key, the sentence of every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.project import ROOT
from tmqp.constants import STATUS_PULL, STATUS_ROUND_ROBIN
from tmqp_server import (
    ChannelChanges,
    ConfigError,
    CustomRouter,
    DeliveryHandler,
    QueueChanges,
    ServerConfig,
    parse_config,
)
from tmqp_server.engine.commands import Connect, ListBindings, ListFeeds, ListRouters
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions
from tmqp_server.engine.records import field_names
from tmqp_server.settings.options import CHANNEL_KEYS, QUEUE_KEYS
from tmqp_server.wiring.assembly import broker_options, build_broker, declare, summary

CLASSES = "tests.tmqp_server.settings.users_classes"


def read(text: str) -> ServerConfig:
    return ServerConfig(**parse_config(text))


def prepared(text: str) -> Any:
    """The broker of a configuration, with all it declares."""
    config = read(text)
    broker = build_broker(config)
    declare(broker, config, 1.0)
    return broker


def asked(broker: Any, command: Any) -> list[Any]:
    """The body of the answer to an operation."""
    if command.session not in broker._core.sessions:
        broker.step(Connect(command.session, None, "asks"), 2.0)
    (reply,) = [each for each in broker.step(command, 2.0) if isinstance(each, Reply)]
    assert isinstance(reply.body, list)
    return reply.body


# --- Options -------------------------------------------------------------------------------------


def test_without_a_word_the_options_are_the_protocols() -> None:
    assert repr(broker_options(ServerConfig())) == repr(BrokerOptions())


def test_every_option_has_its_key() -> None:
    assert set(QUEUE_KEYS) == set(field_names(QueueOptions)) == set(field_names(QueueChanges))
    assert {*CHANNEL_KEYS, "queue"} == set(field_names(ChannelOptions))
    assert {*CHANNEL_KEYS, "queue"} == set(field_names(ChannelChanges))


def test_every_option_of_queues_and_channels() -> None:
    options = broker_options(
        read(
            """
            auto_channel_creation = false
            auto_queue_creation = false
            [channel]
            allow_multiple_queues = false
            allowed_queues = [1, 65535]
            client_limit = 3
            queue_limit = 4
            destroy_when_empty = true
            lifetime = "consumers"
            idle_timeout_ms = 5000
            [queue]
            status = "Round-Robin"
            request_acknowledge = false
            acknowledge_timeout_ms = 5
            message_timeout_ms = 6
            use_message_id = false
            wait_for_acknowledge = true
            hide_client_names = true
            send_only_first_acquirer = true
            message_limit = 7
            message_size_limit = 8
            put_back_limit = 9
            dead_letter = { channel = "dead", queue = 10 }
            delivery_handler = "reject"
            tag = "t"
            """
        )
    )
    queue = QueueOptions(
        status=STATUS_ROUND_ROBIN,
        request_acknowledge=False,
        acknowledge_timeout_ms=5,
        message_timeout_ms=6,
        use_message_id=False,
        wait_for_acknowledge=True,
        hide_client_names=True,
        send_only_first_acquirer=True,
        message_limit=7,
        message_size_limit=8,
        put_back_limit=9,
        dead_letter=("dead", 10),
        delivery_handler="reject",
        tag="t",
    )
    lifetime = ("consumers", 5_000, False, False)
    channel = ChannelOptions(False, (1, 65_535), 3, 4, True, *lifetime, queue)
    assert repr(options) == repr(BrokerOptions(False, False, channel))


def test_an_older_name_of_an_option_still_works(caplog: pytest.LogCaptureFixture) -> None:
    config = read(
        """
        [queue]
        retain_ms = 5
        [[channels]]
        name = "orders"
        queue = { retain_ms = 6 }
        queues = [ { id = 1, retain_ms = 7 } ]
        """
    )
    (channel,) = config.channels
    (queue,) = channel.queues
    found = (config.queue, channel.changes.queue, queue.changes)
    assert [None if each is None else each.retain_time_ms for each in found] == [5, 6, 7]
    assert [record.getMessage() for record in caplog.records] == [
        f"{prefix}retain_ms is now called {prefix}retain_time_ms; use that name"
        for prefix in ("queue.", "channels.orders.queue.", "channels.orders.queues.")
    ]
    with pytest.raises(
        ConfigError, match=r"queue\.retain_ms is the older name of queue\.retain_time_ms: give only"
    ):
        read("[queue]\nretain_ms = 5\nretain_time_ms = 6")
    with pytest.raises(ConfigError, match=r"queue\.retain_time_ms must be a whole number"):
        read('[queue]\nretain_ms = "5"')


def test_what_is_declared_is_there_when_the_server_starts() -> None:
    broker = prepared(
        """
        auto_channel_creation = false
        [queue]
        message_limit = 5
        [[channels]]
        name = "orders"
        client_limit = 2
        queue = { status = "pull" }
        queues = [ { id = 1 }, { id = 2, status = "cache", tag = "t" } ]
        [[channels]]
        name = "empty"
        [[routers]]
        name = "r"
        method = "only-first"
        enabled = false
        bindings = [
          { name = "low", kind = "queue", target = "orders", queue = 1, priority = -1 },
          { name = "high", kind = "direct", target = "@type:t", priority = 9, content_type = 4, \
            interaction = "response", method = "round-robin" },
          { name = "any", kind = "tag", target = "t*", interaction = "acknowledge" },
          { name = "out", kind = "http", target = "http://h/x", http_method = "put" },
        ]
        [http]
        allow = ["http://h/"]
        """
    )
    queues = {(each.channel_name, each.queue_id): each.options for each in broker.queues()}
    assert list(queues) == [("orders", 1), ("orders", 2)]
    assert queues["orders", 1].status == STATUS_PULL
    assert queues["orders", 2].tag == "t"
    assert {each.message_limit for each in queues.values()} == {5}
    assert broker.statistics().channels == 2
    assert broker.statistics().sessions == 0  # whoever created it has gone
    (router,) = asked(broker, ListRouters(1, "list"))
    assert (router.name, router.method, router.enabled) == ("r", 2, False)
    bindings = {each.name: each for each in asked(broker, ListBindings(1, "list", "r"))}
    assert list(bindings) == ["high", "any", "out", "low"]
    high = bindings["high"]
    assert (high.kind, high.content_type, high.interaction, high.method) == (0, 4, 2, 1)
    assert (bindings["out"].kind, bindings["out"].content_type) == (2, 2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("auto_queue_creation = 1", "auto_queue_creation must be true or false, got 1"),
        ("queue = 1", "queue must be a table"),
        ("[queue]\nstats = 'push'", "unknown key queue.stats; did you mean queue.status"),
        ("[queue]\nstatus = 'pusch'", "queue.status must be one of broadcast, push"),
        ("[queue]\nstatus = 1", "queue.status must be one of"),
        ("[queue]\nwhen_full = 'wait'", "queue.when_full must be one of 'refuse', 'drop-oldest'"),
        ("[channel]\nlifetime = 1", "channel.lifetime must be one of '', 'owner'"),
        ("[queue]\nmessage_limit = -1", "queue.message_limit must be a whole number of at least 0"),
        ("[queue]\nmessage_limit = true", "queue.message_limit must be a whole number"),
        ("[queue]\nuse_message_id = 'yes'", "queue.use_message_id must be true or false"),
        ("[queue]\ntag = ''", "queue.tag must be a string"),
        ("[queue]\ndead_letter = 'x'", "queue.dead_letter must be like { channel"),
        (
            "[queue]\ndead_letter = { channel = 'x', queue = 65536 }",
            "queue.dead_letter.queue must be a whole number from 0 to 65535",
        ),
        ("[channel]\nqueue_limit = 1.5", "channel.queue_limit must be a whole number"),
        ("[channel]\nallowed_queues = 1", "channel.allowed_queues must be a list of queue ids"),
        ("[channel]\nallowed_queues = ['a']", "channel.allowed_queues must be a whole number"),
        ("[channels]\nname = 'a'", "channels must be a list of tables"),
        ("channels = [1]", "channels must be a list of tables"),
        ("[[channels]]\nqueues = []", "channels.1..name must be a string, got None"),
        ("[[channels]]\nname = 'a'\n[[channels]]\nname = 'A'", "channels: 'A' is declared twice"),
        ("[[channels]]\nname = 'a'\nqueues = [{}]", "channels.a.queues.id must be a whole number"),
        (
            "[[channels]]\nname = 'a'\nqueues = [{id = 1}, {id = 1}]",
            "channels.a.queues: the queue 1 is declared twice",
        ),
        (
            "[[channels]]\nname = 'a'\nqueues = [{id = 1, tga = 't'}]",
            "unknown key channels.a.queues.tga; did you mean channels.a.queues.tag",
        ),
        ("[[routers]]\nmethod = 'distribute'", "routers.1..name must be a string"),
        ("[[routers]]\nname = 'r'\nmethod = 'all'", "routers.r.method must be one of distribute"),
        ("[[routers]]\nname = 'r'\n[[routers]]\nname = 'r'", "routers: 'r' is declared twice"),
        ("[[routers]]\nname = 'r'\nbindings = [{}]", "routers.r.bindings.kind must be one of dir"),
        (
            "[[routers]]\nname = 'r'\nbindings = [{kind = 'tag', name = 'b'}]",
            "routers.r.bindings.target must be a string",
        ),
        (
            "[[routers]]\nname = 'r'\nbindings = [{kind='tag', name='b', target='t', queue=1}]",
            "unknown key routers.r.bindings.queue",
        ),
        (
            (
                "[[routers]]\nname = 'r'\nbindings = [{kind = 'tag', name = 'b', target = 't'},"
                " {kind = 'tag', name = 'b', target = 't'}]"
            ),
            "routers.r.bindings: 'b' is declared twice",
        ),
        ("[handlers]\nx = 1", "handlers.x must be a string, got 1"),
        ("[handlers]\nx = 'module'", "handlers.x must be like"),
        ("[handlers]\nx = { klass = 'a:B' }", "unknown key handlers.x.klass"),
        (
            "[handlers]\nx = { class = 'a:B', arguments = 1 }",
            "handlers.x.arguments must be a table",
        ),
        ("[custom_routers]\nx = ':B'", "custom_routers.x must be like"),
        ("[http]\nallow = 'http://h/'", "http: allow must be a list of strings"),
        ("[http]\nallow = ['h']", "http: allow: 'h' is not a plain http or https URL"),
        ("[http]\ntimeout_s = 0", "http: timeout_s must be a positive number"),
        ("[http]\nmax_concurrent = 1.5", "http: max_concurrent must be a positive whole number"),
        ("[http]\nmax_responses = 1", "unknown key http.max_responses"),
    ],
)
def test_a_mistake_names_its_key(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[queue]\nput_back_limit = 1001", "not possible within the limits"),
        ("[queue]\ndelivery_handler = 'mine'", "no delivery handler .* under the name 'mine'"),
        ("[[channels]]\nname = 'a b'", r"channels.a b: a name or a value is not possible \(400\)"),
        (
            "[[channels]]\nname = 'a'\nqueues = [{id = 1, delivery_handler = 'mine'}]",
            r"channels.a.queues.1: a delivery handler, .* is not registered.*\(406\)",
        ),
        (
            "[[channels]]\nname = 'a'\nqueue_limit = 1\nqueues = [{id = 1}, {id = 2}]",
            r"channels.a.queues.2: it is past a limit.*\(482\)",
        ),
        ("[[routers]]\nname = '@r'", r"routers.@r: a name or a value is not possible"),
        (
            (
                "[[routers]]\nname = 'r'\n"
                "bindings = [{name = 'b', kind = 'http', target = 'http://h/'}]"
            ),
            r"routers.r.bindings.b: HTTP bindings are off.*\(501\)",
        ),
        (
            (
                "[http]\nallow = ['http://else/']\n[[routers]]\nname = 'r'\n"
                "bindings = [{name = 'b', kind = 'http', target = 'http://h/'}]"
            ),
            r"routers.r.bindings.b: the URL is not among those.*\(401\)",
        ),
        (
            f"[custom_routers]\nr = '{CLASSES}:Everywhere'\n[[routers]]\nname = 'r'",
            "routers.r is a custom router already",
        ),
        (f"[custom_routers]\n'a b' = '{CLASSES}:Everywhere'", "'a b' is not a router name"),
        (f"[handlers]\nreject = '{CLASSES}:Loud'", "handlers: .*'reject' is registered already"),
        ("[handlers]\nx = 'no.such.module:X'", "handlers.x: no.such.module:X cannot be imported"),
        (f"[handlers]\nx = '{CLASSES}:Nobody'", "handlers.x: .*: the module has no Nobody"),
        (f"[handlers]\nx = '{CLASSES}:number'", "handlers.x: .*:number is not a class"),
        (f"[handlers]\nx = '{CLASSES}:Broken'", "cannot be created: RuntimeError: no licence"),
        (
            f"[handlers]\nx = {{ class = '{CLASSES}:Loud', arguments = {{ x = 1 }} }}",
            "cannot be created: TypeError",
        ),
        (
            f"[handlers]\nx = '{CLASSES}:Everywhere'",
            "makes a Everywhere, not a DeliveryHandler",
        ),
        (f"[custom_routers]\nx = '{CLASSES}:Loud'", "makes a Loud, not a CustomRouter"),
    ],
)
def test_what_cannot_be_made(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        prepared(text)


def test_a_module_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_with_a_bug.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="cannot be imported: ZeroDivisionError"):
        prepared("[handlers]\nx = 'module_with_a_bug:X'")


def test_users_classes_are_made_with_their_arguments() -> None:
    broker = prepared(
        f"""
        [handlers]
        loud = "{CLASSES}:Loud"
        louder = {{ class = "{CLASSES}:Loud", arguments = {{ larger_than = 7 }} }}
        [custom_routers]
        everywhere = "{CLASSES}:Everywhere"
        [queue]
        delivery_handler = "loud"
        [[channels]]
        name = "c"
        queues = [ {{ id = 1, delivery_handler = "louder" }} ]
        """
    )
    (queue,) = broker.queues()
    assert queue.handler.larger_than == 7
    assert [each.name for each in asked(broker, ListRouters(1, "list"))] == ["everywhere"]


def test_objects_given_beside_the_configuration() -> None:
    config = read(f"[custom_routers]\nr = '{CLASSES}:Everywhere'\n[handlers]\nh = '{CLASSES}:Loud'")
    build_broker(config, {"other": DeliveryHandler()}, {"s": CustomRouter()})
    with pytest.raises(ConfigError, match="custom_routers: 'r' was given as an argument too"):
        build_broker(config, None, {"r": CustomRouter()})
    with pytest.raises(ConfigError, match=r"handlers: .*'h' is registered already"):
        build_broker(config, {"h": DeliveryHandler()})


def test_declared_twice_is_there_once() -> None:
    """What a server finds there at its start stays as it is."""
    text = "[[channels]]\nname = 'c'\nqueues = [{id = 1}]\n[[routers]]\nname = 'r'"
    broker = prepared(text)
    declare(broker, read(text), 3.0)
    assert len(broker.queues()) == 1


FEEDS = """
[[channels]]
name = "shop"
queues = [{ id = 1 }]
feeds = [
  { queue = 1, target = "all", target_queue = 1 },
  { queue = 1, target = "some", target_queue = 2, filter = "kind=order" },
]

[[channels]]
name = "all"
queues = [{ id = 1 }]

[[channels]]
name = "some"
queues = [{ id = 2 }]
"""


def test_feeds_are_added_when_all_queues_are_there() -> None:
    broker = prepared(FEEDS)
    feeds = asked(broker, ListFeeds(1, "list", "shop"))
    assert [(each.target, each.target_queue, each.text) for each in feeds] == [
        ("all", 1, ""),
        ("some", 2, "kind=order"),
    ]
    declare(broker, read(FEEDS), 3.0)
    assert len(asked(broker, ListFeeds(1, "list", "shop"))) == 2
    assert "feed            shop/1 to some/2" in summary(read(FEEDS))


@pytest.mark.parametrize(
    ("feeds", "reason"),
    [
        ("{ queue = 1, target = 'b' }", "channels.a.feeds.target_queue must be a whole number"),
        ("{ queue = 1, target = 'b', target_queue = 1, filter_language = 'x' }", "needs a filter"),
        (
            ", ".join(2 * ["{ queue = 1, target = 'b', target_queue = 1 }"]),
            "to b/1 is declared twice",
        ),
        ("{ queue = 1, target = 'b', target_queue = 1 }", r"feeds.b: there is no such queue \(404"),
        ("{ queue = 1, target = 'a', target_queue = 1 }", r"leads back to its own queue \(406\)"),
        (
            "{ queue = 1, target = 'a', target_queue = 2, filter = ';' }",
            r"feeds.a: a name or a value is not possible \(400\)",
        ),
    ],
)
def test_a_feed_that_cannot_be(feeds: str, reason: str) -> None:
    queues = "queues = [{ id = 1 }, { id = 2 }]"
    with pytest.raises(ConfigError, match=reason):
        prepared(f"[[channels]]\nname = 'a'\n{queues}\nfeeds = [{feeds}]")


def test_the_summary_names_what_is_served() -> None:
    config = read((ROOT / "examples" / "interoperability.toml").read_text(encoding="utf-8"))
    lines = summary(config)
    assert "router          r-disabled (disabled): distribute to rt-a" in lines
    assert "channel         handlers: queues 1 2 3 4 5 6 7 8" in lines
    assert lines[1] == "created by use  channels and queues"
    plain = summary(read("auto_channel_creation = false\nauto_queue_creation = false"))
    assert plain[1] == "created by use  nothing"
    assert plain[-1] == "HTTP bindings   refused"
    named = summary(read(f"[handlers]\nh = '{CLASSES}:Loud'"))
    assert f"handler         h: {CLASSES}:Loud" in named

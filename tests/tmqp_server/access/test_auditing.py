"""The audit: one record for each change that is asked for, whatever becomes of it."""

from __future__ import annotations

from tests.tmqp_server.access.kept import Kept
from tmqp_server.access.auditing import ACTIONS, MANAGED, Auditor
from tmqp_server.access.needs import FREE, NEEDS
from tmqp_server.engine import commands as c
from tmqp_server.engine.effects import Accept, Refuse, Reply
from tmqp_server.engine.options import (
    BindingOptions,
    ChannelChanges,
    ChannelOptions,
    QueueChanges,
    QueueOptions,
)

PLACE = ("10.0.0.1:4000", "tmqp", 7)
#: A direct binding, but for its name.
DIRECT = {
    "kind": "direct",
    "target": "to",
    "priority": 1,
    "interaction": "none",
    "method": "distribute",
    "content_type": 7,
}

#: What plain producers and consumers do, readers of what is kept among them; and looks that show no
#: payload.  A command that is neither here nor in ``ACTIONS`` has not been thought about.
NO_CHANGES = {
    c.AbortTransaction,
    c.Acknowledge,
    c.AcknowledgeRun,
    c.ChangeCell,
    c.AskRight,
    c.CommitCursor,
    c.CommitGroup,
    c.CommitTransaction,
    c.DescribeCell,
    c.DescribeChannel,
    c.DescribeClient,
    c.DescribeQueue,
    c.DescribeServer,
    c.DropCell,
    c.Join,
    c.ListBindings,
    c.ListCells,
    c.ListChannels,
    c.ListClients,
    c.ListConsumers,
    c.ListCursors,
    c.ListFeeds,
    c.ListGroups,
    c.ListNodes,
    c.ListOffsets,
    c.ListQueues,
    c.ListRouters,
    c.ListTransactions,
    c.MakeCounter,
    c.OpenCursor,
    c.OpenGroup,
    c.OpenTransaction,
    c.PassAnswer,
    c.PassAnswerRun,
    c.Publish,
    c.Pull,
    c.Push,
    c.PushRun,
    c.PushTransaction,
    c.PutValue,
    c.ReadCell,
    c.ReadIndex,
    c.ReadRange,
    c.SeeAudit,
    c.SeeMetrics,
    c.SeeServer,
    c.SendCustom,
    c.SendDirect,
    c.SendDirectRun,
    c.SplitRange,
    c.SubscribeEvent,
    c.SurveyChannels,
    c.SurveyClients,
    c.SurveyQueues,
}


def test_every_command_is_a_change_or_is_none() -> None:
    assert not NO_CHANGES & set(ACTIONS)
    assert set(NEEDS) | set(FREE) == NO_CHANGES | set(ACTIONS) | set(FREE)
    assert len({*ACTIONS.values(), *MANAGED}) == len(ACTIONS) + len(MANAGED)


def begin(auditor: Auditor, command: c.Command) -> bool:
    return auditor.begin(command, PLACE, 1.0)


def test_a_record_is_complete_when_its_client_is_answered() -> None:
    kept = Kept()
    auditor = Auditor(kept)
    first, second = object(), object()
    assert begin(auditor, c.RemoveChannel(7, first, "a"))
    assert begin(auditor, c.RemoveQueue(7, second, "b", 2))
    auditor.answered(Reply(7, object(), 0))
    auditor.answered(Reply(8, first, 0))
    assert kept.records == []
    auditor.answered(Reply(7, second, 404))
    auditor.answered(Reply(7, second, 0))
    auditor.answered(Reply(7, first, 0))
    assert kept.told() == [("", "remove-queue", "b/2", 404), ("", "remove-channel", "a", 200)]
    assert auditor.counts == {("remove-queue", False): 1, ("remove-channel", True): 1}
    assert kept.records[0].address == "10.0.0.1:4000"


def test_what_is_not_answered_ends_with_its_connection() -> None:
    kept = Kept()
    auditor = Auditor(kept)
    branch = -(7 << 32) if c.connection_of(-(7 << 32)) == 7 else 7
    begin(auditor, c.RemoveChannel(7, object(), "a"))
    begin(auditor, c.RemoveChannel(branch, object(), "b"))
    begin(auditor, c.RemoveChannel(9, object(), "of another"))
    auditor.gone(7, PLACE, 2.0)
    assert [(each.subject, each.code) for each in kept.records] == [("a", 0), ("b", 0)]
    assert begin(auditor, c.RemoveChannel(7, None, "asked without wanting an answer"))
    assert kept.records[-1].code == 0


def test_log_ins_are_known_by_who_they_are_and_log_out() -> None:
    kept = Kept()
    auditor = Auditor(kept)
    hello = object()
    auditor.logs_in(c.Connect(7, hello, "id"), "ann", PLACE, 1.0)
    auditor.answered(Accept(7, hello, "id"))
    begin(auditor, c.ClearMessages(7, None, "c", 1, True, True))
    auditor.gone(7, PLACE, 2.0)
    auditor.gone(7, PLACE, 2.0)
    auditor.logs_in(c.Connect(8, hello, "id"), "", ("b", "nsq", 8), 3.0)
    auditor.answered(Refuse(8, hello, 503, "id"))
    auditor.gone(8, ("b", "nsq", 8), 3.0)
    auditor.refused(c.Connect(9, None, "x" * 5_000), ("b", "nsq", 9), 4.0)
    assert kept.told() == [
        ("ann", "log-in", "id", 200),
        ("ann", "clear-messages", "c/1", 0),
        ("ann", "log-out", "", 200),
        ("id", "log-in", "id", 503),
        ("x" * 512, "log-in", "x" * 512, 401),
    ]


def test_a_refusal_for_want_of_a_right_is_a_record_and_that_of_a_push_is_none() -> None:
    kept = Kept()
    auditor = Auditor(kept)
    auditor.refused(c.RemoveChannels(7, object(), ["a", "b"]), PLACE, 1.0)
    auditor.refused(c.Push(7, "m", "c", 0, False, False, 1, None), PLACE, 1.0)
    assert kept.told() == [("", "remove-channels", "a, b", 401)]


def test_where_records_are_required_nothing_is_changed_that_cannot_be_written_down() -> None:
    kept = Kept()
    auditor = Auditor(kept, required=True)
    kept.ready = False
    assert not begin(auditor, c.RemoveChannel(7, object(), "a"))
    assert kept.told() == [("", "remove-channel", "a", 503)]
    auditor.change(required=False)
    assert begin(auditor, c.RemoveChannel(7, object(), "a"))


def test_what_is_to_be_is_told_as_far_as_it_was_said() -> None:
    kept = Kept()
    auditor = Auditor(kept)
    changes = QueueChanges(message_limit=7)
    binding = BindingOptions("b", 0, "to", 7, 1, 0, 0)
    for command in (
        c.CreateQueue(7, None, "c", 1, changes),
        c.UpdateChannel(7, None, "c", ChannelChanges(client_limit=3, queue=changes)),
        c.CreateChannel(7, None, "c"),
        c.SetRouterEnabled(7, None, "r", False),
        c.CreateRouter(7, None, "r", 2),
        c.AddBinding(7, None, "r", binding),
        c.AddBinding(7, None, "r", BindingOptions("b", 9, "to", 7, 1, 8, 7)),
        c.AddFeed(7, None, "c", 1, "d", 2, None, "sql", "a = 1"),
        c.RemoveBinding(7, None, "r", "b"),
        c.RemoveFeed(7, None, "c", 1, "d", 2),
        c.Drain(7, None, True),
        c.RemoveMessage(7, None, "c", 1, "id-1"),
    ):
        begin(auditor, command)
    assert [(each.subject, dict(each.after)) for each in kept.records] == [
        ("c/1", {"message_limit": 7}),
        ("c", {"client_limit": 3, "message_limit": 7}),
        ("c", {}),
        ("r", {"enabled": False}),
        ("r", {"method": "only-first"}),
        ("r", {**DIRECT, "binding": "b"}),
        ("r", {"binding": "b", "kind": 9, "target": "to", "priority": 1, "interaction": 8}),
        ("c/1", {"target": "d/2", "filter": "a = 1", "filter_language": "sql"}),
        ("r", {"binding": "b"}),
        ("c/1", {"target": "d/2"}),
        ("stop", {}),
        ("c/1 id-1", {}),
    ]


def test_what_was_is_told_of_options_that_are_to_be_others() -> None:
    kept = Kept()
    auditor = Auditor(kept)
    old = QueueOptions(message_limit=3, durable=True)
    queue = QueueChanges(message_limit=7, durable=True)
    auditor.begin(c.UpdateQueue(7, None, "c", 1, queue), PLACE, 1.0, was=old)
    channel = ChannelChanges(client_limit=5, queue=queue)
    rules = ChannelOptions(client_limit=4, queue=old)
    auditor.begin(c.UpdateChannel(7, None, "c", channel), PLACE, 1.0, was=rules)
    assert [each.before for each in kept.records] == [
        {"message_limit": 3},
        {"client_limit": 4, "message_limit": 3},
    ]


def test_pushes_are_not_looked_at() -> None:
    auditor = Auditor(Kept())
    push = c.Push(7, "m", "c", 0, False, False, 1, None)
    assert not auditor.concerns([push, c.Join(7, None, "c")])
    assert auditor.concerns([push, c.RemoveChannel(7, None, "c")])


def test_what_is_done_to_the_server_has_the_result_it_had_and_not_that_it_was_permitted() -> None:
    kept = Kept()
    auditor = Auditor(kept)
    trace = c.Manage(7, object(), "manage-clients", "begin-trace", "bob", {"seconds": 60})
    backup = c.Manage(7, object(), "manage-server", "backup")
    assert begin(auditor, trace)
    assert begin(auditor, backup)
    for command in (trace, backup):
        auditor.answered(Reply(7, command.request, 0))
    assert not kept.records
    auditor.carried_out(backup, 409)
    auditor.carried_out(trace, 200)
    auditor.carried_out(trace, 200)
    auditor.refused(c.Manage(7, object(), "manage-server", "reload"), PLACE, 1.0)
    assert kept.told() == [
        ("", "backup", "", 409),
        ("", "begin-trace", "bob", 200),
        ("", "reload", "", 401),
    ]
    assert kept.records[1].after == {"seconds": 60}
    assert not auditor.waiting

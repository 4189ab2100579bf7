"""The fuzzers find what is planted, shorten it, and find nothing in our server."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.tmqp_conformance.machines import HubMachine
from tmqp.testing import Seeded, write_frame
from tmqp.testing.conformance import Machine, MemoryStage, Patience
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.__main__ import main
from tmqp_conformance.fuzzing.differ import Differ, Difference
from tmqp_conformance.fuzzing.findings import Found, read_found, write_model, write_wire
from tmqp_conformance.fuzzing.model import Act, Delivered, Model, WrongError
from tmqp_conformance.fuzzing.mutate import MUTATIONS, mutated
from tmqp_conformance.fuzzing.native import FIELDS, NativeSubject
from tmqp_conformance.fuzzing.search import ModelFuzzer
from tmqp_conformance.fuzzing.session import play_acts
from tmqp_conformance.fuzzing.wire import WireFuzzer, shrink
from tmqp_conformance.grammar import Piece
from tmqp_conformance.zoo.broken_servers import BROKEN_SERVERS
from tmqp_conformance.zoo.server import SmallServer

PATIENCE = Patience(answer_s=1.0, quiet_s=0.01)
SUBJECT = NativeSubject(SERVER_CASES)
#: The time for acknowledgements, and a little more.
OVER_S = 16.0


def test_the_wire_fuzzer_finds_nothing_in_our_server() -> None:
    fuzzer = WireFuzzer(MemoryStage(HubMachine()), SUBJECT, 1, PATIENCE)
    assert list(fuzzer.run(lambda: fuzzer.played < 400)) == []
    coverage = fuzzer.coverage
    tally = coverage.at("")
    assert {"AWAIT_PREAMBLE", "AWAIT_HELLO", "OPEN", "CLOSED"} <= set(tally.states)
    assert set(coverage.mutations) == set(MUTATIONS)
    assert {"utf8", "preamble", "hello-invalid"} <= set(tally.rules)
    assert len(tally.kinds) > 20
    assert set(tally.fields) <= set(FIELDS)
    missing = set(FIELDS) - set(tally.fields)
    assert missing <= {"payload=long", "length=4"}, "what is rare in so few conversations"
    assert len(coverage.signatures) > 50


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("crashes-on-long-ids", "crash"),
        ("hangs-on-empty-block", "hang"),
        ("closes-on-unknown-types", "closed"),
        ("never-closes", "open"),
    ],
)
def test_the_wire_fuzzer_finds_a_planted_fault_and_shortens_it(name: str, kind: str) -> None:
    make = BROKEN_SERVERS[name][1]
    server = make()
    stage = MemoryStage(server)
    fuzzer = WireFuzzer(stage, SUBJECT, 3, PATIENCE)
    finding = next(fuzzer.run(lambda: fuzzer.played < 5_000))
    assert finding.kind == kind

    def revive() -> bool:
        server.crashed = False
        return True

    revive()
    smaller = shrink(fuzzer, finding, revive)
    assert smaller.kind == kind
    before = sum(len(piece.data) for piece in finding.conversation)
    assert sum(len(piece.data) for piece in smaller.conversation) <= before
    fuzzer.close()


def test_one_seed_draws_the_same_conversations() -> None:
    one = [mutated(Seeded(7), SUBJECT.seeds[3], SUBJECT) for _ in range(2)]
    assert one[0] == one[1]


def model_fuzzer(server: SmallServer | HubMachine, number: int) -> ModelFuzzer:
    return ModelFuzzer(MemoryStage(server), "q", number, 20, PATIENCE, OVER_S)


def test_the_model_fuzzer_finds_nothing_in_our_server() -> None:
    fuzzer = model_fuzzer(HubMachine(), 1)
    assert fuzzer.search(lambda: fuzzer.played < 100) is None
    assert set(fuzzer.done) >= {"push", "join", "connect", "vanish", "pull", "acknowledge"}


class _Losing(HubMachine):
    """Our server, but what contains this payload does not leave it."""

    def take(self, number: int) -> bytes:
        data = super().take(number)
        return b"" if b"payload of m3" in data else data


def test_the_model_fuzzer_finds_a_loss_and_what_it_finds_replays(tmp_path: Path) -> None:
    fuzzer = model_fuzzer(_Losing(), 2)
    finding = fuzzer.search(lambda: fuzzer.played < 500)
    assert finding is not None
    assert finding.again == finding.replays == 10
    assert [act.what for act in finding.acts] == ["connect", "push"], "there is no shorter one"
    path = write_model(tmp_path, finding)
    found = read_found(path)
    assert list(found.acts) == finding.acts
    assert play_acts(MemoryStage(HubMachine()), finding.acts, "z", PATIENCE, OVER_S) == ""
    assert play_acts(MemoryStage(_Losing()), finding.acts, "z", PATIENCE, OVER_S) != ""


def test_a_finding_of_the_wire_fuzzer_is_a_file(tmp_path: Path) -> None:
    fuzzer = WireFuzzer(MemoryStage(BROKEN_SERVERS["never-closes"][1]()), SUBJECT, 1, PATIENCE)
    finding = next(fuzzer.run(lambda: fuzzer.played < 500))
    found = read_found(write_wire(tmp_path, finding, 1, 1))
    assert found.conversation == finding.conversation
    before = sum(len(piece.data) for piece in found.conversation)
    for each in found.smaller():
        assert 0 < sum(len(piece.data) for piece in each.conversation) < before


@pytest.mark.parametrize("pack", ["", "smq"])
def test_a_finding_in_a_file_loses_whole_messages_first(pack: str) -> None:
    """``shrink`` cut messages in two, and a server waited for the rest of them."""
    begin, one, two = (
        (b"", b"C:q:\n", b"M:q:1\n")
        if pack
        else (b"TMQP/2.0", write_frame(8, payload=b"one"), write_frame(16, payload=b"two"))
    )
    found = Found((Piece(0, begin + one + two), Piece(1, begin + two)), pack=pack)
    (first, second), (third, fourth) = [
        (each.conversation[0].data, each.conversation[1].data)
        for each in itertools.islice(found.smaller(), 2)
    ]
    assert (first, third) == (begin + two, begin + one)
    assert second == fourth == begin + two


@pytest.mark.parametrize("text", ["", "[]", '{"format": "tmqp-conformance finding 1"}', "{}"])
def test_a_file_that_is_no_finding_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "found.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r".+"):
        read_found(path)


def settled(*came: Delivered) -> None:
    """Let these deliveries follow one push to the channel ``push`` with two consumers."""
    model = Model()
    for act in (Act("connect", "a"), Act("connect", "b")):
        model.act(act)
    model.act(Act("join", "a", "push"))
    model.act(Act("join", "b", "push"))
    due = model.act(Act("push", "a", "push", message="m"), b"x")
    model.settle(due, list(came))


def test_the_model_allows_what_is_right() -> None:
    settled(Delivered("a", "push", "m", b"x"), Delivered("b", "push", "m", b"x"))


@pytest.mark.parametrize(
    ("came", "message"),
    [
        ([], "lost"),
        ([Delivered("a", "push", "m", b"x")], "came to"),
        ([Delivered("a", "push", "m", b"y"), Delivered("b", "push", "m", b"x")], "changed"),
        ([Delivered("a", "push", "m", b"x")] * 2, "twice"),
        ([Delivered("a", "push", "n", b"x")], "invented"),
    ],
)
def test_the_model_refuses_what_is_wrong(came: list[Delivered], message: str) -> None:
    with pytest.raises(WrongError, match=message):
        settled(*came)


def test_wrong_use_of_the_fuzzers() -> None:
    for arguments in (
        ["wire", "127.0.0.1:1", "--budget", "long"],
        ["model", "10.1.1.1:1"],
        ["diff", "127.0.0.1:1", "10.1.1.1:1"],
        ["diff", "127.0.0.1:1", "127.0.0.1:1", __file__],
    ):
        assert CliRunner().invoke(main, ["fuzz", *arguments]).exit_code == 3
    assert (
        CliRunner().invoke(main, ["fuzz", "wire", "127.0.0.1:1", "--budget", "1s"]).exit_code == 2
    )


def differ(one: Machine, other: Machine) -> Differ:
    return Differ((MemoryStage(one), MemoryStage(other)), SUBJECT, 1, PATIENCE)


def test_a_server_does_not_differ_from_itself() -> None:
    pair = differ(HubMachine(), HubMachine())
    assert list(pair.run(lambda: pair.played < 150)) == []


def test_what_two_servers_answer_otherwise_is_found_and_made_small(tmp_path: Path) -> None:
    pair = differ(SmallServer(), BROKEN_SERVERS["conflict-for-duplicate"][1]())
    difference = next(pair.run(lambda: pair.played < 5_000))
    assert difference.again == 3
    assert "content_type=481" in difference.message
    assert "content_type=409" in difference.message
    path = write_wire(tmp_path, difference, 1, 1, "diff")
    assert pair.play(read_found(path).conversation)
    size = sum(len(piece.data) for piece in difference.conversation)
    assert size < 400, "a hello and two requests"


def test_a_difference_loses_whole_messages() -> None:
    """Messages in the same piece as what differs stayed in the finding, or came out of it cut."""
    pair = differ(SmallServer(), BROKEN_SERVERS["conflict-for-duplicate"][1]())
    difference = next(pair.run(lambda: pair.played < 5_000))
    *others, last = difference.conversation
    ping = write_frame(9, ttl=16)
    padded = (*others, Piece(last.line, last.data + ping * 40))
    smaller = pair._confirmed(Difference("", padded)).conversation
    assert ping not in b"".join(each.data for each in smaller)

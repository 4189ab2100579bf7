"""The packs, cases about other protocols: against our doors, and NSQ's against the original."""

from __future__ import annotations

import itertools
import json
import shutil
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from anyio.from_thread import start_blocking_portal
from click.testing import CliRunner, Result

from tests.certificates import make_certificate
from tests.project import ROOT
from tests.tmqp_conformance.pack_machines import MACHINES
from tests.tmqp_conformance.schema import violations
from tmqp.address import Address, parse_address
from tmqp.testing.conformance import Case, Patience, Verdict, play
from tmqp.testing.conformance.steps import Open
from tmqp_conformance.__main__ import main
from tmqp_conformance.commands.packs import PackStage
from tmqp_conformance.packs import PACKS
from tmqp_conformance.packs.memory import PackMemoryStage
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.suite import ALL_CASES
from tmqp_server import ServerConfig, running
from tmqp_server.config import read_config

#: Cases that wait a second or longer, which a socket cannot shorten.
SLOW: Final = (
    *("timeout", "leaves-while-ready", "heartbeats", "heartbeat-answered"),
    *("heart-beats-come", "heart-beats-missed"),
)
DOORS: Final = {
    "nsq": {
        "": "nsq",
        "http": "nsqd-http",
        "lookup": "nsqlookupd",
        "lookup-http": "nsqlookupd-http",
    },
    "smq": {"": "smq"},
    "zmtp": {"": "zmtp"},
    "goms": {"": "goms"},
    "throttr": {"": "throttr", "dialect-7.3": "throttr"},
    "stomp": {"": "stomp"},
    "openwire": {"": "openwire"},
}
#: What a door is told, by its pack and address.
OPTIONS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("goms", ""): {"topics": ["conformance-a", "conformance-b"]},
    ("throttr", "dialect-7.3"): {"dialect": "7.3"},
}
NUMBERS: Final = itertools.count(1)
SCHEMA: Final = ROOT / "fuzz/tmqp_conformance/report.schema.json"
ORIGINAL: Final = Path(__file__).with_name("original_nsq")


def failures(pack: Pack, stage: PackStage | PackMemoryStage, cases: tuple[Case, ...]) -> list[str]:
    """Play cases: a sentence for each that does not pass."""
    patience = Patience(quiet_s=0.03)
    found = []
    for each in (pack.probe, *cases):
        result = play(each, stage, f"k{next(NUMBERS)}x", patience, speaks=pack.speaks)
        if result.verdict is not Verdict.PASS:
            found.append(f"{result.verdict} {each.id}: {result.message} ({result.expected})")
    return found


@pytest.mark.parametrize("pack", PACKS.values(), ids=lambda each: each.name)
def test_cases_of_a_pack_are_of_their_form(pack: Pack) -> None:
    ids = Counter(each.id for each in (*pack.cases, *ALL_CASES, pack.probe))
    assert [name for name, count in ids.items() if count > 1] == []
    titles = Counter((each.group, each.title) for each in pack.cases)
    assert [title for title, count in titles.items() if count > 1] == []
    for each in pack.cases:
        assert each.group.partition("-")[0] == pack.name
        assert each.why.split()[0] == "nsqd" or each.why[0].isupper(), each.id
        assert len(each.title) <= 90, each.id
        lines = {step.line for step in each.steps if isinstance(step, Open)}
        assert {each.place(line) for line in lines} <= {*pack.ears}, each.id
    assert {fact for each in pack.cases for fact in each.requires} == {*pack.facts}
    guide = (ROOT / "docs/guides/certify-your-implementation.md").read_text("utf-8")
    assert f"| `{pack.name}` | {len(pack.cases)} |" in guide


@pytest.mark.parametrize("name", PACKS)
def test_our_doors_pass_in_memory(name: str) -> None:
    pack = PACKS[name]
    assert len(pack.cases) >= 15
    assert failures(pack, PackMemoryStage(MACHINES[name]()), pack.cases) == []


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, dict[str, Address]]]:
    """A server of ours with all of these doors: of each pack, its addresses."""
    doors: list[dict[str, Any]] = [
        {
            "protocol": protocol,
            "listen": ["127.0.0.1:0"],
            "options": OPTIONS.get((pack, place), {}),
        }
        for pack, places in DOORS.items()
        for place, protocol in places.items()
    ]
    values = {**read_config({"doors": doors}), "listen": (Address("127.0.0.1", 0),)}
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running(ServerConfig(**values))) as ours,
    ):
        told = iter(ours.door_addresses())
        yield {pack: {place: at(next(told)) for place in places} for pack, places in DOORS.items()}


def at(url: str, *, tls: bool = False) -> Address:
    found = parse_address(url.partition("://")[2])
    return Address(found.host, found.port, tls=tls)


#: Packs whose doors have one address.
SINGLE: Final = tuple(name for name, places in DOORS.items() if len(places) == 1)


@pytest.fixture(scope="module")
def encrypted(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[dict[str, Address], ssl.SSLContext]]:
    """A server of ours with doors that speak TLS: their addresses, and whom to trust."""
    key, certificate = make_certificate(tmp_path_factory.mktemp("tls"))
    doors = [
        {
            "protocol": DOORS[pack][""],
            "listen": ["localhost:0"],
            "tls": True,
            "options": OPTIONS.get((pack, ""), {}),
        }
        for pack in SINGLE
    ]
    tls = {"key": str(key), "certificate": str(certificate)}
    values = {**read_config({"doors": doors, "tls": tls}), "listen": (Address("127.0.0.1", 0),)}
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running(ServerConfig(**values))) as ours,
    ):
        told = [at(url, tls=True) for url in ours.door_addresses()]
        found = dict(zip(SINGLE, told, strict=True))
        yield found, ssl.create_default_context(cafile=str(certificate))


@pytest.mark.long
@pytest.mark.parametrize("name", SINGLE)
def test_our_doors_pass_with_tls(
    name: str, encrypted: tuple[dict[str, Address], ssl.SSLContext]
) -> None:
    pack = PACKS[name]
    where, context = encrypted
    quick = tuple(each for each in pack.cases if not each.id.endswith(SLOW))
    assert failures(pack, PackStage({"": where[name]}, context), quick) == []


@pytest.mark.parametrize("name", PACKS)
def test_our_doors_pass_over_sockets(
    name: str, addresses: Mapping[str, Mapping[str, Address]]
) -> None:
    pack = PACKS[name]
    quick = tuple(each for each in pack.cases if not each.id.endswith(SLOW))
    assert failures(pack, PackStage(addresses[name]), quick[::3]) == []


@pytest.mark.long
@pytest.mark.parametrize("name", PACKS)
def test_our_doors_pass_all_cases_over_sockets(
    name: str, addresses: Mapping[str, Mapping[str, Address]]
) -> None:
    pack = PACKS[name]
    assert failures(pack, PackStage(addresses[name]), pack.cases) == []


# -- the original ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Address]]:
    """Nsqd and nsqlookupd of NSQ's makers, built from their Go module."""
    if shutil.which("go") is None:
        pytest.skip("needs Go, to build the original nsqd")
    folder = tmp_path_factory.mktemp("original")
    program = folder / "original"
    fetch = ["go", "mod", "download"]
    done = subprocess.run(fetch, cwd=ORIGINAL, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the Go module of nsqd cannot be had here: {done.stderr.strip()[-200:]}")
    build = ["go", "build", "-buildvcs=false", "-o", str(program), "."]
    subprocess.run(build, cwd=ORIGINAL, check=True)
    data = folder / "data"
    data.mkdir()
    with subprocess.Popen(
        [program, data], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told: dict[str, str] = json.loads(process.stdout.readline())
        yield {place: parse_address(address) for place, address in told.items()}
        process.stdin.close()


@pytest.mark.interop
@pytest.mark.long
@pytest.mark.timeout(300)  # the original is compiled for it
def test_the_original_nsqd_passes_the_pack_of_nsq(original: dict[str, Address]) -> None:
    pack = PACKS["nsq"]
    assert failures(pack, PackStage(original), pack.cases) == []


# -- the command ----------------------------------------------------------------------------------


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_pack_is_run_by_the_command(
    addresses: Mapping[str, Mapping[str, Address]], tmp_path: Path
) -> None:
    where = {place: str(each) for place, each in addresses["nsq"].items()}
    result = run(
        *("server", where[""], "--pack", "nsq", "--at", f"http={where['http']}"),
        *("--only", "server.nsq-http.p*", "--only", "server.nsq-lookup.ping", "--slow", "0.5"),
        *("--out", str(tmp_path)),
    )
    assert result.exit_code == 0, result.output
    assert "NSQ (TCP protocol V2) server: strict" in result.output
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert violations(report, json.loads(SCHEMA.read_text("utf-8"))) == []
    verdicts = {each["id"]: each["verdict"] for each in report["cases"]}
    assert verdicts.pop("server.nsq-lookup.ping") == "unimplemented", "its address was not given"
    assert {*verdicts.values()} == {"pass"}
    assert len(verdicts) >= 6
    assert (report["pack"], report["capabilities"]) == ("nsq", ["http"])
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "NSQ (TCP protocol V2) conformance" in page
    assert "the peer does not have: lookup" in page


def test_a_server_of_another_protocol_does_not_conform(
    addresses: Mapping[str, Mapping[str, Address]], tmp_path: Path
) -> None:
    where = str(addresses["smq"][""])
    result = run(
        *("server", where, "--pack", "goms", "--only", "server.goms.register-unknown"),
        *("--timeout", "0.2", "--out", str(tmp_path)),
    )
    assert result.exit_code == 1, result.output
    (wire,) = (tmp_path / "wire").iterdir()
    assert wire.name == "server.goms.register-unknown.json"
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Unknown topics are error 001001" in page, "the fact in full"
    (record,) = [
        each
        for each in map(json.loads, (tmp_path / "run.jsonl").read_text("utf-8").splitlines())
        if each["event"] == "case"
    ]
    sent = [entry["messages"] for entry in record["wire"] if entry["kind"] == "sent"]
    assert "register" in sent[0][0]


def test_a_reply_is_read_by_what_was_asked(
    addresses: Mapping[str, Mapping[str, Address]], tmp_path: Path
) -> None:
    """Replies of Throttr say nothing of their requests: a log without these cannot be read."""
    where = {place: str(each) for place, each in addresses["throttr"].items()}
    result = run(
        *("server", where[""], "--pack", "throttr", "--only", "server.throttr*.insert"),
        *(
            "--only",
            "server.throttr-7-3.own-channel",
            "--at",
            f"dialect-7.3={where['dialect-7.3']}",
        ),
        *("--out", str(tmp_path)),
    )
    assert result.exit_code == 0, result.output
    heard = [
        message
        for record in map(json.loads, (tmp_path / "run.jsonl").read_text("utf-8").splitlines())
        for entry in record.get("wire", ())
        if entry["kind"] == "received"
        for message in entry["messages"]
    ]
    told = " ".join(heard)
    assert "yes to='INSERT'" in told
    assert "yes to='QUERY'" in told
    assert "amount=7" in told
    assert "yes to='WHOAMI'" in told
    assert "push channel=" in told
    assert "no reply" not in told


def test_cases_of_packs_are_listed_explained_and_replayed(
    addresses: Mapping[str, Mapping[str, Address]],
) -> None:
    listed = run("list", "--pack", "goms")
    assert "16 of 16 rules have cases" in listed.output
    assert "must know the topics conformance-a" in listed.output
    assert "N14 " in run("list", "--pack", "nsq", "--rules").output
    told = run("explain", "server.nsq.window")
    assert "N78 (docs/doors/nsq.md): RDY is a window" in told.output
    assert "a: expect message body=b'1'" in told.output
    where = {place: str(each) for place, each in addresses["nsq"].items()}
    played = run("replay", where[""], "server.nsq-http.ping", "--at", f"http={where['http']}")
    assert played.exit_code == 0, played.output
    assert "http code=200 body=b'OK'" in played.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("server", "127.0.0.1:1", "--pack", "nsq", "--at", "x=127.0.0.1:1"), "WHAT is one of"),
        (("server", "127.0.0.1:1", "--at", "http=127.0.0.1:1"), "none without --pack"),
        (("server", "127.0.0.1:1", "--pack", "smq", "--keep-alive"), "cannot be used with --pack"),
        (("server", "127.0.0.1:1", "--pack", "smq", "--only", "x"), "no case fits"),
        (("replay", "127.0.0.1:1", "server.nsq-http.ping"), "needs --at http="),
        (("list", "--pack", "mqtt"), "'mqtt' is not one of"),
    ],
)
def test_wrong_use_of_packs(arguments: tuple[str, ...], reason: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, reason in result.output) == (3, True), result.output

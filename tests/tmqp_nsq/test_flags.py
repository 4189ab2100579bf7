"""Command lines, configuration files and help of the programs, as Go's flags would read them."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tmqp_nsq.flags import (
    FlagError,
    FlagTable,
    HelpRequestError,
    duration_ns,
    format_duration,
    load_config,
    parse,
)
from tmqp_nsq.server_flags import NSQD, NSQLOOKUPD
from tmqp_nsq.starting import help_text, run_program, version_text
from tmqp_nsq.tool_flags import NSQ_TO_FILE, NSQ_TO_HTTP, NSQADMIN

pytestmark = pytest.mark.cold

TABLES: Final = (NSQD, NSQLOOKUPD, NSQADMIN, NSQ_TO_FILE, NSQ_TO_HTTP)
#: The defaults that the originals document (N18, N20, N147, N149, N158, N164).
DEFAULTS: Final[dict[FlagTable, dict[str, Any]]] = {
    NSQD: {
        "mem-queue-size": 10_000,
        "max-bytes-per-file": 104_857_600,
        "sync-every": 2500,
        "sync-timeout": "2s",
        "msg-timeout": "1m0s",
        "max-msg-timeout": "15m0s",
        "max-msg-size": 1_048_576,
        "max-body-size": 5_242_880,
        "max-req-timeout": "1h0m0s",
        "max-heartbeat-interval": "1m0s",
        "max-rdy-count": 2500,
        "max-output-buffer-size": 65_536,
        "max-output-buffer-timeout": "30s",
        "min-output-buffer-timeout": "25ms",
        "output-buffer-timeout": "250ms",
        "max-channel-consumers": 0,
        "deflate": True,
        "max-deflate-level": 6,
        "snappy": True,
        "tls-min-version": "tls1.0",
        "tcp-address": "0.0.0.0:4150",
        "http-address": "0.0.0.0:4151",
        "https-address": "0.0.0.0:4152",
        "data-path": "",
        "statsd-interval": "1m0s",
        "statsd-prefix": "nsq.%s",
    },
    NSQLOOKUPD: {
        "tcp-address": "0.0.0.0:4160",
        "http-address": "0.0.0.0:4161",
        "inactive-producer-timeout": "5m0s",
        "tombstone-lifetime": "45s",
    },
    NSQADMIN: {
        "http-address": "0.0.0.0:4171",
        "base-path": "/",
        "statsd-counter-format": "stats.counters.%s.count",
        "statsd-gauge-format": "stats.gauges.%s",
        "acl-http-header": "X-Forwarded-User",
        "allow-config-from-cidr": "127.0.0.1/8",
        "http-client-connect-timeout": "2s",
        "http-client-request-timeout": "5s",
    },
    NSQ_TO_FILE: {
        "topic-refresh": "1m0s",
        "channel": "nsq_to_file",
        "max-in-flight": 200,
        "output-dir": "/tmp",
        "work-dir": "",
        "datetime-format": "%Y-%m-%d_%H",
        "filename-format": "<TOPIC>.<HOST><REV>.<DATETIME>.log",
        "gzip": False,
        "gzip-level": 6,
        "rotate-size": 0,
        "rotate-interval": "0s",
        "sync-interval": "30s",
    },
    NSQ_TO_HTTP: {
        "channel": "nsq_to_http",
        "max-in-flight": 200,
        "n": 100,
        "mode": "hostpool",
        "sample": 1.0,
        "content-type": "application/octet-stream",
        "http-client-request-timeout": "20s",
        "status-every": 250,
    },
}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.program)
def test_the_defaults_are_the_originals(table: FlagTable) -> None:
    for name, value in DEFAULTS[table].items():
        flag = table.find(name)
        assert flag is not None, name
        shown = (
            format_duration(flag.default)
            if isinstance(value, str) and flag.kind.word == "duration"
            else flag.default
        )
        assert shown == value, name


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.program)
def test_the_help_names_every_flag_once(table: FlagTable) -> None:
    text = help_text(table)
    for flag in table.flags:
        assert len(re.findall(rf"^  --{re.escape(flag.name)}(?: |$)", text, re.MULTILINE)) == 1
    assert max(len(line) for line in text.splitlines()) <= 100
    names = [flag.name for flag in table.flags]
    assert len(names) == len(set(names))
    keys = [flag.config_key for flag in table.flags if flag.config_key]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    "words",
    [
        ["-mem-queue-size", "7", "-snappy=false", "-lookupd-tcp-address=a:1", "-msg-timeout=90s"],
        ["--mem-queue-size=7", "--snappy=F", "--lookupd-tcp-address", "a:1", "--msg-timeout=1m30s"],
        ["-mem-queue-size=0x7", "-snappy=0", "-lookupd-tcp-address=a:1", "-msg-timeout=1.5m", "--"],
    ],
)
def test_spellings_of_go(words: list[str]) -> None:
    values = parse(NSQD, words)
    assert values.number("mem-queue-size") == 7
    assert not values.is_on("snappy")
    assert values.texts("lookupd-tcp-address") == ("a:1",)
    assert values.seconds("msg-timeout") == 90.0
    assert values.given == {"mem-queue-size", "snappy", "lookupd-tcp-address", "msg-timeout"}


def test_lists_repeat_and_percentiles_take_commas() -> None:
    values = parse(NSQD, ["--auth-http-address=a:1", "--auth-http-address=b:2"])
    assert values.texts("auth-http-address") == ("a:1", "b:2")
    name = "e2e-processing-latency-percentile"
    assert parse(NSQD, [f"--{name}=1.0,0.99", f"--{name}=0.5"]).values[name] == (1.0, 0.99, 0.5)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-mem-queue-sice=1"], "not defined: -mem-queue-sice; did you mean --mem-queue-size"),
        (["--zzz"], "flag provided but not defined: -zzz"),
        (["-mem-queue-size"], "flag needs an argument: -mem-queue-size"),
        (["-mem-queue-size="], 'invalid value "" for flag -mem-queue-size: not a whole number'),
        (["-mem-queue-size=1e3"], "not a whole number: '1e3'"),
        (["-mem-queue-size=99999999999999999999"], "number out of range"),
        (["-snappy=maybe"], "not true or false: 'maybe'"),
        (["-msg-timeout=60"], "not a duration such as 1500ms, 30s or 2m30s: '60'"),
        (["-msg-timeout=1h-2m"], "not a duration"),
        (["-log-level=loud"], "must be one of 'debug', 'info', 'warn', 'error', 'fatal', not"),
        (["-tls-min-version=tls9"], "must be one of"),
        (["topic"], 'unexpected argument "topic": all arguments are flags'),
        (["-snappy", "false"], 'unexpected argument "false"'),
        (["---snappy"], "bad flag syntax: ---snappy"),
        (["-=1"], "bad flag syntax: -=1"),
        (["-"], 'unexpected argument "-"'),
        (["--", "x"], 'unexpected argument "--"'),
    ],
)
def test_what_is_wrong_is_said(words: list[str], text: str) -> None:
    with pytest.raises(FlagError, match=re.escape(text)):
        parse(NSQD, words)


@pytest.mark.parametrize("word", ["-h", "--help", "-help"])
def test_help_is_asked_for(word: str) -> None:
    with pytest.raises(HelpRequestError):
        parse(NSQD, [word])


def test_the_sample_percentile_is_a_number() -> None:
    with pytest.raises(FlagError, match="not a number"):
        parse(NSQ_TO_HTTP, ["--sample=nan"])
    assert parse(NSQ_TO_HTTP, ["--sample=.5"]).real("sample") == 0.5


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("1500ms", 1_500_000_000, "1.5s"),
        ("2m30s", 150_000_000_000, "2m30s"),
        ("1h", 3_600_000_000_000, "1h0m0s"),
        ("0", 0, "0s"),
        ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
        ("25ms", 25_000_000, "25ms"),
        ("3us", 3_000, "3\N{MICRO SIGN}s"),
        (".5s", 500_000_000, "500ms"),
    ],
)
def test_durations(text: str, value: int, shown: str) -> None:
    assert duration_ns(text) == value
    assert format_duration(value) == shown
    assert duration_ns(shown) == value


CONFIG: Final = """
log_level = "warn"
id = 5
nsqlookupd_tcp_addresses = ["127.0.0.1:4160", "127.0.0.1:4260"]
mem_queue_size = 17
snappy = false
msg_timeout = "90s"
sync_timeout = 2000
tls_required = true
e2e_processing_latency_percentiles = [0.99, 0.5]
"""


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "nsqd.cfg"
    path.write_text(CONFIG, encoding="utf-8")
    config = load_config(str(path))
    values = parse(NSQD, ["--mem-queue-size=3", "--lookupd-tcp-address=x:1"], config)
    assert values.number("mem-queue-size") == 3
    assert values.texts("lookupd-tcp-address") == ("x:1",)
    assert values.number("node-id") == 5
    assert values.seconds("msg-timeout") == 90.0
    assert values.seconds("sync-timeout") == 2.0
    assert values.text("tls-required") == "true"
    assert values.values["e2e-processing-latency-percentile"] == (0.99, 0.5)
    assert parse(NSQD, [], config).texts("lookupd-tcp-address")[1] == "127.0.0.1:4260"
    assert [line.partition(" ")[0] for line in values.ignored()] == [
        "--node-id",
        "--sync-timeout",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mem_queue_sise = 1", "unknown key 'mem_queue_sise'; did you mean 'mem_queue_size'"),
        ("config = 'x'", "unknown key 'config'"),
        ("mem_queue_size = 'many'", "mem_queue_size: not a whole number"),
        ("mem_queue_size = true", "mem_queue_size: not a text: True"),
        ("snappy = 3", "snappy: not a text: 3"),
        ("nsqlookupd_tcp_addresses = [1]", "not a text: 1"),
        ("msg_timeout = [1]", "not a text: [1]"),
    ],
)
def test_a_file_with_something_wrong(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "nsqd.cfg"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FlagError, match=re.escape(problem)):
        parse(NSQD, [], load_config(str(path)))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"= 1", "is not TOML"),
        (b"\xff", "is not TOML"),
        (b"#" * 1_100_000, "more than 1048576 bytes"),
    ],
)
def test_a_file_that_cannot_be_read(data: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "nsqd.cfg"
    path.write_bytes(data)
    with pytest.raises(FlagError, match=problem):
        load_config(str(path))
    with pytest.raises(FlagError, match="cannot read config file"):
        load_config(str(tmp_path / "none"))


def test_what_a_program_prints_and_how_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(_values: object) -> None:
        raise FlagError("this is wrong")

    run_program(NSQLOOKUPD, run, ["--version"])
    assert capsys.readouterr().out == version_text(NSQLOOKUPD) + "\n"
    run_program(NSQLOOKUPD, run, ["-h"])
    assert capsys.readouterr().out.startswith("Usage: nsqlookupd [flags]\n")
    for words, text in (([], "this is wrong"), (["--none"], "not defined: -none")):
        with pytest.raises(SystemExit) as ended:
            run_program(NSQLOOKUPD, run, words)
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert f"nsqlookupd: {text}" in error or text in error
        assert "nsqlookupd: 'nsqlookupd --help' lists the flags" in error


def test_a_program_s_log_leaves_the_record_to_others_as_it_was() -> None:
    async def run(_values: object) -> None:
        pass

    seen: list[str] = []

    class Other(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.levelname)

    run_program(NSQLOOKUPD, run, [])
    logging.getLogger().addHandler(Other())  # asked after the program's own
    logging.getLogger("tmqp_nsq.test").warning("one")
    assert seen == ["WARNING"]

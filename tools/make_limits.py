"""Make ``docs/limits.md`` from the sources that define the limits.

    python -m tools.make_limits            write the page
    python -m tools.make_limits --check    only tell whether it is up to date

The page cannot drift from the code: names, defaults and explanations are read from the classes and
constants themselves.  Only what happens beyond a limit is defined here, in :data:`OUTCOMES`; a
limit without such a line, or a line without its limit, is an error.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Final

from tmqp import Limits, constants
from tmqp import models as json_models
from tmqp_server.doors.native import copies
from tmqp_server.doors.native import http as http_messages
from tmqp_server.engine.routing import http_rules
from tools.generated import write_or_check

__all__ = ["OUTCOMES", "PAGE", "main", "render"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "limits.md"
_LIMITS: Final = ROOT / "src" / "tmqp" / "limits.py"
_JSON: Final = (
    ROOT / "src" / "tmqp" / "models" / "_model.py",
    ROOT / "src" / "tmqp" / "models" / "_kinds.py",
    ROOT / "src" / "tmqp" / "models" / "_json.py",
)
_COPIES: Final = ROOT / "src" / "tmqp_server" / "doors" / "native" / "copies.py"
_HTTP: Final = ROOT / "src" / "tmqp_server" / "doors" / "native" / "http.py"
_URLS: Final = ROOT / "src" / "tmqp_server" / "engine" / "routing" / "http_rules.py"
_CLIENT: Final = ROOT / "src" / "tmqp_client" / "config.py"
_PARTS: Final = ROOT / "src" / "tmqp_client" / "parts.py"
_WEB: Final = ROOT / "src" / "tmqp_server" / "doors" / "http" / "limits.py"
_NSQ: Final = ROOT / "src" / "tmqp_server" / "doors" / "nsq" / "options.py"
_LOOKUPD: Final = ROOT / "src" / "tmqp_server" / "doors" / "nsq_lookup" / "table.py"
_SMQ: Final = ROOT / "src" / "tmqp_server" / "doors" / "smq" / "options.py"
_GOMS: Final = ROOT / "src" / "tmqp_server" / "doors" / "goms" / "options.py"
_THROTTR: Final = ROOT / "src" / "tmqp_server" / "doors" / "throttr" / "options.py"
_OPENWIRE: Final = ROOT / "src" / "tmqp_server" / "doors" / "openwire" / "options.py"
_STOMP: Final = ROOT / "src" / "tmqp_server" / "doors" / "stomp" / "options.py"
_ZMTP: Final = ROOT / "src" / "tmqp_server" / "doors" / "zmtp" / "options.py"
_RATES: Final = ROOT / "src" / "tmqp_server" / "settings" / "rates.py"
_UDP: Final = ROOT / "src" / "tmqp_server" / "settings" / "doors.py"
_ENGINE: Final = ROOT / "src" / "tmqp_server" / "engine" / "limits.py"

#: What happens beyond each limit of a connection: a rule of protocol.md, or a description.
OUTCOMES: Final[dict[str, str]] = {
    "max_payload_bytes": "rule payload-limit",
    "max_header_bytes": "rule header-limit",
    "max_name_bytes": "rule name-limit",
    "max_hello_bytes": "rule payload-limit or header-limit",
    "max_hello_properties": "rule hello-limit",
    "max_hello_property_bytes": "rule hello-limit",
    "max_early_bytes": "rule early-limit",
    "handshake_timeout_s": "rule handshake-timeout",
    "ping_interval_s": "a ping is sent",
    "max_missed_pings": "rule ping-timeout",
    "max_pending_pulls": "`LocalProtocolError` from `send`: the program's own fault",
}

_WIRE: Final = (
    ("MAX_NAME_BYTES", "bytes of a message id, source or target", "f6"),
    ("MAX_HEADER_BLOCK_BYTES", "bytes of a header block", "f6"),
    ("MAX_QUEUE_ID", "largest queue id, and largest content type", "f3"),
    ("MAX_TTL", "largest time to live of a message", "f11"),
    ("DEFAULT_TTL", "time to live of a new message", "f11"),
)

_HEAD: Final = """\
# Limits

<!-- Made by `python -m tools.make_limits` from the sources; edit those. -->

Everything that a peer can make a server or client store, compute or wait for is limited. The
limits of a connection are checked in a message's head, before any of its body is stored; exceeding
one ends the connection with a rule of [protocol.md](protocol.md#violations). When a limit of the
server is reached, it answers 482 or 503, and the connection stays open.
"""

_CONNECTION: Final = """\
## One connection

`tmqp.Limits`, passed to `tmqp.Connection`, and its first three values to `tmqp.FrameDecoder`.
"""

_AT_ONCE: Final = """\
An accepted connection therefore stores at most the beginning of one message, {message} bytes with
the defaults (head, names, header block, payload), and the last chunk; before, `max_early_bytes`
and the last chunk. The caller limits what is queued *to be sent*: see
[io-contract.md](io-contract.md#back-pressure).
"""

_WIRE_HEAD: Final = """\
## The wire

The maxima of the frame format; no setting can exceed them. Payload lengths have 64 bits
([F4](protocol.md#f4)).
"""

_JSON_HEAD: Final = """\
## JSON bodies

`tmqp.models` checks every body before it parses it; beyond a limit it raises `ModelError`, which
a server answers with 400 ([F43](protocol.md#f43)). `from_json` and `parse_list` take another size
as `max_bytes`.
"""

_LOOKUPD_HEAD: Final = """\
## nsqlookupd

`limits` of a door `nsqlookupd` ([doors/nsq-lookupd.md](doors/nsq-lookupd.md)).
"""

_WEB_HEAD: Final = """\
## HTTP

The keys of `[web]` beside `listen` ([server.md](server.md#web)).
"""

_NSQ_HEAD: Final = """\
## NSQ

The table `limits` of a door with the protocol `nsq` ([doors/nsq.md](doors/nsq.md)).
"""

_SMQ_HEAD: Final = """\
## Simple MQ

The table `limits` of a door with the protocol `smq` ([doors/smq.md](doors/smq.md)).
"""

_GOMS_HEAD: Final = """\
## goMS

The table `limits` of a door with the protocol `goms` ([doors/goms.md](doors/goms.md)).
"""

_THROTTR_HEAD: Final = """\
## Throttr

The table `limits` of a door with the protocol `throttr` ([doors/throttr.md](doors/throttr.md)).
"""

_ZMTP_HEAD: Final = """\
## ZeroMQ

The table `limits` of a door with the protocol `zmtp` ([doors/zmtp.md](doors/zmtp.md)).
"""

_STOMP_HEAD: Final = """\
## STOMP

The table `limits` of a door with the protocol `stomp` ([doors/stomp.md](doors/stomp.md)).
"""

_OPENWIRE_HEAD: Final = """\
## OpenWire

The table `limits` of a door with the protocol `openwire` ([doors/openwire.md](doors/openwire.md)).
"""

_RATES_HEAD: Final = """\
## Rates

The table `[rates]` ([production.md](production.md#rates)). 0 is no limit; a connection that is
too fast is not read from for a while.
"""

_UDP_HEAD: Final = """\
## UDP

The table `udp` of a [door](server.md#doors) that listens on `udp://HOST:PORT`, for each such
address.
"""

_ENGINE_HEAD: Final = """\
## The server's engine

`tmqp_server.engine.limits.EngineLimits`.
"""


_CLIENT_HEAD: Final = """\
## The client

`tmqp_client.ClientLimits`, passed to `connect`; its `protocol` is the `Limits` above. Names of
seconds end in `_s`.
"""

_DOOR_HEAD: Final = """\
## The server's door

What one message or one binding may request, whatever the settings.
"""


def documented_fields(path: Path, name: str) -> list[tuple[str, str, str]]:
    """Return the fields of a class: name, default as in the source, and the string below each.

    :raises ValueError: if the class is missing, or a field has no default or no explanation.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _fields_of(node)
    raise ValueError(f"{path} has no class {name}")


def _fields_of(node: ast.ClassDef) -> list[tuple[str, str, str]]:
    result: list[tuple[str, str, str]] = []
    for index, item in enumerate(node.body):
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        below = node.body[index + 1] if index + 1 < len(node.body) else None
        text = below.value if isinstance(below, ast.Expr) else None
        if item.value is None or not isinstance(text, ast.Constant):
            raise ValueError(f"{node.name}.{item.target.id} needs a default and an explanation")
        result.append((item.target.id, ast.unparse(item.value), str(text.value)))
    return result


def commented_constants(path: Path) -> list[tuple[str, str]]:
    """Return the constants whose names begin with MAX or MIN, with the ``#:`` comment above
    each."""
    lines = path.read_text(encoding="utf-8").split("\n")
    result: list[tuple[str, str]] = []
    comment: list[str] = []
    for line in lines:
        if line.startswith("#:"):
            comment.append(line[2:].strip())
            continue
        found = re.match(r"(M(?:AX|IN)_\w+): Final = ", line)
        if found is not None:
            if not comment:
                raise ValueError(f"{path}: {found.group(1)} needs a comment with #:")
            result.append((found.group(1), " ".join(comment)))
        comment = []
    return result


def _prose(text: str) -> str:
    """Convert a docstring to one line of Markdown, with links for rules."""
    line = " ".join(text.split()).replace("``", "`").replace("|", "\\|")
    return re.sub(r"\bF(\d+)\b", lambda rule: f"[F{rule[1]}](protocol.md#f{rule[1]})", line)


def _number(value: object) -> str:
    """Format a default for people: groups of three digits, no unnecessary fraction."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _outcome(name: str) -> str:
    text = OUTCOMES[name]
    if not text.startswith("rule "):
        return text
    rules = text.removeprefix("rule ").split(" or ")
    return " or ".join(f"[{rule}](protocol.md#rule-{rule})" for rule in rules)


def _connection_table() -> list[str]:
    explained = documented_fields(_LIMITS, "Limits")
    if {name for name, _, _ in explained} != set(OUTCOMES):
        raise ValueError("tools/make_limits.py: OUTCOMES and Limits name different bounds")
    defaults = {field.name: field.default for field in fields(Limits)}
    rows = ["| limit | default | what it limits | beyond it |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {_number(defaults[name])} | {_prose(text)} | {_outcome(name)} |"
        for name, _, text in explained
    ]
    return rows


def _wire_table() -> list[str]:
    rows = ["| constant | value | meaning |", "|---|---|---|"]
    for name, text, rule in _WIRE:
        value = _number(getattr(constants, name))
        link = f"[{rule.upper()}](protocol.md#{rule})"
        rows.append(f"| `{name}` | {value} | {text} ({link}) |")
    return rows


def _json_table() -> list[str]:
    rows = ["| constant | value | meaning |", "|---|---|---|"]
    for path in _JSON:
        for name, text in commented_constants(path):
            value = _number(getattr(json_models, name))
            rows.append(f"| `{name}` | {value} | {_prose(text)} |")
    return rows


def _client_table() -> list[str]:
    rows = ["| limit | default | what it limits, and what happens beyond it |", "|---|---|---|"]
    for name, default, text in documented_fields(_CLIENT, "ClientLimits"):
        if name != "protocol":
            rows.append(f"| `{name}` | {_number(ast.literal_eval(default))} | {_prose(text)} |")
    for path in (_PARTS,):
        for name, text in commented_constants(path):
            value = re.search(rf"^{name}: Final = ([\d_]+)$", path.read_text("utf-8"), re.MULTILINE)
            if value is None:
                raise ValueError(f"{path}: {name} is no number")
            rows.append(f"| `{name}` | {_number(int(value[1]))} | {_prose(text)} |")
    return rows


def _door_table() -> list[str]:
    rows = ["| constant | value | meaning |", "|---|---|---|"]
    for path, module in ((_COPIES, copies), (_HTTP, http_messages), (_URLS, http_rules)):
        for name, text in commented_constants(path):
            rows.append(f"| `{name}` | {_number(getattr(module, name))} | {_prose(text)} |")
    return rows


def _engine_table() -> list[str]:
    rows = ["| limit | default | what it limits, and what happens beyond it |", "|---|---|---|"]
    for name, default, text in documented_fields(_ENGINE, "EngineLimits"):
        value = ast.literal_eval(default) if default[0].isdigit() else getattr(constants, default)
        rows.append(f"| `{name}` | {_number(value)} | {_prose(text)} |")
    return rows


def _limits_table(path: Path, record: str) -> list[str]:
    rows = ["| limit | default | what it limits, and what happens beyond it |", "|---|---|---|"]
    for name, default, text in documented_fields(path, record):
        value = re.search(r"\b\d[\d_]*(\.\d+)?", default)
        if value is None:
            continue  # a list of exceptions, which is no limit
        rows.append(f"| `{name}` | {_number(ast.literal_eval(value[0]))} | {_prose(text)} |")
    return rows


def render() -> str:
    """Return the text of the page."""
    bounds = Limits()
    message = (
        8 + 8 + 3 * bounds.max_name_bytes + 2 + bounds.max_header_bytes + bounds.max_payload_bytes
    )
    parts = [
        _HEAD,
        _CONNECTION,
        "\n".join([*_connection_table(), ""]),
        _AT_ONCE.format(message=_number(message)),
        _WIRE_HEAD,
        "\n".join([*_wire_table(), ""]),
        _JSON_HEAD,
        "\n".join([*_json_table(), ""]),
        _DOOR_HEAD,
        "\n".join([*_door_table(), ""]),
        _WEB_HEAD,
        "\n".join([*_limits_table(_WEB, "HttpLimits"), ""]),
        _NSQ_HEAD,
        "\n".join([*_limits_table(_NSQ, "NsqLimits"), ""]),
        _LOOKUPD_HEAD,
        "\n".join([*_limits_table(_LOOKUPD, "LookupLimits"), ""]),
        _SMQ_HEAD,
        "\n".join([*_limits_table(_SMQ, "SmqLimits"), ""]),
        _GOMS_HEAD,
        "\n".join([*_limits_table(_GOMS, "GomsLimits"), ""]),
        _THROTTR_HEAD,
        "\n".join([*_limits_table(_THROTTR, "ThrottrLimits"), ""]),
        _ZMTP_HEAD,
        "\n".join([*_limits_table(_ZMTP, "ZmtpLimits"), ""]),
        _STOMP_HEAD,
        "\n".join([*_limits_table(_STOMP, "StompLimits"), ""]),
        _OPENWIRE_HEAD,
        "\n".join([*_limits_table(_OPENWIRE, "OpenwireLimits"), ""]),
        _RATES_HEAD,
        "\n".join([*_limits_table(_RATES, "RateSettings"), ""]),
        _UDP_HEAD,
        "\n".join([*_limits_table(_UDP, "UdpSettings"), ""]),
        _ENGINE_HEAD,
        "\n".join([*_engine_table(), ""]),
        _CLIENT_HEAD,
        "\n".join([*_client_table(), ""]),
    ]
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it; 1 if it is out of date."""
    return write_or_check({PAGE: render()}, arguments, "make_limits")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

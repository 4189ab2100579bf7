"""A running server with an admin door, something in it, and clients: what the console is shown."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.ports import free_port
from tests.tmqp_server.peers import greeting, operation
from tmqp.constants import OP_CREATE_QUEUE
from tmqp_client import sync

__all__ = ["ADMIN", "CLERK", "HOSTILE", "HOSTILE_TEXT", "PAYLOADS", "World", "world"]

#: The tokens of the two who may log in.
ADMIN: Final = "a-token-of-the-administrator"
CLERK: Final = "a-token-of-the-clerk"
#: What names may have in them, and headers and bodies besides.
HOSTILE: Final = "<img/src=x/onerror=window.hurt=1>\"'`${window.hurt=1}{{hurt}}"
HOSTILE_TEXT: Final = f"{HOSTILE}</script><script>window.hurt=1</script>\u202e\x00javascript:hurt"
#: Markup that runs by itself in one browser or another, all in one text.
_RUNNING: Final = " ".join(
    f"<{tag} {handler}=window.hurt=1>"
    for tag, handler in (
        ("img src=x", "onerror"),
        ("body", "onload"),
        ("svg", "onload"),
        ("svg><animate attributeName=x dur=1s", "onbegin"),
        ("video><source", "onerror"),
        ("audio src=x", "onerror"),
        ("input autofocus", "onfocus"),
        ("select autofocus", "onfocus"),
        ("textarea autofocus", "onfocus"),
        ("button autofocus", "onfocus"),
        ("marquee", "onstart"),
        ("object data=x", "onerror"),
        ("embed src=javascript:window.hurt=1", "onload"),
        ("iframe srcdoc='<script>parent.hurt=1</script>'", "onload"),
        ("math href=javascript:window.hurt=1", "onclick"),
        ("form action=javascript:window.hurt=1><button", "formaction"),
        ("base href=javascript:window.hurt=1//", "onerror"),
        ("meta http-equiv=refresh content='0;url=javascript:window.hurt=1'", "x"),
        ("link rel=stylesheet href=data:,*{x:y}", "onload"),
        ("style>@import'javascript:window.hurt=1';</style><b", "onmouseover"),
        ("table background=javascript:window.hurt=1", "onclick"),
        ("div style=animation-name:x", "onanimationstart"),
        ("p tabindex=1 autofocus", "onfocus"),
        ("xss contenteditable autofocus", "onfocus"),
        ("template><script>window.hurt=1</script></template><b", "onclick"),
        ("noscript><p title='</noscript><img src=x onerror=window.hurt=1>'", "onclick"),
    )
)
#: What has hurt other consoles: markup, handlers, URLs, templates, what cannot be seen.
PAYLOADS: Final = (
    HOSTILE_TEXT,
    _RUNNING,
    "<<script>script>window.hurt=1<</script>/script>",
    "&lt;script&gt;window.hurt=1&lt;/script&gt; &#60;img src=x onerror=window.hurt=1&#62;",
    "<!--><img src=x onerror=window.hurt=1>--><![CDATA[><script>window.hurt=1</script>]]>",
    "data:text/html;base64,PHNjcmlwdD53aW5kb3cuaHVydD0xPC9zY3JpcHQ+",
    "<script>window.hurt=1</script>",
    "<svg/onload=window.hurt=1>",
    "<iframe src='javascript:parent.hurt=1'></iframe>",
    "<a href='javascript:window.hurt=1' id=go>go</a>",
    "<details open ontoggle=window.hurt=1>",
    "</td></table><img src=x onerror=window.hurt=1>",
    "'-window.hurt=1-'",
    "${window.hurt=1}#{window.hurt=1}<%=window.hurt=1%>{{constructor.constructor('hurt=1')()}}",
    '{"__proto__": {"hurt": 1}, "<b onclick=hurt=1>": "<img src=x onerror=window.hurt=1>"}',
    "\u202e\u2066\u200b\ufeff\x01\x1b[31m",
    "x" * 70_000,
    "[" * 20_000,
)
_STOP_S: Final = 10
_ACCESS: Final = f"""
[[access.tokens]]
name = "ann"
token = "{ADMIN}"
roles = ["admin"]

[[access.tokens]]
name = "clerk"
token = "{CLERK}"
roles = ["looks"]

[access.roles.looks]
rights = ["see-channel", "see-consumers", "browse", "push"]
channels = ["orders*"]
"""
_CONFIG: Final = """
listen = ["127.0.0.1:{port}"]
drain_timeout_s = 0.2

[http]
allow = ["http://127.0.0.1:9/"]

[admin]
listen = ["127.0.0.1:{admin}"]
backups = "{backups}"

[broker]
max_queues_per_channel = 20_000

[[channels]]
name = "orders"

[[channels.queues]]
id = 1

[[channels.queues]]
id = 2
message_limit = 3
when_full = "dead-letter"
dead_letter = {{ channel = "dead", queue = 1 }}

[[channels]]
name = "dead"

[[channels.queues]]
id = 1

[[routers]]
name = "sales"
method = "distribute"

[[routers.bindings]]
name = "to-orders"
kind = "queue"
target = "orders"
queue = 1
priority = 10

[[routers.bindings]]
name = "to-clerks"
kind = "direct"
target = "@name:clerk"

[[routers.bindings]]
name = "hook"
kind = "http"
target = "http://127.0.0.1:9/hook"
http_method = "post"
"""


class World:
    """A server that can be stopped and started again at the same addresses.

    :param folder: where its files are.
    :param guarded: clients need one of the tokens.
    :param stores: it has a data directory.
    """

    def __init__(self, folder: Path, *, guarded: bool = False, stores: bool = True) -> None:
        self._stores = stores
        self.port, self.admin = free_port(), free_port()
        self._folder = folder
        text = _CONFIG.format(port=self.port, admin=self.admin, backups=folder)
        self._config = folder / "tmqp.toml"
        self._config.write_text(text + (_ACCESS if guarded else ""), encoding="utf-8")
        self.token = ADMIN if guarded else ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """The beginning of the console's addresses."""
        return f"http://127.0.0.1:{self.admin}/"

    def start(self) -> None:
        """Start the server."""
        words = ["--config", str(self._config)]
        if self._stores:
            words += ["--data", str(self._folder / "data")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tmqp_server", *words, "--log-level", "warning"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert " ready on " in line, f"the server did not start: {line!r}"

    def stop(self) -> None:
        """Stop it."""
        process = self._process
        if process is None:
            return
        self._process = None
        process.terminate()
        try:
            assert process.wait(_STOP_S) == 0, "it stops cleanly"
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def crowd(self, channel: str, count: int) -> None:
        """Create many queues in a channel."""
        frames = [greeting("crowd")]
        for number in range(count):
            last = number == count - 1
            frames.append(
                operation(
                    OP_CREATE_QUEUE,
                    channel,
                    headers=[("Queue-Id", str(number))],
                    message_id="last" if last else "some",
                    pending_response=last,
                ).raw
            )
        with socket.create_connection(("127.0.0.1", self.port), 30) as peer:
            peer.sendall(b"".join(frames))
            heard = b""
            while b"last" not in heard:
                heard = heard[-8:] + (chunk := peer.recv(65_536))
                assert chunk, "the server has closed the connection"

    def client(self, name: str, type: str = "worker") -> sync.Client:
        """A client of the server."""
        return sync.connect(f"tmq://127.0.0.1:{self.port}", name=name, type=type, token=self.token)


def fill(client: sync.Client, names: Sequence[str] = ()) -> None:
    """Put something into the queues; *names* become channels."""
    for number in range(5):
        body = f'{{"order": {number}, "lines": [{{"item": "pizza", "count": {number + 1}}}]}}'
        client.push("orders", 1, body, headers=[("Country", "fr"), ("X-Trace", f"t-{number}")])
    client.push("orders", 1, "later", delay_s=3600)
    client.push("orders", 1, bytes(range(256)))
    for number in range(6):
        client.push("orders", 2, f"invoice {number}")
    for name in names:
        client.create_queue(name, 1)
        for payload in PAYLOADS:
            text = "".join(each for each in payload[:2_000] if each >= " ")
            client.push(
                name,
                1,
                payload,
                headers=[("Text", text), (text[:60].replace(":", "") or "None", "x")],
            )


@contextmanager
def world(
    folder: Path, *, guarded: bool = False, hostile: bool = True, stores: bool = True
) -> Iterator[World]:
    """Run a server with messages in it and a client that has joined a channel."""
    made = World(folder, guarded=guarded, stores=stores)
    try:
        made.start()
        with ExitStack() as stack:
            client = stack.enter_context(made.client("web-1"))
            fill(client, [HOSTILE] if hostile else [])
            client.join("orders")
            if hostile:
                stack.enter_context(made.client(HOSTILE, HOSTILE)).join("orders")
            yield made
    finally:
        made.stop()

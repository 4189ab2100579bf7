"""Record ``docs/terminal.svg``: a server and the command ``tmqp``, as a terminal shows them.

    python -m tools.make_terminal

The commands are those of the README.  Each runs in a pseudo-terminal, so that it prints what a user
sees; ``rich`` draws the result.  Times and rates are those of the machine, so nothing compares the
picture with a new one.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

__all__ = ["PAGE", "SCRIPT", "commands_of", "main"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "terminal.svg"
_COLUMNS: Final = 92
_TIMEOUT_S: Final = 30
#: The time for a subscriber to join, which it does not report.
_JOINING_S: Final = 1.5
_USUAL_ADDRESS: Final = "tmq://127.0.0.1:2622"
#: The user's input; a command that ends in ``&`` runs in the background.
SCRIPT: Final = (
    "tmqp-server --data ./tmqp-data &",
    "tmqp ping --wait 10",
    "tmqp queue create orders 1 --status push --durable --retain-time 3600",
    "tmqp sub orders --queue 1 --count 3 &",
    "tmqp pub orders 1 'pizza {n}' --template --count 3",
    "tmqp read orders 1",
    "tmqp bench pub --count 20000",
)
_FONT: Final = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
#: rich's own frame without the font that it would load from another host.
_FORMAT: Final = f"""\
<svg class="rich-terminal" viewBox="0 0 {{width}} {{height}}" xmlns="http://www.w3.org/2000/svg">
<title>A tmqp server and its command line</title>
<!-- Recorded by python -m tools.make_terminal. -->
<style>
.{{unique_id}}-matrix {{{{ font-family: {_FONT}; font-size: {{char_height}}px;
line-height: {{line_height}}px; font-variant-east-asian: full-width; }}}}
.{{unique_id}}-title {{{{ font-size: 18px; font-weight: bold; font-family: arial; }}}}
{{styles}}
</style>
<defs>
<clipPath id="{{unique_id}}-clip-terminal">
<rect x="0" y="0" width="{{terminal_width}}" height="{{terminal_height}}"/>
</clipPath>
{{lines}}
</defs>
{{chrome}}
<g transform="translate({{terminal_x}}, {{terminal_y}})"
clip-path="url(#{{unique_id}}-clip-terminal)">
{{backgrounds}}
<g class="{{unique_id}}-matrix">
{{matrix}}
</g>
</g>
</svg>
"""


def commands_of(line: str) -> list[str]:
    """Return the words of a line, without its ``&``."""
    return shlex.split(line.removesuffix("&"))


class _Running:
    """A command in a pseudo-terminal of its own."""

    def __init__(self, words: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *words],
            cwd=folder,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def read(self) -> str:
        """Return its output, once it has ended.

        :raises RuntimeError: if it failed.
        """
        data = b""
        while True:
            try:
                chunk = os.read(self._master, 65_536)
            except OSError:  # a terminal without a program reports an error, not an end
                chunk = b""
            if not chunk:
                break
            data += chunk
        status = self._process.wait(_TIMEOUT_S)
        os.close(self._master)
        text = data.decode("utf-8", "replace")
        if status:
            raise RuntimeError(f"a command ended with status {status}: {text}")
        return text

    def line_with(self, words: str) -> str:
        """Return the first line with these words, while the command runs."""
        data = b""
        while words not in data.decode("utf-8", "replace") or not data.endswith(b"\n"):
            data += os.read(self._master, 1)
        return data.decode("utf-8", "replace").splitlines()[-1]

    def stop(self) -> None:
        """End the command."""
        self._process.terminate()
        self._process.wait(_TIMEOUT_S)
        os.close(self._master)


#: Runs a console script of ours by its name, from the sources.
_START: Final = """\
import sys
import tmqp_scripts
names = {"tmqp": "client", "tmqp-server": "server"}
sys.argv = sys.argv[1:]
getattr(tmqp_scripts, names[sys.argv[0]])()
"""


def _visible(text: str) -> str:
    """Return a program's output without cursor movements, and only the last state of redrawn
    lines."""
    text = re.sub(r"\x1b\[\?25[lh]|\x1b\[\d*[ABCDGJ]", "", text)
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    kept = [re.sub(r"^.*\x1b\[2K", "", line) for line in lines]
    return "\n".join(kept).rstrip("\n")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def _record(console: Console, folder: Path) -> None:
    """Run the script and print it as a terminal would show it.

    The server listens on a free port in place of the usual one, which may be in use; the picture
    shows the usual one.
    """
    address = f"tmq://127.0.0.1:{_free_port()}"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": str(_COLUMNS),
        "TERM": "xterm-256color",
        "TMQP_ADDRESS": address,
        "TMQP_CONFIG": str(folder / "contexts.toml"),
    }
    environment.pop("NO_COLOR", None)

    def show(text: str) -> None:
        console.print(Text.from_ansi(_visible(text).replace(address, _USUAL_ADDRESS)))

    servers: list[_Running] = []
    waiting: list[_Running] = []
    try:
        for line in SCRIPT:
            console.print(Text("$ ", style="bold green") + Text(line, style="bold"))
            words = commands_of(line)
            if words[0] == "tmqp-server":
                servers.append(_Running([*words, "-l", address], folder, environment))
                show(servers[-1].line_with(" ready on "))
            elif line.endswith("&"):
                waiting.append(_Running(words, folder, environment))
                time.sleep(_JOINING_S)
            else:
                show(_Running(words, folder, environment).read())
                while waiting:
                    show(waiting.pop().read())
    finally:
        for server in servers:
            server.stop()


def main() -> int:
    """Record the session and write the picture."""
    console = Console(
        record=True,
        width=_COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    with tempfile.TemporaryDirectory() as folder:
        _record(console, Path(folder))
    picture = console.export_svg(title="tmqp", code_format=_FORMAT, unique_id="tmqp")
    lines = [line.rstrip() for line in picture.splitlines()]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

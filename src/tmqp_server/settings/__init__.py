"""The sections of the server's configuration.

``config.py`` reads the file and has the server's own settings; each module here reads and checks
one kind of table.  ``wiring/assembly.py`` makes the broker from them.
"""

from __future__ import annotations

__all__: list[str] = []

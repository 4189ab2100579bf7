"""The parts of the server's configuration that say what the broker is to be like.

``config.py`` reads the file and owns the server's own settings; each module here reads one kind of
table and checks it.  ``assembly.py`` makes the broker from all of them.
"""

from __future__ import annotations

__all__: list[str] = []

"""nsq_to_file: names of files, files, and the consumer that fills them (N158 to N163)."""

from __future__ import annotations

__all__: list[str] = []

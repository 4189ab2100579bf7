"""Programs for NSQ users: nsqd, nsqlookupd, nsqadmin, nsq_to_file, nsq_to_http.

They take the flags and the ports of the originals (N18 to N23, N149, N158, N164), so that the
commands, unit files and scripts of an NSQ installation work unchanged.  nsqadmin, nsq_to_file and
nsq_to_http work with any nsqd; nsqd is the broker of this project with the NSQ doors.

Each program is a function ``main`` in a module of the program's name.
"""

from __future__ import annotations

from typing import Final

__all__ = ["NSQ_VERSION"]

#: The release of NSQ whose behaviour the programs have, as ``-version`` and User-Agent say it.
NSQ_VERSION: Final = "1.3.0"

"""Exit codes of commands, named as in sysexits.h; RabbitMQ's tools use them, and `os` on Windows lacks them."""

from __future__ import annotations

from typing import Final

EX_USAGE: Final = 64
EX_DATAERR: Final = 65
EX_NOINPUT: Final = 66
EX_NOUSER: Final = 67
EX_NOHOST: Final = 68
EX_UNAVAILABLE: Final = 69
EX_SOFTWARE: Final = 70
EX_OSERR: Final = 71
EX_CANTCREAT: Final = 73
EX_IOERR: Final = 74
EX_TEMPFAIL: Final = 75
EX_NOPERM: Final = 77
EX_CONFIG: Final = 78

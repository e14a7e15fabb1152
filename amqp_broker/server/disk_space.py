"""Free space of a file system.

`shutil.disk_usage` says the same; its module also imports the formats of archives, which take half a MB.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def free_bytes(folder: Path) -> int:
    """Return the octets that this user may still write to the file system of `folder`. Raise OSError."""
    if sys.platform == "win32":
        import shutil

        return shutil.disk_usage(folder).free
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize

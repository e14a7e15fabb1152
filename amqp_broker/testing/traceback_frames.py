"""The traceback of a failed test without the frames of the broker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

# The folders of the broker's modules and of Python's.
INTERNAL: Final = f"{Path(__file__).parents[1]}{os.sep}"
STANDARD_LIBRARY: Final = f"{Path(os.__file__).parent}{os.sep}"


def hide_internal_frames(error: BaseException) -> None:
    """Remove the broker's frames from the traceback of an explained error, with those of what it called.

    Others keep all frames, because they may be errors of the broker itself.
    """
    is_explained = isinstance(error, AssertionError | FileNotFoundError)
    if not is_explained and not type(error).__module__.startswith("amqp_broker."):
        return
    kept, at, is_hidden = None, error.__traceback__, False
    while at is not None:
        path = at.tb_frame.f_code.co_filename
        is_hidden = path.startswith(INTERNAL) or (is_hidden and not _is_of_test(path))
        if not is_hidden:
            if kept is not None:
                kept.tb_next = at
            kept = at
        at = at.tb_next
    if kept is not None:
        kept.tb_next = None


def _is_of_test(path: str) -> bool:
    """Return whether a file belongs to neither the broker nor Python."""
    return not path.startswith(INTERNAL) and (not path.startswith(STANDARD_LIBRARY) or "site-packages" in path)

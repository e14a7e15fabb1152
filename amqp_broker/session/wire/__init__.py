"""Frames that arrive and frames that leave. Read `reader.py` first, the hot path.

`dispatch.py` leads every frame that the reader does not handle itself to the function for its method; `outbox.py` has
what the connection says next.
"""

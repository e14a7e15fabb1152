"""The key by which two messages are duplicates: the value of a header, shortened.

Source: rabbitmq-message-deduplication (noxdafox), its README and common.ex.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp.errors import PreconditionFailed

if TYPE_CHECKING:
    from amqp_broker.amqp import fields

HEADER: Final = "x-deduplication-header"
# The size of a key in octets. A longer value counts by its hash, so a client's header cannot fill the memory.
KEY_BYTES_MAX: Final = 33


def key_of(headers: fields.Table, name: str) -> bytes | None:
    """Return the key of a message with these headers; None if it is never a duplicate.

    Integers of all types are equal, texts and octets are equal; other types differ. As in the plugin, a table, an array
    or a decimal number is no key.
    """
    if name not in headers:
        return None
    value: Any = headers[name]
    if value is None:
        return b"v"
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, int):
        return b"i%d" % int(value)
    if isinstance(value, float):
        return b"f" + struct.pack(">d", value)
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, (bytes, bytearray)):
        return None
    if len(value) < KEY_BYTES_MAX:
        return b"s" + bytes(value)
    return b"h" + hashlib.blake2b(value, digest_size=KEY_BYTES_MAX - 1).digest()


def header_name(arguments: fields.Table) -> str:
    """Return the name of the header that an exchange or a queue compares.

    It is `HEADER` unless the arguments name another, as in LavinMQ. Raises PreconditionFailed.
    """
    name = arguments.get(HEADER, HEADER)
    if not isinstance(name, str) or not name:
        raise PreconditionFailed(f"Invalid argument, '{HEADER}' must be the name of a header")
    return name

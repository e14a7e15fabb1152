"""Changes of the structure of field tables, which leave them well formed more often than not."""

from __future__ import annotations

from random import Random

from tests.mutations import MUTATIONS

KEYS = (b"a", b"b", b"", b"B", b"CC", b"BCC", b"n", b"\xc3\xa9", b"\xff", b"x-death", b"x-stream-offset")
SIZES = dict(zip(b"tbBsuIiflLdTDV", (1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 5, 0), strict=True))
DEPTH_MAX = 4


def field(chance: Random, depth: int = 0, *, has_key: bool = True) -> bytes:
    """Return a random field; one of an array has no key."""
    key = chance.choice(KEYS)
    start = bytes([len(key)]) + key if has_key else b""
    kind = chance.choice(b"SxSxFA" + bytes(SIZES)) if depth < DEPTH_MAX else chance.choice(bytes(SIZES))
    if kind in SIZES:
        return start + bytes([kind]) + chance.randbytes(SIZES[kind])
    if kind in b"Sx":
        value = chance.choice((b"", b"q", b"all", b"any", chance.randbytes(chance.randrange(9))))
    else:
        value = b"".join(field(chance, depth + 1, has_key=kind == ord("F")) for _ in range(chance.randrange(4)))
    return start + bytes([kind]) + len(value).to_bytes(4, "big") + value


def split(data: bytes) -> list[bytes]:
    """Return the fields of a table without its size; octets that are no field are the last one."""
    found, at = [], 0
    while at < len(data):
        kind_at = at + 1 + data[at]
        if kind_at >= len(data):
            break
        kind = data[kind_at]
        end = kind_at + 1 + SIZES.get(kind, 0)
        if kind in b"SxFA":
            end = kind_at + 5 + int.from_bytes(data[kind_at + 1 : kind_at + 5], "big")
        elif kind not in SIZES:
            break
        if end > len(data):
            break
        found.append(data[at:end])
        at = end
    return [*found, data[at:]] if at < len(data) else found


def mutate(chance: Random, data: bytes) -> bytes:
    """Change the fields of a table without its size."""
    pieces = split(data)
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(pieces) + 1)
        match chance.randrange(6):
            case 0 if at < len(pieces):
                del pieces[at]
            case 1 if at < len(pieces):
                pieces.insert(chance.randrange(len(pieces) + 1), pieces[at])
            case 2 if len(pieces) > 1:
                other = chance.randrange(len(pieces))
                at = min(at, len(pieces) - 1)
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 3 if at < len(pieces):
                pieces[at] = inner(chance, pieces[at])
            case 4 if at < len(pieces) and pieces[at]:
                pieces[at] = chance.choice(MUTATIONS)(chance, pieces[at])
            case _:
                pieces.insert(at, field(chance))
    return b"".join(pieces)


def inner(chance: Random, piece: bytes) -> bytes:
    """Change what is in a nested table, and leave it a table."""
    at = 1 + piece[0] if piece else 0
    if len(piece) < at + 5 or piece[at] not in b"F":
        return field(chance)
    value = mutate(chance, piece[at + 5 :])
    return piece[: at + 1] + len(value).to_bytes(4, "big") + value

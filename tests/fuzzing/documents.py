"""Changes of JSON documents, which leave them documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.mutations import MUTATIONS

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 256, 65536, 2**31, 2**32, 2**62, 2**63, 2**64, -(2**63), 10**30),
    *(0.5, -0.0, 1e300, "", "q", "x", "/", "5", "true", "a" * 256, "é", "\u0000", "\ud800", "amq.direct", "undefined"),
    *([], {}, [1], ["a"], [None], [[]], {"": ""}, {"a": 1}, {"x-queue-type": "quorum"}, {"max-length": 1}),
)


def changed(chance: Random, document: Any, keys: Sequence[str]) -> Any:
    """Return a document with one change; `keys` are names that the code under test knows."""
    if not isinstance(document, (dict, list)) or (not document and chance.randrange(2)):
        return chance.choice(VALUES)
    places = list(document) if isinstance(document, dict) else list(range(len(document)))
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    key: Any = chance.choice(places) if places else None
    # Most changes are to what lies deeper.
    match chance.randrange(16):
        case 0 if places:
            del copy[key]
        case 1 if places:
            copy[key] = chance.choice(VALUES)
        case 2 if isinstance(copy, list) and places:
            copy.insert(chance.randrange(len(copy) + 1), copy[key])
        case 2 if places:
            copy[chance.choice(keys)] = copy[key]
        case 3 if isinstance(copy, dict):
            copy[chance.choice(keys)] = chance.choice(VALUES)
        case 3:
            copy.append(chance.choice(VALUES))
        case _ if places:
            copy[key] = changed(chance, document[key], keys)
    return copy


def mutate(chance: Random, octets: bytes, keys: Sequence[str]) -> bytes:
    """Change a JSON text, or its octets if it is none."""
    try:
        document = json.loads(octets)
    except (ValueError, RecursionError):
        return chance.choice(MUTATIONS)(chance, octets) if octets else b"{}"
    for _ in range(chance.choice((1, 1, 2, 4))):
        document = changed(chance, document, keys)
    return json.dumps(document, ensure_ascii=chance.randrange(2) == 0).encode("utf-8", "surrogatepass")

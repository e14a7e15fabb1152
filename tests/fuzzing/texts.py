"""Changes of texts of tokens: words, numbers, white space and single marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

NUMBERS = ("0", "1", "-1", "255", "65536", "4294967296", "9" * 20, "0.5", "1.0e-9", "1.0e999", "infinity", "1GB", "50%")
TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


def mutate(chance: Random, data: bytes, words: Sequence[str]) -> bytes:
    """Change a token or a few; `words` are tokens that the code under test knows."""
    tokens = TOKEN.findall(data.decode("utf-8", "surrogateescape"))
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(tokens) + 1)
        end = at + chance.choice((1, 1, 1, 3, 9))
        match chance.randrange(6):
            case 0:
                del tokens[at:end]
            case 1:
                tokens[at:at] = tokens[at:end]
            case 2:
                to = chance.randrange(len(tokens) + 1)
                tokens[to:to] = tokens[at:end]
            case 3:
                tokens.insert(at, chance.choice(words))
            case 4:
                tokens[at : at + 1] = [chance.choice(words)]
            case _:
                tokens[at : at + 1] = [chance.choice(NUMBERS)]
    return "".join(tokens).encode("utf-8", "surrogateescape")

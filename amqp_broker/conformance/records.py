"""The recorded transcripts of RabbitMQ: `recorded/<oracle>/{wire,http}/<area>.json`.

An oracle is a minor version of RabbitMQ. A scenario has several transcripts where RabbitMQ answers differently from run
to run.
"""

from __future__ import annotations

import json
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded")
# The versions that are recorded, from old to new.
ORACLES = ("3.10", "4.0", "4.3")
# Folders: transcripts of AMQP alone, and with requests to the HTTP API.
KINDS = ("wire", "http")

# Transcripts, which are lists of lines, by `area/name` of the scenario.
Transcripts = dict[str, list[list[str]]]


def load(oracle: str) -> Transcripts:
    """Return the transcripts of an oracle."""
    found: Transcripts = {}
    for file in sorted(file for kind in KINDS for file in (RECORDED / oracle / kind).glob("*.json")):
        seen: dict[str, list[list[str]]] = json.loads(file.read_text("utf-8"))
        found |= {f"{file.stem}/{name}": transcripts for name, transcripts in seen.items()}
    return found


def exact_version(oracle: str) -> str:
    """Return the exact version that was recorded: `4.3.6`."""
    return (RECORDED / oracle / "version.txt").read_text("utf-8").strip()

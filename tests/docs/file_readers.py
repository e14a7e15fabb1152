"""Validates the configuration files on pages with the programs that read them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from tests.docs.blocks import Block
from tests.docs.terminal import Terminal

# The keys that identify a kind of document; the schemas are those of check-jsonschema.
SCHEMAS = {"services": "compose-spec", "jobs": "github-workflows", "test": "gitlab-ci"}
SUFFIXES = {"json": "json", "yaml": "yml", "ini": "conf", "erlang": "config"}


def consume(terminal: Terminal, block: Block) -> None:
    """Fail if the program that reads such a file refuses the block."""
    name = block.file or f"snippet.{SUFFIXES[block.language]}"
    terminal.write(name, block.text)
    path = terminal.work / name
    if block.language == "json":
        consume_json(terminal, block, path)
    elif block.language == "yaml":
        consume_yaml(terminal, block, path)
    elif block.language in ("ini", "erlang"):
        code, printed = terminal.run(f"amqp-broker check-config {path}")
        assert code == 0, f"{block.place}: {printed}"


def consume_json(terminal: Terminal, block: Block, path: Path) -> None:
    value = json.loads(block.text)
    if {"vhosts", "users", "queues", "exchanges"} & set(value):
        code, printed = terminal.run(f"amqp-broker definitions check {path}")
        assert code == 0, f"{block.place}: {printed}"


def consume_yaml(terminal: Terminal, block: Block, path: Path) -> None:
    value: dict[str, Any] = YAML(typ="safe").load(terminal.names.here(block.text))
    if "scrape_configs" in value:
        for job in value["scrape_configs"]:
            scrape(block, job)
        return
    schema = next((schema for key, schema in SCHEMAS.items() if key in value), None)
    assert schema, f"{block.place}: no program reads this document"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0, f"{block.place}: {done.stdout}"


def scrape(block: Block, job: dict[str, Any]) -> None:
    """Fetch and parse the metrics as Prometheus would."""
    query = "&".join(f"{name}={value}" for name, values in job.get("params", {}).items() for value in values)
    for target in (target for static in job["static_configs"] for target in static["targets"]):
        url = f"http://{target}{job.get('metrics_path', '/metrics')}" + (f"?{query}" if query else "")
        with urllib.request.urlopen(url, timeout=10) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        assert len(families) > 5, f"{block.place}: {url} has next to nothing"

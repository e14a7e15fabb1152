"""The packages for Node, Go and the JVM start the program and give tests vhosts, and can be packed."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from amqp_broker import __version__
from amqp_broker.broker.lab.fault_rules import Rule
from compat.fixtures.commands import run

PACKAGES = Path(__file__).parents[2] / "packages"
BUILT = ("node_modules", "target")

# Where the example of each README is a test.
EXAMPLES = {"npm": "example.test.cjs", "go": "orders/orders_test.go", "java": "src/test/java/OrdersTest.java"}

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def package(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Provide a copy of a package, with the example of its README as a test."""
    copy = tmp_path / str(request.param)
    shutil.copytree(PACKAGES / copy.name, copy, ignore=shutil.ignore_patterns(*BUILT))
    readme = (copy / "README.md").read_text("utf-8")
    (example,) = re.findall(r"^```\w+\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    place = copy / EXAMPLES[copy.name]
    place.parent.mkdir(exist_ok=True)
    # Node finds a package by its name only where it is installed.
    place.write_text(example.replace("'amqp-broker'", "'./index.js'"), "utf-8")
    return copy


@pytest.mark.parametrize("package", ["npm"], indirect=True)
def test_the_package_for_node_gives_tests_a_broker_and_vhosts(package: Path) -> None:
    run(package, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
    run(package, "npm", "test")
    (packed,) = json.loads(run(package, "npm", "pack", "--json"))
    assert {file["path"] for file in packed["files"]} == {"README.md", "index.d.ts", "index.js", "package.json"}
    assert packed["version"] == __version__


@pytest.mark.parametrize("package", ["go"], indirect=True)
def test_the_package_for_go_gives_tests_a_broker_and_vhosts(package: Path) -> None:
    # The first run on a machine also says what it downloads.
    run(package, "go", "mod", "download")
    run(package, "go", "vet", "./...")
    lines = run(package, "go", "test", "-count=1", "./...").splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "ok"]
    assert run(package, "gofmt", "-l", ".") == ""


@pytest.mark.parametrize("package", ["java"], indirect=True)
def test_the_package_for_junit_gives_tests_a_broker_and_vhosts(package: Path) -> None:
    run(package, "mvn", "--quiet", "--batch-mode", "package")
    version = ElementTree.parse(package / "pom.xml").findtext("{*}version")
    assert version == __version__
    assert (package / "target" / f"amqp-broker-junit-{version}.jar").is_file()


def test_the_types_for_node_have_each_field_of_a_fault_rule() -> None:
    types = (PACKAGES / "npm/index.d.ts").read_text("utf-8")
    (block,) = re.findall(r"^export interface FaultFields {\n(.*?)^}$", types, re.DOTALL | re.MULTILINE)
    declared = re.findall(r"^  (\w+)\?:", block, re.MULTILINE)
    assert {"action", *declared} == {one.name for one in dataclasses.fields(Rule)}

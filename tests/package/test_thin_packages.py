"""The packages for Node, Go and the JVM start the program that they find, and can be packed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from amqp_broker import __version__
from compat.fixtures.commands import run

PACKAGES = Path(__file__).parents[2] / "packages"
BUILT = ("node_modules", "target")

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def package(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Provide a copy of a package."""
    copy = tmp_path / str(request.param)
    shutil.copytree(PACKAGES / copy.name, copy, ignore=shutil.ignore_patterns(*BUILT))
    return copy


@pytest.mark.parametrize("package", ["npm"], indirect=True)
def test_the_package_for_node_starts_a_broker(package: Path) -> None:
    run(package, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
    run(package, "npm", "test")
    (packed,) = json.loads(run(package, "npm", "pack", "--json"))
    assert {file["path"] for file in packed["files"]} == {"README.md", "index.d.ts", "index.js", "package.json"}
    assert packed["version"] == __version__


@pytest.mark.parametrize("package", ["go"], indirect=True)
def test_the_package_for_go_starts_a_broker(package: Path) -> None:
    # The first run on a machine also says what it downloads.
    run(package, "go", "mod", "download")
    run(package, "go", "vet", "./...")
    assert run(package, "go", "test", "-count=1", "./...").startswith("ok")
    assert run(package, "gofmt", "-l", ".") == ""


@pytest.mark.parametrize("package", ["java"], indirect=True)
def test_the_package_for_junit_starts_a_broker(package: Path) -> None:
    run(package, "mvn", "--quiet", "--batch-mode", "package")
    version = ElementTree.parse(package / "pom.xml").findtext("{*}version")
    assert version == __version__
    assert (package / "target" / f"amqp-broker-junit-{version}.jar").is_file()


def test_the_readmes_show_what_the_packages_have() -> None:
    words = {"npm": r"\bstartBroker\b", "go": r"\bForTest\b", "java": r"\bAmqpBrokerExtension\b"}
    for name, word in words.items():
        folder = PACKAGES / name
        sources = [path for path in folder.rglob("*") if path.suffix in (".js", ".go", ".java")]
        assert re.search(word, (folder / "README.md").read_text("utf-8"))
        assert any(re.search(word, path.read_text("utf-8")) for path in sources)

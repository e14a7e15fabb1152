"""The packages that each package may import when it runs. Imports inside functions count, those for types do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tidy.layers import LAYERS

PACKAGE = Path(__file__).parents[2] / "amqp_broker"


class Circle(NamedTuple):
    """Modules of a package that import each other in a circle, and the reason for it."""

    package: str
    modules: str
    reason: str


CIRCLES = (
    Circle("server", "certificate_authority tls", "the authority makes what a context loads, and raises its errors"),
)


@cache
def imported(source: str) -> tuple[str, ...]:
    """Return the dotted names that a module imports when it runs; `.` stands for a relative import."""
    return tuple(imports_in(ast.parse(source)))


def imports_in(tree: ast.Module) -> Iterator[str]:
    for_types = {node for block in ast.walk(tree) for part in type_imports(block) for node in ast.walk(part)}
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "."
            # `from amqp_broker import session` imports a package, `from amqp_broker.session import session` a module.
            else:
                yield from sorted({module_of(f"{node.module}.{alias.name}") for alias in node.names})


def type_imports(node: ast.AST) -> list[ast.stmt]:
    """Return the statements below an `if TYPE_CHECKING:`."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return node.body
    return []


def module_of(name: str) -> str:
    """Return the module or package that a dotted name is, or that it is in."""
    path = PACKAGE.parent / name.replace(".", "/")
    return name if path.is_dir() or path.with_suffix(".py").is_file() else name.rpartition(".")[0]


def package_of(path: str) -> str:
    """Return the package of a module or of a name in one: the longest prefix in the table."""
    return max(
        (package for package in LAYERS if path == package or path.startswith(f"{package}/")), key=len, default=path
    )


def packages_of(package: str, source: str) -> set[str]:
    """Return the other packages that a module of this package imports. The version, above all, does not count."""
    dotted = [name.partition(".")[2] for name in imported(source) if name.startswith("amqp_broker.")]
    return {package_of(name.replace(".", "/")) for name in dotted} - {package}


def forbidden_imports(package: str, source: str) -> list[str]:
    """Return the imports that a module of this package may not have."""
    packages, never = LAYERS[package]
    others = [name for name in imported(source) if name.partition(".")[0] in {"", *never}]
    return sorted(packages_of(package, source) - packages) + [name or "a relative import" for name in others]


@cache
def modules() -> dict[str, str]:
    """Return the source of each module, by its path without suffix."""
    files = {path.relative_to(PACKAGE).with_suffix("").as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    return {path: file.read_text("utf-8") for path, file in files.items() if not path.startswith("__")}


def test_a_module_imports_only_what_its_package_may() -> None:
    found = {path: forbidden_imports(package_of(path), source) for path, source in modules().items()}
    assert len(found) > 100
    assert {path: imports for path, imports in found.items() if imports} == {}


def test_every_import_of_the_table_is_used() -> None:
    found: dict[str, set[str]] = {package: set() for package in LAYERS}
    for path, source in modules().items():
        found[package_of(path)] |= packages_of(package_of(path), source)
    assert {package: layer.packages - found[package] - {package} for package, layer in LAYERS.items()} == {
        package: set() for package in LAYERS
    }


def test_the_spark_format_imports_nothing_of_the_broker() -> None:
    paths = list((PACKAGE.parent / "pyspark_amqp").rglob("*.py"))
    found = {path.name: list(imported(path.read_text("utf-8"))) for path in paths}
    assert len(found) > 5
    assert [name for name, names in found.items() if any(one.partition(".")[0] == "amqp_broker" for one in names)] == []


def test_every_module_has_a_layer() -> None:
    assert {package_of(path) for path in modules()} <= set(LAYERS)


def test_a_package_imports_only_packages_above_it_in_the_table() -> None:
    order = list(LAYERS)
    upward = {
        (package, other)
        for package, layer in LAYERS.items()
        for other in layer.packages
        if order.index(other) >= order.index(package)
    }
    assert upward == set()


def circles(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the largest sets of modules that import each other, each directly or through others."""
    reached = {module: reachable(imports, module) for module in imports}
    return {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in imports
        if module in reached[module]
    }


def reachable(imports: dict[str, set[str]], module: str) -> set[str]:
    """Return the modules that a module imports, directly or through others."""
    found: set[str] = set()
    pending = [module]
    while pending:
        new = imports.get(pending.pop(), set()) & imports.keys() - found
        found |= new
        pending += new
    return found


def test_modules_import_each_other_in_circles_only_for_a_reason() -> None:
    imports = {
        path: {name.partition(".")[2].replace(".", "/") for name in imported(source)} - {path}
        for path, source in modules().items()
    }
    expected = [{f"{circle.package}/{name}" for name in circle.modules.split()} for circle in CIRCLES]
    assert sorted(map(sorted, circles(imports))) == sorted(map(sorted, expected))


def test_a_circle_has_all_modules_that_lead_back_to_themselves() -> None:
    imports = {"a": {"b"}, "b": {"c", "x"}, "c": {"a"}, "d": {"a"}, "x": {"y"}, "y": {"x"}, "z": {"outside"}}
    assert circles(imports) == {frozenset("abc"), frozenset("xy")}


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("broker", "import time"),
        ("broker", "from asyncio import sleep"),
        ("broker", "import pamqp.commands"),
        ("broker", "from amqp_broker.session import methods"),
        ("broker", "from amqp_broker import session"),
        ("broker", "if TYPE_CHECKING:\n    pass\nelse:\n    from amqp_broker.session.session import Session"),
        ("broker", "def f():\n    import random"),
        ("broker", "from .queue import Queue"),
        ("amqp", "from amqp_broker.broker.queues.queue import Queue"),
        ("amqp", "import socket"),
        ("session", "import asyncio"),
        ("session", "from amqp_broker.server.server import Server"),
        ("broker/routing", "from amqp_broker.broker.lab.fault_injector import FaultInjector"),
        ("broker/queues", "from amqp_broker.broker.vhost import VHost"),
        ("amqp", "import logging"),
    ],
)
def test_a_forbidden_import_is_found(layer: str, source: str) -> None:
    assert len(forbidden_imports(layer, source)) == 1


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        (
            "broker",
            "from amqp_broker.broker.queues import arguments\nfrom amqp_broker.amqp import fields\nimport heapq",
        ),
        ("amqp", "from pamqp import commands\nfrom amqp_broker.amqp.message import Message"),
        ("session", "import logging\nfrom amqp_broker.broker.queues.queue import Queue"),
        ("broker/queues", "if TYPE_CHECKING:\n    import asyncio\n    from amqp_broker.broker.vhost import VHost"),
        ("server", "import asyncio, time\nfrom amqp_broker.session.session import Session"),
    ],
)
def test_an_allowed_import_is_passed_over(layer: str, source: str) -> None:
    assert forbidden_imports(layer, source) == []

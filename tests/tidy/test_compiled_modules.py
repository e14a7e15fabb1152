"""Each module of a folder that setup.py compiles is compiled, or has a reason why not.

Nothing refers weakly to objects of compiled modules.
"""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "amqp_broker"
SETUP: dict[str, Any] = runpy.run_path(str(ROOT / "setup.py"))
COMPILED: set[str] = {f"{folder}/{name}" for folder, names in SETUP["COMPILED"].items() for name in names.split()}
LEFT_OUT: dict[str, str] = SETUP["LEFT_OUT"]
# With the classes that they refer to.
WITH_WEAK_REFERENCES = {
    "broker/queues/refused_publishers": "Publisher, of the same module",
    "testing/embedded_broker": "EmbeddedBroker, of the same module",
    "server/handshakes": "objects of ssl, by their TLS connection",
}


def found() -> set[str]:
    """Return the modules of the folders from which modules are compiled."""
    paths = [path for folder in SETUP["COMPILED"] for path in (PACKAGE / folder).glob("*.py")]
    return {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in paths if path.stem != "__init__"}


def test_every_module_is_compiled_or_has_a_reason() -> None:
    undecided = {name for name in found() - COMPILED - LEFT_OUT.keys() if name.rpartition("/")[0] not in LEFT_OUT}
    assert undecided == set()


def test_the_modules_that_are_named_exist() -> None:
    assert found() >= COMPILED
    missing = {name for name in LEFT_OUT if not (PACKAGE / name).is_dir() and not (PACKAGE / f"{name}.py").is_file()}
    assert missing == set()


def test_no_module_is_both() -> None:
    assert COMPILED & LEFT_OUT.keys() == set()


def test_only_named_modules_have_weak_references() -> None:
    """Objects of compiled modules are freed without clearing the references to them."""
    found = {
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"weakref|\bWeak\w+", path.read_text("utf-8"))
    }
    assert found == WITH_WEAK_REFERENCES.keys()
    assert found & COMPILED == set()


def early_types(source: str) -> set[str]:
    """Return the fields of NamedTuples whose types are classes that are imported under TYPE_CHECKING."""
    tree = ast.parse(source)
    guards = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    late = {
        name.asname or name.name for guard in guards for node in ast.walk(guard) for name in getattr(node, "names", [])
    }
    return {
        f"{node.name}.{ast.unparse(field.target)}"
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "NamedTuple" in map(ast.unparse, node.bases)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and ast.unparse(field.annotation) in late
    }


def test_a_compiled_named_tuple_has_only_types_that_are_imported_before() -> None:
    sources = {name: (PACKAGE / f"{name}.py").read_text("utf-8") for name in COMPILED}
    assert {name: found for name, source in sources.items() if (found := early_types(source))} == {}


def test_a_type_that_is_imported_for_mypy_alone_is_found() -> None:
    source = """
if TYPE_CHECKING:
    from a import B, C as D
class E(NamedTuple):
    b: B
    c: D
    d: D | None
    e: int
"""
    assert early_types(source) == {"E.b", "E.c"}

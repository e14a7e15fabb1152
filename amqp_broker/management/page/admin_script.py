"""`/cli/rabbitmqadmin`: rabbitmqadmin as one file for any Python of 3.8 or newer, which scripts download.

It is put together from the modules of `amqp-broker admin`, which therefore use only what Python 3.8 has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from amqp_broker import __version__

PACKAGE: Final = Path(__file__).parents[2]
MAIN: Final = "amqp_broker.cli.rabbitmq.rabbitmqadmin"
# The reader of JSON documents that Python's own finds too deep, which has the broker's other modules below it.
LEFT_OUT: Final = "amqp_broker.management.documents"
HEAD: Final = f'''\
#!/usr/bin/env python3
"""rabbitmqadmin of amqp-broker {__version__}: a command line for the HTTP API of amqp-broker and RabbitMQ.

It needs Python 3.8 or newer, and no package. `amqp-broker` has put it together from its modules.
"""
import sys
import types


def module(name, source):
    sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), sys.modules[name].__dict__)

'''
LAST: Final = f'\nif __name__ == "__main__":\n    sys.exit(sys.modules["{MAIN}"].main(sys.argv[1:]))\n'


def script() -> bytes:
    """Return the text of the file, in UTF-8."""
    sources: dict[str, str] = {}
    _add(MAIN, sources)
    return "\n".join([HEAD, *(_call(name, source) for name, source in sources.items()), LAST]).encode()


def _add(name: str, sources: dict[str, str]) -> None:
    """Add a module behind those that it imports."""
    source = (PACKAGE.parent / (name.replace(".", "/") + ".py")).read_text("utf-8")
    for other in _imports(ast.parse(source)):
        if other not in sources and not other.startswith(LEFT_OUT):
            _add(other, sources)
    sources[name] = source


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of this package that a module imports, also in functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("amqp_broker."):
            yield str(node.module)
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from _imports(node)


def _call(name: str, source: str) -> str:
    quoted = f"r'''\n{source}'''" if "'''" not in source else repr(source)
    return f'module("{name}", {quoted})\n'

"""Mutants: small changes that break a function.

Texts, raised and logged messages, and code for type checkers or people at a prompt are not changed.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

OPPOSITES: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}
SWAPPED_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Names of functions for people and type checkers, and of objects that write the log.
UNSEEN = {"__repr__", "__str__"}
LOGGERS = {"logger", "channel_logger"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """A change of a function. `name` does not depend on the lines around it."""

    name: str
    file: Path
    lines: range
    # The node in the file, in the order of `ast.walk`, and the number of its change.
    node: int
    change: int

    def compiled(self) -> CodeType:
        """Return the compiled module with this change."""
        tree = ast.parse(self.file.read_text("utf-8"))
        node = list(ast.walk(tree))[self.node]
        replacement = changes(node)[self.change]
        Replacing(node, replacement).visit(tree)
        return compile(ast.fix_missing_locations(tree), str(self.file), "exec")


class Replacing(ast.NodeTransformer):
    def __init__(self, node: ast.AST, replacement: ast.AST) -> None:
        self.node = node
        self.replacement = replacement

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.node:
            return ast.copy_location(self.replacement, node)
        self.generic_visit(node)
        return node


def changes(node: ast.AST) -> list[ast.AST]:
    """Return all replacements for this node."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return [
                ast.Compare(left, [*ops[:place], other(), *ops[place + 1 :]], comparators)
                for place, op in enumerate(ops)
                for other in OPPOSITES[type(op)]
            ]
        case ast.BoolOp(op=op, values=values):
            swapped = ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            fewer = [[*values[:place], *values[place + 1 :]] for place in range(len(values))]
            return [swapped, *(rest[0] if len(rest) == 1 else ast.BoolOp(op, rest) for rest in fewer)]
        case ast.UnaryOp(op=ast.Not(), operand=operand) | ast.UnaryOp(op=ast.USub(), operand=operand):
            return [operand]
        case ast.BinOp(left=left, op=op, right=right) if not (is_text(left) or is_text(right)):
            return [ast.BinOp(left, other_op(), right) for other_op in ARITHMETIC.get(type(op), ())]
        case ast.AugAssign(target=target, op=op, value=value) if not is_text(value):
            return [ast.AugAssign(target, other_op(), value) for other_op in ARITHMETIC.get(type(op), ())]
        case ast.Constant(value=bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(value=int(value)):
            return [ast.Constant(value + 1)]
        case ast.If(test=test, body=body, orelse=orelse):
            never = ast.BoolOp(ast.And(), [test, ast.Constant(False)])
            always = ast.BoolOp(ast.Or(), [test, ast.Constant(True)])
            return [ast.If(never, body, orelse), ast.If(always, body, orelse)]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.comprehension(target=target, iter=iterated, ifs=[_, *rest], is_async=is_async):
            return [ast.comprehension(target, iterated, rest, is_async)]
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            return [ast.Return(ast.Constant(None))]
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Delete():
            return [without(node)]
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return [without(node)]
        case ast.Break():
            return [ast.Continue()]
        case ast.Continue():
            return [ast.Break()]
        case ast.Name(id=name, ctx=ast.Load()) if name in SWAPPED_NAMES:
            return [ast.Name(SWAPPED_NAMES[name], ast.Load())]
        case _:
            return []


def without(statement: ast.stmt) -> ast.If:
    """Return a statement that is never reached, but still declares local names."""
    return ast.If(ast.Constant(False), [statement], [])


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def mutants(file: Path, root: Path) -> Iterator[Mutant]:
    """Return all mutants of a file in the order of lines."""
    tree = ast.parse(file.read_text("utf-8"))
    numbers = {node: number for number, node in enumerate(ast.walk(tree))}
    module = ".".join(file.relative_to(root).with_suffix("").parts)
    named: Counter[str] = Counter()
    for owner, function in functions(tree, ()):
        for node in visible(function):
            before = shown(node)
            for change, replacement in enumerate(changes(node)):
                text = f"{module}:{'.'.join(owner)}: {before} → {shown(replacement)}"
                named[text] += 1
                name = text if named[text] == 1 else f"{text} ({named[text]})"
                yield Mutant(name, file, lines(node), numbers[node], change)


def functions(node: ast.AST, owner: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Function]]:
    """Return functions of the module and methods of its classes; nested functions are parts of these."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions(child, (*owner, child.name))
        elif isinstance(child, Function) and child.name not in UNSEEN:
            yield (*owner, child.name), child


def visible(function: Function) -> Iterator[ast.AST]:
    """Return the nodes of a function whose change may be visible: the function first, then its parts."""
    todo: list[ast.AST] = list(reversed(function.body))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) or is_log(node):
            continue
        yield node
        inside = list(ast.iter_child_nodes(node))
        if isinstance(node, Function):
            inside = list(node.body)
        elif isinstance(node, ast.AnnAssign):
            inside = [node.value] if node.value else []
        todo.extend(reversed(inside))


def is_log(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in LOGGERS
        case _:
            return False


def lines(node: ast.AST) -> range:
    """Return the lines that a test must run to detect the change, or those of a statement's condition."""
    match node:
        case ast.If(test=test):
            return lines(test)
        case ast.comprehension(iter=iterated):
            return lines(iterated)
        case ast.expr() | ast.stmt():
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
        case _:
            raise TypeError(node)


def shown(node: ast.AST) -> str:
    match node:
        case ast.If(test=ast.Constant(value=False)):
            return "nothing"
        case ast.If(test=test):
            return f"if {ast.unparse(test)}"
        case ast.comprehension(target=target, iter=iterated, ifs=ifs):
            return ast.unparse(ast.ListComp(target, [ast.comprehension(target, iterated, ifs, 0)]))
        case _:
            return " ".join(ast.unparse(node).split())


def sample(folders: list[Path], root: Path, count: int, seed: int) -> list[Mutant]:
    """Return a sample of mutants that depends only on the seed and the names, not on other changes."""
    found = [mutant for folder in folders for file in sorted(folder.rglob("*.py")) for mutant in mutants(file, root)]
    drawn = sorted(found, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.name}".encode()).digest())
    return drawn[:count]

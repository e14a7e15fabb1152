"""Find sentences that are not plain English, in docstrings, comments, test names and Markdown.

`python -m tests.tidy.language` prints the number of findings of each folder; with folders as arguments it prints the
findings themselves.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

FOLDERS = (
    ".ci",
    ".github",
    "amqp_broker",
    "bench",
    "compat",
    "container",
    "docs",
    "examples",
    "packages",
    "pyspark_amqp",
    "tests",
)
# Generated answers of RabbitMQ, and code of others.
FOREIGN = ("compat/recorded/", "amqp_broker/conformance/recorded/", "amqp_broker/management/page/static/vendor/")
# Sentences of RabbitMQ that our documentation repeats.
FOREIGN_SENTENCES = {
    "Whether a given vhost is running",
    "Such nodes will not serve any client traffic or host any primary queue replicas",
    "Such nodes will again serve client traffic and host primary queue replicas",
}
# This module and its test quote the words that they forbid.
QUOTING = ("tests/tidy/language.py", "tests/tidy/test_language.py")

HASHED = (".toml", ".yml", ".yaml", ".sh", ".conf", "Makefile", "Dockerfile", "/run", "/apt", "/tools")
SLASHED = (".js", ".go", ".java", ".rs", ".c", ".h", ".php", ".css")

SUBJECT_LENGTH_MAX = 100
SENTENCE_WORDS_MAX = 45

OPENERS = {"what", "who", "whoever", "whether"}
WORDS = {
    "nobody": r"nobody",
    "somebody": r"somebody",
    "whoever": r"whoever",
    "of it": r"of it(?!['-])",
    "he": r"(?:he|him|his|himself)",
    "told": r"told(?! apart)",
    "so many": r"so many",
    "look again": r"look(?:s|ed|ing)? again",
    "ours": r"ours",
}
PATTERNS = {name: re.compile(rf"\b{pattern}\b", re.IGNORECASE) for name, pattern in WORDS.items()}

CODE = re.compile(r"(`+).+?\1|<[^>]+>|\]\([^)]*\)")
QUOTED = re.compile(r'"[^"]*"|“[^”]*”')
# A full stop ends a sentence if a capital letter follows.
SENTENCE_END = re.compile(r"(?<=[.!?:;])[)”\"*_]*\s+(?=[(“\"*_]*[A-Z`])")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|No)\.$")


Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Text(NamedTuple):
    """A docstring, a block of comments, a paragraph, a list item or a cell of a table."""

    line: int
    text: str
    is_docstring: bool = False


class Finding(NamedTuple):
    """A rule that a sentence breaks."""

    rule: str
    line: int
    sentence: str


def plain(text: str) -> str:
    """Return the text with code and links replaced by `X` and whitespace collapsed."""
    return re.sub(r"\s+", " ", CODE.sub(lambda match: "]" if match[0].startswith("]") else "X", text)).strip()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a colon or semicolon before a capital letter ends one, too."""
    found: list[str] = []
    for part in SENTENCE_END.split(plain(text)):
        if found and ABBREVIATION.search(found[-1]):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def findings(text: Text) -> Iterator[Finding]:
    """Yield the rules that a text breaks."""
    for position, sentence in enumerate(sentences(text.text)):
        words = re.findall(r"[\w'-]+", sentence)
        opener = words[0].lower() if words else ""
        is_question = sentence.rstrip(')*_"”').endswith("?") or sentence.startswith("What's new")
        if opener in OPENERS and not is_question and sentence not in FOREIGN_SENTENCES:
            yield Finding(f"opens with {words[0].capitalize()}", text.line, sentence)
        if opener == "such" and sentence not in FOREIGN_SENTENCES:
            yield Finding("opens with Such", text.line, sentence)
        unquoted = QUOTED.sub("X", sentence)
        for name, pattern in PATTERNS.items():
            if pattern.search(unquoted):
                yield Finding(name, text.line, sentence)
        if len(words) > SENTENCE_WORDS_MAX and sentence.count(",") < len(words) / 6:
            yield Finding("long sentence", text.line, sentence)
        if position == 0 and text.is_docstring and len(sentence) > SUBJECT_LENGTH_MAX:
            yield Finding("long subject", text.line, sentence)


def paragraphs(text: str, line: int) -> Iterator[Text]:
    """Yield the paragraphs and list items of a docstring or of Markdown, without indented and fenced code."""
    block: list[str] = []
    start = line
    fence = ""
    for number, row in enumerate([*text.splitlines(), ""], line):
        stripped = row.strip()
        opened = re.match(r"(`{3,}|~{3,})", stripped)
        if fence or opened:
            if not fence and opened:
                fence = opened[1]
            elif stripped.startswith(fence):
                fence = ""
            stripped = ""
        elif not block and re.match(r" {4}|\t", row):
            stripped = ""
        is_table = stripped.startswith("|")
        is_heading = stripped.startswith("#")
        item = re.match(r"(?:[-*+]|\d+\.)\s+(.*)", stripped)
        if (not stripped or item or is_table or is_heading) and block:
            yield Text(start, " ".join(block))
            block = []
        if is_table:
            if not re.fullmatch(r"[|:\s-]+", stripped):
                cells = re.split(r"(?<!\\)\|", CODE.sub("X", stripped.strip("|")))
                yield from (Text(number, cell.strip()) for cell in cells)
        elif is_heading:
            yield Text(number, stripped.lstrip("# "))
        elif stripped:
            if not block:
                start = number
            block.append(item[1] if item else stripped)


def definitions(source: str) -> Iterator[Definition]:
    """Yield a Python module and its classes and functions, nested ones too, without a look at expressions."""
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        if isinstance(node, Definition):
            yield node
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            pending += getattr(node, block, ())


def docstring(node: Definition) -> Iterator[Text]:
    """Yield the paragraphs of a docstring, the first marked as such."""
    found = ast.get_docstring(node, clean=True)
    if found:
        for position, block in enumerate(paragraphs(found, node.body[0].lineno)):
            yield block._replace(is_docstring=position == 0)


def test_name(node: Definition) -> Iterator[Text]:
    """Yield the name of a test function as a sentence."""
    if not isinstance(node, (ast.Module, ast.ClassDef)) and node.name.startswith("test_"):
        yield Text(node.lineno, node.name.removeprefix("test_").replace("_", " "))


def comments(source: str) -> Iterator[Text]:
    """Yield the comments of a Python module; lines without code between them belong together."""
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.lstrip().startswith("#")
            body = token.string.lstrip("#!: ").strip()
            if re.match(r"noqa|type:|pragma:|fmt:|ruff:|/usr/bin", body):
                continue
            if block and not (alone and token.start[0] == last + 1):
                yield Text(start, " ".join(block))
                block = []
            if not block:
                start = token.start[0]
            block.append(body)
            last = token.start[0]
            if not alone:
                yield Text(start, " ".join(block))
                block = []
    if block:
        yield Text(start, " ".join(block))


def marked_comments(text: str, mark: str) -> Iterator[Text]:
    """Yield the comments of another language, which begin with `#`, `//` or `/*`."""
    block: list[str] = []
    start = 0
    inside = False
    pattern = re.compile(r"(?:^|\s)#+\s+(.*)" if mark == "#" else r"(?:^|\s)(?://+|/\*+)\s*(.*)")
    for number, row in enumerate([*text.splitlines(), ""], 1):
        found = pattern.search(row)
        body = found[1] if found else row.strip() if inside else ""
        if mark != "#" and found and "/*" in found[0]:
            inside = True
        if "*/" in body:
            body, inside = body.partition("*/")[0], False
        body = body.lstrip("* ")
        is_trailing = bool(found and row[: found.start()].strip())
        if block and (not body.strip() or is_trailing):
            yield Text(start, " ".join(block))
            block = []
        if body.strip():
            if not block:
                start = number
            block.append(body.strip())
        if block and is_trailing:
            yield Text(start, " ".join(block))
            block = []


def texts(path: str, source: str) -> Iterator[Text]:
    """Yield the prose of a file."""
    if path.endswith(".py"):
        for node in definitions(source):
            yield from docstring(node)
            yield from test_name(node)
        yield from comments(source)
    elif path.endswith(".md"):
        yield from paragraphs(re.sub(r"<!--.*?-->", "", source), 1)
    elif path.endswith(HASHED):
        yield from marked_comments(source, "#")
    elif path.endswith(SLASHED):
        yield from marked_comments(source, "//")


def folder_of(path: str) -> str:
    """Return the folder of a file, or the file itself if it lies at the top."""
    return path.rpartition("/")[0] or path


@cache
def files() -> tuple[str, ...]:
    """Return the paths of the repository's files, without recorded answers and the code of others."""
    found = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    paths = sorted(path.relative_to(ROOT).as_posix() for path in found)
    return tuple(path for path in paths if not path.startswith(FOREIGN))


@cache
def texts_of(path: str) -> tuple[Text, ...]:
    """Return the prose of a file of the repository."""
    return tuple(texts(path, (ROOT / path).read_text("utf-8")))


@cache
def found() -> dict[str, dict[str, list[Finding]]]:
    """Return all findings by folder and path."""
    all_found: dict[str, dict[str, list[Finding]]] = {}
    for path in files():
        if path.endswith((".py", ".md", *HASHED, *SLASHED)) and path not in QUOTING:
            in_file = [finding for text in texts_of(path) for finding in findings(text)]
            if in_file:
                all_found.setdefault(folder_of(path), {})[path] = in_file
    return all_found


def main(arguments: list[str]) -> None:
    """Print the findings of folders, or their number for each folder."""
    if arguments:
        wanted = tuple(argument.rstrip("/") for argument in arguments)
        for files in found().values():
            for path, in_file in files.items():
                if path in wanted or path.startswith(tuple(f"{one}/" for one in wanted)):
                    for finding in in_file:
                        print(f"{path}:{finding.line}: {finding.rule}: {finding.sentence}")
    else:
        for folder, files in sorted(found().items()):
            print(f"{sum(map(len, files.values())):5} {folder}")


if __name__ == "__main__":
    main(sys.argv[1:])

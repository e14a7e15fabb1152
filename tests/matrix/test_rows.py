"""The clients, and their selection on the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from compat.matrix.rows import Client, Row, chosen, clients, of_day

IMPORT = "from compat.matrix.rows import Row\n"


def known(*rows: tuple[str, str, str]) -> list[Client]:
    return [Client(Row(name, language, "1.0", ("run",)), Path(folder)) for name, language, folder in rows]


THREE = known(("amqplib", "Node", "node"), ("rascal", "Node", "node"), ("pika", "Python", "pika"))


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["amqplib", "rascal", "pika"]),
        (["pika"], ["pika"]),
        (["node"], ["amqplib", "rascal"]),
        (["python", "rascal"], ["rascal", "pika"]),
    ],
)
def test_clients_are_chosen_by_name_language_or_folder(words: list[str], names: list[str]) -> None:
    assert [client.row.name for client in chosen(THREE, words)] == names


def test_an_unknown_word_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="there is no client cobol; there are amqplib node pika python rascal"):
        chosen(THREE, ["pika", "cobol"])


def test_each_client_plays_on_one_of_three_days_together_with_those_of_its_language() -> None:
    thirds = [of_day(clients(), day) for day in range(3)]
    quick = [client.row.name for client in clients() if not client.row.build_s]
    assert sorted(client.row.name for found in thirds for client in found) == sorted(quick)
    languages = [{client.row.language for client in found} for found in thirds]
    assert sum(map(len, languages)) == len(set().union(*languages))


def test_clients_of_rust_take_minutes_to_build_and_play_on_no_day() -> None:
    played = {client.row.language for day in range(3) for client in of_day(clients(), day)}
    assert {client.row.language for client in clients()} - played == {"Rust"}


def test_each_folder_with_rows_declares_its_clients(tmp_path: Path) -> None:
    for folder, rows in {"b": "Row('two', 'Go', '2', ('x',)), Row('one', 'C', '1', ('x',))", "a": ""}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "row.py").write_text(f"{IMPORT}ROWS = [{rows}]\n", "utf-8")
    found = clients(tmp_path)
    assert [(client.row.name, client.folder.name) for client in found] == [("one", "b"), ("two", "b")]


def test_two_clients_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "go").mkdir()
    row = "Row('one', 'Go', '1', ('x',))"
    (tmp_path / "go" / "row.py").write_text(f"{IMPORT}ROWS = ({row}, {row})\n", "utf-8")
    with pytest.raises(ValueError, match="two rows have one name: \\['one', 'one'\\]"):
        clients(tmp_path)


def test_a_name_becomes_a_part_of_other_names() -> None:
    assert known(("@cloudamqp/amqp-client", "Node", "node"))[0].slug == "cloudamqp-amqp-client"


def test_the_projects_rows_can_be_read() -> None:
    assert {client.row.language for client in clients()} >= {".NET", "Go", "Java", "Node"}


def test_a_client_is_played_where_its_programs_are() -> None:
    row = Row("one", "C", "1.0", ("run",), needs=("sh", "no-such-tool", "nor-this"))
    assert Client(row, Path()).unplayed == "it needs no-such-tool and nor-this, which Debian does not package"
    assert Client(replace(row, needs=("sh",)), Path()).unplayed == ""


def test_the_clients_of_dotnet_have_the_versions_of_their_projects() -> None:
    (folder,) = {client.folder for client in clients() if client.row.language == ".NET"}
    pinned = [
        dict(re.findall(r'PackageReference Include="(\S+)" Version="(\S+)"', path.read_text("utf-8")))
        for path in sorted(folder.glob("*/*.csproj"))
    ]
    versions = {client.row.name: client.row.version for client in clients() if client.row.language == ".NET"}
    assert {project["RabbitMQ.Client"] for project in pinned} == {versions["rabbitmq.client"]}
    masstransit = {versions["masstransit"], versions["masstransit service"]}
    assert {project["MassTransit.RabbitMQ"] for project in pinned} == masstransit

from __future__ import annotations

import pytest

from amqp_broker.cli.tool import likeness_of
from tests.cli.canned import NODE, canned, run_without_node

USAGE = "\x1b[1mUsage\x1b[0m\n\nrabbitmqctl [--node <node>] [--longnames] [--quiet] "


@pytest.mark.parametrize(
    ("line", "reason", "usage"),
    [
        ("add_user", "not enough arguments.", "add_user <username> <password>"),
        ("add_user a b c", "too many arguments.", "add_user <username> <password>"),
        ("list_users --bogus", "Invalid options for this command:\n--bogus : ", None),
        ("list_users --timeout x", "Invalid options for this command:\n--timeout : x", None),
        ("list_exchanges name bogus,other", "Info key(s) bogus,other are not supported", None),
    ],
)
def test_what_is_not_understood_is_told_with_the_usage(line: str, reason: str, usage: str | None) -> None:
    done = run_without_node(f"rabbitmqctl {line}")
    assert (done.exit_code, done.output) == (64, "")
    assert done.complaint.startswith(f"Error (argument validation): {reason}\nArguments given:\n\t{line}\n\n{USAGE}")
    if usage:
        assert done.complaint.endswith(f"{usage}\n")


def test_an_unknown_command_gets_the_likest_one_or_all() -> None:
    done = run_without_node("rabbitmqctl add_usr x y")
    assert (done.exit_code, done.complaint) == (
        64,
        "\nCommand 'add_usr' not found. \nDid you mean 'add_user'? \n\n",
    )
    done = run_without_node("rabbitmqctl zzzzzz")
    assert "Available commands:" in done.complaint
    assert "Did you mean" not in done.complaint


@pytest.mark.parametrize(
    "line", ["rabbitmqctl list_queues --help", "rabbitmqctl help list_queues", "rabbitmqctl list_queues -h"]
)
def test_help_of_a_command_has_its_usage_and_columns(line: str) -> None:
    done = run_without_node(line)
    assert done.exit_code == 0
    assert "[--offline]" in done.output
    assert "must be one of arguments, auto_delete, " in done.output


@pytest.mark.parametrize("words", ["", "--help", "help", "-q"])
def test_help_of_a_tool_lists_its_commands(words: str) -> None:
    done = run_without_node(f"rabbitmq-diagnostics {words}")
    assert "   check_running " in done.output + done.complaint
    assert "add_user" not in done.output + done.complaint
    assert done.exit_code == (0 if "help" in words else 64)


def test_a_node_that_is_down_is_told_in_rabbitmqs_words() -> None:
    done = run_without_node("rabbitmqctl list_users -n nowhere@localhost")
    assert (done.exit_code, done.output) == (69, "")
    assert done.complaint.startswith(
        "Error: unable to perform an operation on node 'nowhere@localhost'. Please see diagnostics information and "
        "suggestions below.\n"
    )
    assert "other nodes there: [rabbit@other]" in done.complaint


def test_a_node_whose_app_is_stopped_is_told_so() -> None:
    with canned() as api:
        api.is_started = False
        done = api.run("rabbitmqctl list_users")
    assert done.exit_code == 64
    assert done.complaint.startswith("Error: this command requires the 'rabbit' app to be running on the target node.")


@pytest.mark.parametrize(
    ("flags", "output"),
    [
        ("", "Timeout: 60.0 seconds ...\nListing queues for vhost / ...\nname\tmessages\nq\t1\n"),
        ("-q", "name\tmessages\nq\t1\n"),
        ("-s", "q\t1\n"),
        ("-t 5 --no-table-headers", "Timeout: 5.0 seconds ...\nListing queues for vhost / ...\nq\t1\n"),
        ("--formatter json", '[\n{"name":"q","messages":1}\n]\n'),
        ("--formatter csv", '"name","messages"\n"q","1"\n'),
    ],
)
def test_what_is_told_beside_a_list(flags: str, output: str) -> None:
    with canned({"GET /api/queues/%2F": [{"name": "q", "messages": 1, "vhost": "/"}]}) as api:
        assert api.run(f"rabbitmqctl {flags} list_queues").output == output
        assert api.run(f"rabbitmqctl list_queues {flags}") == (output, "", 0)


def test_a_dry_run_asks_for_nothing() -> None:
    with canned() as api:
        assert api.run("rabbitmqctl --dry-run delete_user a") == ('Deleting user "a" ...\n', "", 0)
        assert api.changes() == []


def test_no_time_at_all_is_too_little() -> None:
    with canned() as api:
        done = api.run("rabbitmqctl list_users -t 0")
    sentence = f"Error: operation list_users on node {NODE} timed out. Timeout value used: 0\n"
    assert done == ("", sentence, 75)


def test_likeness_is_jaros() -> None:
    assert likeness_of("MARTHA", "MARHTA") == pytest.approx(0.944, abs=0.001)
    assert likeness_of("DIXON", "DICKSONX") == pytest.approx(0.767, abs=0.001)
    assert likeness_of("", "a") == 0

from __future__ import annotations

import pytest

from tests.cli.canned import NODE, canned, run_without_node

USAGE = "Usage\n\nrabbitmqctl [--node <node>] [--longnames] [--quiet] "

ADD_USER = "add_user <username> [<password>] [<password_hash> --pre-hashed-password]"


@pytest.mark.parametrize(
    ("line", "reason", "usage"),
    [
        ("add_user", "not enough arguments.", ADD_USER),
        ("add_user a b c", "too many arguments.", ADD_USER),
        ("list_users --bogus", "Invalid options for this command:\n--bogus : ", None),
        ("list_users --timeout x", "Invalid options for this command:\n--timeout : x", None),
        ("list_exchanges name bogus,other", "Info key(s) bogus,other are not supported", None),
    ],
)
def test_an_invalid_command_line_is_reported_with_the_usage(line: str, reason: str, usage: str | None) -> None:
    done = run_without_node(f"rabbitmqctl {line}")
    assert (done.exit_code, done.output) == (64, "")
    assert done.complaint.startswith(f"Error (argument validation): {reason}\nArguments given:\n\t{line}\n\n{USAGE}")
    if usage:
        assert done.complaint.endswith(f"{usage}\n")


def test_the_usage_is_that_of_the_imitated_version() -> None:
    with canned() as api:
        api.version = "3.13.7"
        complaint = api.run("rabbitmqctl add_user a b c").complaint
    usage = "rabbitmqctl [--node <node>] [--longnames] [--quiet] add_user <username> <password>"
    assert complaint.endswith(f"\n\n\x1b[1mUsage\x1b[0m\n\n{usage}\n")


def test_a_node_that_is_down_is_reported_in_rabbitmqs_words() -> None:
    done = run_without_node("rabbitmqctl list_users -n nowhere@localhost")
    assert (done.exit_code, done.output) == (69, "")
    assert done.complaint.startswith(
        "Error: unable to perform an operation on node 'nowhere@localhost'. Please see diagnostics information and "
        "suggestions below.\n"
    )
    assert "other nodes there: [rabbit@other]" in done.complaint


@pytest.mark.parametrize("line", ["rabbitmqctl trace_on", "rabbitmq-diagnostics ping"])
def test_one_of_several_nodes_must_be_chosen(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", line.split())
    done = run_without_node(line, others=("rabbit@here", "hare@here"))
    commands = f"  {line} --node rabbit@here\n  {line} --node hare@here\n"
    assert done == ("", f"Error: several brokers run here; choose one:\n{commands}", 64)


def test_a_stopped_app_is_reported() -> None:
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
def test_messages_beside_a_list_depend_on_the_options(flags: str, output: str) -> None:
    with canned({"GET /api/queues/%2F": [{"name": "q", "messages": 1, "vhost": "/"}]}) as api:
        assert api.run(f"rabbitmqctl {flags} list_queues").output == output
        assert api.run(f"rabbitmqctl list_queues {flags}") == (output, "", 0)


def test_a_dry_run_sends_no_request() -> None:
    with canned() as api:
        assert api.run("rabbitmqctl --dry-run delete_user a") == ('Deleting user "a" ...\n', "", 0)
        assert api.changes() == []


def test_a_timeout_of_zero_times_out() -> None:
    with canned() as api:
        done = api.run("rabbitmqctl list_users -t 0")
    sentence = f"Error: operation list_users on node {NODE} timed out. Timeout value used: 0\n"
    assert done == ("", sentence, 75)


@pytest.mark.parametrize("words", ["-foo a", "a -foo"])
def test_a_dash_before_a_longer_word_begins_no_option(words: str) -> None:
    assert "too many arguments." in run_without_node(f"rabbitmqctl hash_password {words}").complaint

"""Lists made from RabbitMQ's JSON; compat/ctl compares them with those of rabbitmqctl at a RabbitMQ."""

from __future__ import annotations

from tests.cli.canned import canned

QUEUE = {"name": "q", "vhost": "/", "durable": True, "arguments": {"x-max-length": 5}, "messages": 2, "type": "classic"}


def test_a_list_has_the_given_columns() -> None:
    with canned({"GET /api/queues/a%2Fb": [QUEUE]}) as api:
        done = api.run("rabbitmqctl -q -p a/b list_queues name,durable arguments name policy")
    assert (
        done.output == 'name\tdurable\targuments\tpolicy\nq\ttrue\t[{"x-max-length",5},{"x-queue-type","classic"}]\t\n'
    )


def test_rabbitmq_3_adds_no_type_to_the_arguments() -> None:
    with canned({"GET /api/queues/%2F": [QUEUE]}) as api:
        api.version = "3.13.7"
        assert api.run("rabbitmqctl -s list_queues arguments").output == '[{"x-max-length",5}]\n'


FEATURE = {"name": "ram_node_type", "deprecation_phase": "removed", "state": "denied", "desc": "", "doc_url": ""}


def test_deprecated_features_have_a_phase_and_a_state() -> None:
    with canned({"GET /api/deprecated-features": [FEATURE], "GET /api/deprecated-features/used": []}) as api:
        assert "\x1b[1mdeprecation_phase" in api.run("rabbitmqctl list_deprecated_features").output
        line = "rabbitmqctl -s list_deprecated_features --formatter table"
        assert api.run(line).output == "ram_node_type\tremoved\tdenied\n"
        done = api.run("rabbitmqctl list_deprecated_features --used")
        assert done.output.startswith("Listing deprecated features in use ...\n")
        assert "\x1b[1mOutput" in done.output
        api.version = "3.13.7"
        assert api.run("rabbitmqctl -s list_deprecated_features").output == "ram_node_type\tremoved\n"


def test_an_unknown_vhost_has_no_queues_but_is_an_error_for_permissions() -> None:
    with canned() as api:
        assert api.run("rabbitmqctl list_queues -p nowhere -q") == ("", "", 0)
        done = api.run("rabbitmqctl list_permissions -p nowhere")
    assert done == ('Listing permissions for vhost "nowhere" ...\n', "Virtual host 'nowhere' does not exist\n", 65)


def test_queues_are_all_online() -> None:
    with canned({"GET /api/queues/%2F": [QUEUE]}) as api:
        assert api.run("rabbitmqctl -s list_queues --offline name").output == ""
        assert api.run("rabbitmqctl -s list_queues --online name").output == "q\n"


def test_parameters_are_those_of_the_vhost() -> None:
    answers = {
        **{f"GET /api/vhosts/{vhost}": {"name": vhost} for vhost in ("%2F", "none")},
        "GET /api/parameters": [
            {"vhost": "/", "component": "shovel", "name": "s", "value": {"b": 1, "a": 2}},
            {"vhost": "v", "component": "shovel", "name": "other", "value": 1},
        ],
    }
    with canned(answers) as api:
        assert api.run("rabbitmqctl -q list_parameters").output == (
            'component\tname\tvalue\nshovel\ts\t{"a":2,"b":1}\n'
        )
        assert api.run("rabbitmqctl -q list_parameters -p none").output == "\n"
        assert api.run("rabbitmqctl -q list_parameters -p none --formatter json").output == "[]\n"
        assert api.run("rabbitmqctl -q list_parameters -p nowhere").exit_code == 65


def test_topic_permissions_of_a_user_have_no_header_as_in_rabbitmq() -> None:
    permission = {"user": "u", "vhost": "v", "exchange": "e", "write": "w", "read": "r"}
    with canned({"GET /api/users/u/topic-permissions": [permission]}) as api:
        assert api.run("rabbitmqctl -q list_user_topic_permissions u").output == "v\te\tw\tr\n"

from __future__ import annotations

from tests.cli.canned import canned


def test_a_vhost_may_have_a_description_tags_and_a_type_of_queues() -> None:
    with canned({"PUT /api/vhosts/v": 201}) as api:
        api.run("rabbitmqctl add_vhost v --description 'd e' --tags a,b --default-queue-type quorum")
        assert api.changes()[0][1] == {"description": "d e", "tags": "a,b", "default_queue_type": "quorum"}


def test_a_changed_vhost_keeps_its_other_metadata() -> None:
    there = {"name": "v", "description": "d", "tags": ["a"], "default_queue_type": "quorum", "tracing": False}
    kept = {"description": "d", "tags": ["a"], "default_queue_type": "quorum"}
    with canned({"GET /api/vhosts/v": there, "PUT /api/vhosts/v": 204}) as api:
        api.run("rabbitmqctl update_vhost_metadata v --description e")
        api.run("rabbitmqctl enable_vhost_deletion_protection v")
        api.run("rabbitmqctl set_vhost_tags v b c")
        bodies = [body for _, body in api.changes()]
        protected = {**kept, "protected_from_deletion": True}
        assert bodies == [{**kept, "description": "e"}, protected, {**kept, "tags": ["b", "c"]}]


def test_before_version_4_2_a_vhost_without_a_default_queue_type_stays_without() -> None:
    there = {"name": "v", "description": "", "tags": [], "default_queue_type": "classic"}
    with canned({"GET /api/vhosts/v": there, "PUT /api/vhosts/v": 204}) as api:
        api.version = "4.0.5"
        api.run("rabbitmqctl set_vhost_tags v b")
        assert api.changes()[0][1] == {"description": "", "tags": ["b"]}


def test_tags_of_a_missing_vhost_do_not_create_it() -> None:
    with canned({"PUT /api/vhosts/v": 201}) as api:
        done = api.run("rabbitmqctl set_vhost_tags v b")
        assert (done.exit_code, done.complaint) == (65, "Virtual host 'v' does not exist\n")
        assert api.changes() == []


def test_a_trace_is_started_and_stopped() -> None:
    with canned({"PUT /_broker/firehose/v": 204, "DELETE /_broker/firehose/v": 204}) as api:
        done = api.run("rabbitmqctl trace_on -p v")
        assert done.output == 'Starting tracing for vhost "v" ...\nTrace enabled for vhost v\n'
        assert api.run("rabbitmqctl -q trace_off -p v").output == "Trace disabled for vhost v\n"

from __future__ import annotations

from tests.cli.canned import Canned, canned


def requests(api: Canned) -> list[str]:
    return [request for request, _ in api.changes()]


def test_limits_are_set_and_cleared_one_by_one() -> None:
    answers = {
        "PUT /api/vhost-limits/%2F/max-queues": 204,
        "DELETE /api/vhost-limits/%2F/max-queues": 204,
        "GET /api/vhost-limits/%2F": [{"vhost": "/", "value": {"max-queues": 1}}],
    }
    with canned(answers) as api:
        assert api.run("rabbitmqctl set_vhost_limits '{\"max-queues\": 1}'").exit_code == 0
        assert api.changes() == [("PUT /api/vhost-limits/%2F/max-queues", {"value": 1})]
        assert api.run("rabbitmqctl clear_vhost_limits").exit_code == 0
        assert requests(api)[1:] == ["DELETE /api/vhost-limits/%2F/max-queues"]
        done = api.run("rabbitmqctl set_vhost_limits bogus")
        assert (done.exit_code, done.complaint) == (69, "Error:\nJSON decoding error. Reason: badarg\n")


def test_a_vhost_may_have_a_description_tags_and_a_type_of_queues() -> None:
    with canned({"PUT /api/vhosts/v": 201}) as api:
        api.run("rabbitmqctl add_vhost v --description 'd e' --tags a,b --default-queue-type quorum")
        assert api.changes()[0][1] == {"description": "d e", "tags": "a,b", "default_queue_type": "quorum"}


def test_a_trace_is_started_and_stopped() -> None:
    with canned({"PUT /_broker/trace/v": 204, "DELETE /_broker/trace/v": 204}) as api:
        done = api.run("rabbitmqctl trace_on -p v")
        assert done.output == 'Starting tracing for vhost "v" ...\nTrace enabled for vhost v\n'
        assert api.run("rabbitmqctl -q trace_off -p v").output == "Trace disabled for vhost v\n"

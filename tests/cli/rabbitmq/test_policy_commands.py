from __future__ import annotations

import pytest

from tests.cli.canned import canned


@pytest.mark.parametrize(("noun", "kind"), [("policies", "policy"), ("operator-policies", "operator_policy")])
def test_a_policy_is_sent_with_all_fields(noun: str, kind: str) -> None:
    request = f"PUT /api/{noun}/v/p%2F1"
    with canned({request: 201}) as api:
        line = f"rabbitmqctl set_{kind} -p v --priority 3 --apply-to queues p/1 ^q '{{\"max-length\":5}}'"
        assert api.run(line).exit_code == 0
        body = {"pattern": "^q", "definition": {"max-length": 5}, "priority": 3, "apply-to": "queues"}
        assert api.changes() == [(request, body)]


def test_the_reason_of_a_refused_policy_is_printed() -> None:
    reason = 'Validation failed\n\n[{&lt;&lt;"bogus"&gt;&gt;,5}] are not recognised policy settings\n'
    answers = {"PUT /api/policies/%2F/p": (400, {"reason": reason}), "GET /api/vhosts/%2F": {}}
    with canned(answers) as api:
        done = api.run("rabbitmqctl set_policy p ^q '{\"bogus\":5}'")
    assert done.output.endswith('with priority "0" for vhost "/" ...\n')
    assert done.complaint == ('Error:\nValidation failed\n\n[{<<"bogus">>,5}] are not recognised policy settings\n\n')
    assert done.exit_code == 69


def test_invalid_json_is_not_sent() -> None:
    with canned() as api:
        done = api.run("rabbitmqctl set_policy p ^q nonsense")
        reason = 'Could not parse JSON document: {error,{failed_to_decode_json,<<"nonsense">>}}'
        assert (done.exit_code, done.complaint) == (69, f"Error:\n{reason}\n")
        api.version = "3.13.7"
        done = api.run("rabbitmqctl set_policy p ^q nonsense")
        assert (done.exit_code, done.complaint) == (69, "Error:\nJSON decoding error. Reason: badarg\n")
        assert api.changes() == []


def test_an_unknown_policy_cannot_be_cleared() -> None:
    with canned({"GET /api/vhosts/%2F": {}}) as api:
        done = api.run("rabbitmqctl clear_policy p")
    assert (done.exit_code, done.complaint) == (69, "Error:\nParameter does not exist\n")


def test_parameters_are_sent_with_their_value() -> None:
    answers = {"PUT /api/parameters/shovel/%2F/s": 201, "PUT /api/global-parameters/g": 201}
    with canned(answers) as api:
        api.run("rabbitmqctl set_parameter shovel s '{\"a\":1}'")
        api.run("rabbitmqctl set_global_parameter g 5")
        assert [body for _, body in api.changes()] == [{"value": {"a": 1}}, {"name": "g", "value": 5}]

from __future__ import annotations

from amqp_broker.broker.admin.similar_names import did_you_mean


def test_the_closest_names_are_asked_for() -> None:
    assert did_you_mean("confirm_nak", ["confirm_drop", "confirm_nack"]) == "did you mean 'confirm_nack'?"
    assert did_you_mean("order", ["orders", "order1"], "; ") == "; did you mean 'orders' or 'order1'?"


def test_a_name_without_a_similar_one_has_no_question() -> None:
    assert did_you_mean("x", ["orders"], "; ") == ""

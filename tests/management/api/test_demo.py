from __future__ import annotations

from tests.management.asking import Desk


def test_where_no_demo_runs_there_is_nothing() -> None:
    assert Desk().get("/_broker/demo")[0] == 404


def test_the_figures_are_those_of_the_moment() -> None:
    desk = Desk()
    told = {"confirmed": 1}
    desk.node.demo = lambda: told
    assert desk.get("/_broker/demo") == (200, {"confirmed": 1})
    told["confirmed"] = 2
    assert desk.get("/_broker/demo") == (200, {"confirmed": 2})


def test_it_takes_a_user_who_may_monitor() -> None:
    desk = Desk()
    desk.node.demo = dict
    desk.be("management")
    assert desk.get("/_broker/demo")[0] == 401
    desk.be("monitoring")
    assert desk.get("/_broker/demo")[0] == 200

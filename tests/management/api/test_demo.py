from __future__ import annotations

from tests.management.asking import Desk


def test_without_a_demo_the_answer_is_404() -> None:
    assert Desk().get("/_broker/demo")[0] == 404


def test_the_figures_are_current() -> None:
    desk = Desk()
    told = {"confirmed": 1}
    desk.node.demo = lambda: told
    assert desk.get("/_broker/demo") == (200, {"confirmed": 1})
    told["confirmed"] = 2
    assert desk.get("/_broker/demo") == (200, {"confirmed": 2})


def test_the_demo_requires_the_tag_monitoring() -> None:
    desk = Desk()
    desk.node.demo = dict
    desk.be("management")
    assert desk.get("/_broker/demo")[0] == 401
    desk.be("monitoring")
    assert desk.get("/_broker/demo")[0] == 200

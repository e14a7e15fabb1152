"""The tasks of `tasks.py` take no more clicks here than on RabbitMQ's page."""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker
from selenium import webdriver

from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ
from compat.waiting import wait_until
from tests.page import ways_here, ways_there
from tests.page.browser import Browser
from tests.page.hand import Hand
from tests.page.tasks import TASKS, Ask, Task
from tests.running import RunningServer

PAGE = Path(__file__).parents[2] / "docs" / "screens.md"
PLUGINS = ("rabbitmq_management", "rabbitmq_shovel", "rabbitmq_shovel_management")
LOGIN = "Basic " + base64.b64encode(b"guest:guest").decode()


def asking(port: int) -> Ask:
    def ask(path: str) -> Any:
        with urlopen(Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": LOGIN})) as answer:
            return json.load(answer)

    return ask


def is_done(task: Task, ask: Ask) -> bool:
    try:
        return task.is_done(ask)
    except (HTTPError, http.client.HTTPException, LookupError):
        return False


def clicks(
    driver: webdriver.Chrome, open_page: Callable[[], object], ports: tuple[int, int], ways: ModuleType
) -> dict[str, int]:
    """Do all tasks at a broker, with its AMQP and HTTP ports, and return their numbers of clicks."""
    found: dict[str, int] = {}
    ask = asking(ports[1])
    # The last task closes the connection.
    with (
        suppress(ConnectionClosedByBroker),
        pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", ports[0])) as connection,
    ):
        for task in TASKS:
            channel = connection.channel()
            task.prepare(channel)
            open_page()
            hand = Hand(driver)
            getattr(ways, task.way)(hand)
            wait_until(partial(is_done, task, ask))
            found[task.name] = hand.clicks
            channel.close()
    return found


def open_rabbitmq(driver: webdriver.Chrome, page: str) -> None:
    """Open RabbitMQ's page as in a new browser: it remembers the sections that were opened."""
    driver.get(page)
    driver.delete_all_cookies()
    driver.execute_script("localStorage.clear(); sessionStorage.clear()")
    driver.get("about:blank")
    driver.get(page)
    hand = Hand(driver)
    hand.type("input[name=username]", "guest")
    hand.type("input[name=password]", "guest")
    hand.click("input[type=submit]", "Login")
    hand.sees("Ports and contexts")


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    broker = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=PLUGINS, oracle=ORACLES["4.3"])
    broker.start()
    yield broker
    broker.stop()


def test_no_task_takes_more_clicks_than_at_rabbitmq(
    browser: Browser, running: RunningServer, rabbitmq: RabbitMQ, tmp_path: Path
) -> None:
    driver = browser.driver
    driver.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    here = clicks(driver, browser.start, (running.port, running.server.ports["management"]), ways_here)

    page = f"http://127.0.0.1:{rabbitmq.management_port}/"
    there = clicks(driver, lambda: open_rabbitmq(driver, page), (rabbitmq.port, rabbitmq.management_port), ways_there)
    # The definitions that both pages export.
    wait_until(lambda: len(list(tmp_path.glob("*.json"))) == 2)
    # Those of RabbitMQ's page.
    browser.complaints()
    assert len(here) >= 20
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \| (\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name: (int(ours), int(theirs)) for name, ours, theirs in rows} == {
        name: (count, there[name]) for name, count in here.items()
    }
    assert {name: (count, there[name]) for name, count in here.items() if count > there[name]} == {}

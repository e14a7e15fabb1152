"""The ways of the tasks in `tasks.py` on RabbitMQ's page, each from its start page."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from tests.page.hand import Hand


def queue(hand: Hand) -> None:
    hand.click("#tabs a", "Queues and Streams")
    hand.click("#main td a", "orders")


def exchange(hand: Hand) -> None:
    hand.click("#tabs a", "Exchanges")
    hand.click("#main td a", "shop")


def user(hand: Hand) -> None:
    hand.click("#tabs a", "Admin")
    hand.click("#main td a", "otto")


def find(hand: Hand) -> None:
    hand.click("#tabs a", "Queues and Streams")
    hand.sees("parked")
    hand.type("#main input#filter, #main .filter input[type=text]", f"ord{Keys.ENTER}")
    hand.sees_no("parked")
    hand.sees("orders")


def look(hand: Hand) -> None:
    queue(hand)
    hand.click("h2", "Get messages")
    hand.click("input[type=submit]", "Get Message(s)")
    hand.sees("order 0")


def holder(hand: Hand) -> None:
    queue(hand)
    hand.click("h2", "Consumers")
    hand.sees("127.0.0.1:")


def publish(hand: Hand) -> None:
    queue(hand)
    hand.click("h2", "Publish message")
    hand.type("textarea[name=payload]", "by hand")
    hand.click("input[type=submit]", "Publish message")
    hand.sees("Message published")


def route(hand: Hand) -> None:
    exchange(hand)
    hand.click("h2", "Publish message")
    hand.type("form[action='#/exchanges/publish'] input[name=routing_key]", "order.paid")
    hand.type("textarea[name=payload]", "by hand")
    hand.click("input[type=submit]", "Publish message")
    hand.sees("Message published")


def move(hand: Hand) -> None:
    queue(hand)
    hand.click("h2", "Move messages")
    hand.type("input[name=dest-queue]", "parked")
    hand.click("input[type=submit]", "Move messages")


def purge(hand: Hand) -> None:
    queue(hand)
    hand.click("h2", "Purge")
    hand.click("input[type=submit]", "Purge Messages")
    hand.confirm()
    hand.sees("Queue purged")


def delete_queue(hand: Hand) -> None:
    queue(hand)
    hand.click("h2", "Delete")
    hand.click("input[type=submit]", "Delete Queue")
    hand.confirm()
    hand.sees("Queues")


def add_queue(hand: Hand) -> None:
    hand.click("#tabs a", "Queues and Streams")
    hand.click("h2", "Add a new queue")
    hand.type("input[name=name]", "fresh")
    hand.click("input[type=submit]", "Add queue")


def bind(hand: Hand) -> None:
    exchange(hand)
    hand.click("h2", "Bindings")
    hand.type("input[name=destination]", "orders")
    hand.type("form[action='#/bindings'] input[name=routing_key]", "order.new")
    hand.click("input[type=submit]", "Bind")
    hand.sees("order.new")


def unbind(hand: Hand) -> None:
    exchange(hand)
    hand.click("h2", "Bindings")
    hand.click("input[type=submit]", "Unbind")
    hand.confirm()


def add_exchange(hand: Hand) -> None:
    hand.click("#tabs a", "Exchanges")
    hand.click("h2", "Add a new exchange")
    hand.type("input[name=name]", "market")
    hand.choose("select[name=type]", "topic")
    hand.click("input[type=submit]", "Add exchange")


def delete_exchange(hand: Hand) -> None:
    exchange(hand)
    hand.click("h2", "Delete this exchange")
    hand.click("input[type=submit]", "Delete")
    hand.confirm()


def add_user(hand: Hand) -> None:
    hand.click("#tabs a", "Admin")
    hand.click("h2", "Add a user")
    hand.type("input[name=username]", "otto")
    hand.type("input[name=password]", "secret")
    hand.type("input[name=password_confirm]", "secret")
    hand.click(".tag-link", "Management")
    hand.click("input[type=submit]", "Add user")


def permit(hand: Hand) -> None:
    user(hand)
    hand.click("input[type=submit]", "Set permission")


def delete_user(hand: Hand) -> None:
    user(hand)
    hand.click("h2", "Delete this user")
    hand.click("input[type=submit]", "Delete")
    hand.confirm()


def add_vhost(hand: Hand) -> None:
    hand.click("#tabs a", "Admin")
    hand.click("#rhs a", "Virtual Hosts")
    hand.click("h2", "Add a new virtual host")
    hand.type("input[name=name]", "shop")
    hand.click("input[type=submit]", "Add virtual host")


def add_policy(hand: Hand) -> None:
    hand.click("#tabs a", "Admin")
    hand.click("#rhs a", "Policies")
    hand.click("h2", "Add / update a policy")
    hand.type("input[name=name]", "short")
    hand.type("input[name=pattern]", "^orders")
    hand.click(".argument-link", "Max length")
    hand.type("input[name=definition_1_mfvalue]", "5")
    hand.click("input[type=submit]", "Add / update policy")


def limit(hand: Hand) -> None:
    hand.click("#tabs a", "Admin")
    hand.click("#rhs a", "Limits")
    hand.type("form[action='#/limits'] input[name=value]", "100")
    hand.click("form[action='#/limits'] input[type=submit]", "Set / update limit")


def close(hand: Hand) -> None:
    hand.click("#tabs a", "Connections")
    hand.click("#main td a", "127.0.0.1:")
    hand.click("h2", "Close this connection")
    hand.click("input[type=submit]", "Force Close")
    hand.confirm()


def export(hand: Hand) -> None:
    hand.click("h2", "Export definitions")
    hand.click("button", "Download broker definitions")


def memory(hand: Hand) -> None:
    hand.click("#main td a", "@localhost")
    hand.click("button", "Update")
    hand.sees("Binaries")

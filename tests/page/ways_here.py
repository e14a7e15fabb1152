"""The ways of the tasks in `tasks.py` on this broker's page, each from its start page."""

from __future__ import annotations

from tests.page.hand import Hand


def queue(hand: Hand) -> None:
    hand.click("nav a", "Queues")
    hand.click("tbody a", "orders")


def exchange(hand: Hand) -> None:
    hand.click("nav a", "Exchanges")
    hand.click("tbody a", "shop")


def user(hand: Hand) -> None:
    hand.click("nav a", "Users")
    hand.click("tbody a", "otto")


def find(hand: Hand) -> None:
    hand.click("nav a", "Queues")
    hand.sees("parked")
    hand.type("main input[type=search]", "ord")
    hand.sees_no("parked")
    hand.sees("orders")


def look(hand: Hand) -> None:
    queue(hand)
    hand.sees("order 0")


def holder(hand: Hand) -> None:
    queue(hand)
    hand.sees("127.0.0.1:")


def publish(hand: Hand) -> None:
    queue(hand)
    hand.click("#tab-publish")
    hand.label("Payload", "by hand")
    hand.click("#panel-publish button", "Publish message")
    hand.sees("Message published")


def route(hand: Hand) -> None:
    exchange(hand)
    hand.label("Payload", "by hand")
    hand.type("main .part:last-child input[name=routing_key]", "order.paid")
    hand.click("main button", "Publish message")
    hand.sees("Message published")


def move(hand: Hand) -> None:
    queue(hand)
    hand.click("#tab-move")
    hand.label("To queue", "parked")
    hand.click("#panel-move button", "Move messages")
    hand.sees("moved to parked")


def purge(hand: Hand) -> None:
    queue(hand)
    hand.click("main button", "Purge")
    hand.click("dialog button", "Purge messages")
    hand.sees("purged")


def delete_queue(hand: Hand) -> None:
    queue(hand)
    hand.click("main button", "Delete")
    hand.click("dialog button", "Delete queue")
    hand.sees("was deleted")


def add_queue(hand: Hand) -> None:
    hand.click("nav a", "Queues")
    hand.click("main button", "Add queue")
    hand.label("Name", "fresh")
    hand.click("dialog button", "Add queue")
    hand.sees("Queue fresh was added")


def bind(hand: Hand) -> None:
    exchange(hand)
    hand.click("summary", "Bind a queue")
    hand.type(".more input[name=destination]", "orders")
    hand.type(".more input[name=routing_key]", "order.new")
    hand.click(".more button", "Bind")
    hand.sees("order.new")


def unbind(hand: Hand) -> None:
    exchange(hand)
    hand.click("main button", "Unbind")
    hand.sees("was unbound")


def add_exchange(hand: Hand) -> None:
    hand.click("nav a", "Exchanges")
    hand.click("main button", "Add exchange")
    hand.label("Name", "market")
    hand.choose("dialog select[name=type]", "topic")
    hand.click("dialog button", "Add exchange")


def delete_exchange(hand: Hand) -> None:
    exchange(hand)
    hand.click("main button", "Delete")
    hand.click("dialog button", "Delete exchange")


def add_user(hand: Hand) -> None:
    hand.click("nav a", "Users")
    hand.click("main button", "Add user")
    hand.label("Name", "otto")
    hand.label("Password", "secret")
    hand.click("dialog label", "management")
    hand.click("dialog button", "Add user")


def permit(hand: Hand) -> None:
    user(hand)
    hand.click("main button", "Set permissions")


def delete_user(hand: Hand) -> None:
    user(hand)
    hand.click("main button", "Delete")
    hand.click("dialog button", "Delete user")


def add_vhost(hand: Hand) -> None:
    hand.click("nav a", "Virtual Hosts")
    hand.click("main button", "Add virtual host")
    hand.label("Name", "shop")
    hand.click("dialog button", "Add virtual host")


def add_policy(hand: Hand) -> None:
    hand.click("nav a", "Policies")
    hand.click("main button", "Add policy")
    hand.label("Name", "short")
    hand.label("Pattern", "^orders")
    hand.click("dialog button", "max-length")
    hand.driver.switch_to.active_element.send_keys("5")
    hand.click("dialog button", "Add policy")


def limit(hand: Hand) -> None:
    hand.click("nav a", "Limits")
    hand.click("main button", "Set limit of a virtual host")
    hand.label("Value", "100")
    hand.click("dialog button", "Set limit")


def close(hand: Hand) -> None:
    hand.click("nav a", "Connections")
    hand.click("tbody a", "127.0.0.1:")
    hand.click("main button", "Force close")
    hand.click("dialog button", "Close connection")


def export(hand: Hand) -> None:
    hand.click("nav a", "Definitions")
    hand.click("main button", "Export")
    hand.sees("Saved as")


def memory(hand: Hand) -> None:
    hand.sees("The program at its start")

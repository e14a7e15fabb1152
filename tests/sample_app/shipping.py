"""Parcels of the order service: a Celery application with queues, retries, delays and chains."""

from __future__ import annotations

from celery import Celery, Task, chain
from celery.canvas import Signature
from kombu import Exchange, Queue

RETRIES_MAX = 3
RETRY_S = 0.05

app = Celery("shipping", backend="rpc://", set_as_current=False)
parcels = Exchange("parcels", "topic")
app.conf.update(
    task_queues=[
        Queue("parcels", parcels, routing_key="parcel.#"),
        Queue("mail", parcels, routing_key="mail.#", queue_arguments={"x-max-priority": 10}),
        Queue("labels", Exchange("labels", "direct"), routing_key="label"),
    ],
    task_default_queue="parcels",
    task_default_exchange="parcels",
    task_default_exchange_type="topic",
    task_default_routing_key="parcel.default",
    task_routes={
        "weigh": {"queue": "parcels", "routing_key": "parcel.weigh"},
        "print_label": {"queue": "labels"},
        "notify": {"queue": "mail", "routing_key": "mail.notify"},
    },
    task_publish_retry=False,
    broker_transport_options={"confirm_publish": True},
)

# Mailed parcels, in order.
outbox: list[str] = []


class CarrierIsBusy(Exception):
    """It will take the parcel later."""


@app.task(name="weigh")
def weigh(articles: dict[str, int]) -> int:
    """The weight of a parcel (g)."""
    return sum(articles.values())


@app.task(name="print_label", bind=True)
def print_label(self: Task, weight_g: int, address: str) -> str:
    return f"{address}: {weight_g} g ({self.request.delivery_info['routing_key']})"


@app.task(
    name="hand_over", bind=True, autoretry_for=(CarrierIsBusy,), max_retries=RETRIES_MAX, default_retry_delay=RETRY_S
)
def hand_over(self: Task, label: str, busy: int = 0) -> str:
    """Give a parcel to the carrier, who is busy for the first times."""
    if self.request.retries < busy:
        raise CarrierIsBusy(label)
    return f"{label}, try {self.request.retries + 1}"


@app.task(name="notify")
def notify(text: str) -> None:
    outbox.append(text)


def ship(articles: dict[str, int], address: str, busy: int = 0) -> Signature:
    """All that happens to a parcel, one after the other, each on its own queue."""
    return chain(weigh.s(articles), print_label.s(address), hand_over.s(busy))

"""The service's Celery task."""

from __future__ import annotations

from celery import Celery

app = Celery("shop", backend="rpc://", set_as_current=False)


@app.task(name="invoice")
def invoice(number: int, amount: int) -> str:
    return f"invoice {number}: {amount} EUR"

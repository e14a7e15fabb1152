"""Logs each advice about the habits of clients (lab/advice.py) once, as a warning."""

from __future__ import annotations

import logging

from amqp_broker.broker.lab.advice import Advice

logger = logging.getLogger("amqp_broker.advice")


def log(advice: Advice) -> None:
    """Log advice on one line."""
    logger.warning("%s", advice)

"""What the log says of habits that bite in production (broker/advice.py): each once, as a warning."""

from __future__ import annotations

import logging

from amqp_broker.broker.advice import Advice

logger = logging.getLogger("amqp_broker.advice")


def tell(advice: Advice) -> None:
    """Log advice; its text is on one line, whatever is named in it."""
    logger.warning("%s", advice)

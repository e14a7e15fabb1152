from __future__ import annotations

import pickle

from pyspark_amqp.errors import BrokerError, OptionError


def test_an_error_names_its_option() -> None:
    assert str(OptionError("queue", "is needed")) == "option 'queue': is needed"


def test_errors_can_be_pickled() -> None:
    assert str(pickle.loads(pickle.dumps(BrokerError("x", 404)))) == "x"

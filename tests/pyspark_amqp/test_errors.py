from __future__ import annotations

import pickle

from pyspark_amqp.errors import BrokerError, ConnectionLost, OptionError


def test_an_error_names_its_option() -> None:
    assert str(OptionError("queue", "is needed")) == "option 'queue': is needed"


def test_a_lost_connection_is_an_error_of_the_broker_with_a_code() -> None:
    lost = ConnectionLost("gone", 320)
    assert isinstance(lost, BrokerError)
    assert (str(lost), lost.code) == ("gone", 320)
    assert BrokerError("x").code == 0


def test_errors_cross_processes() -> None:
    assert str(pickle.loads(pickle.dumps(BrokerError("x", 404)))) == "x"

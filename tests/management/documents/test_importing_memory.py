from __future__ import annotations

import gc
import weakref

from amqp_broker.management.documents.importing import Import
from tests.broker_parts import new_vhost


def test_an_import_is_freed_without_a_collection_of_garbage() -> None:
    broker = new_vhost().broker
    work = Import(broker, {"queues": [{"name": "q", "vhost": "/"}]})
    title, action = work._actions[0]
    seen = weakref.ref(action)
    del title, action
    gc.disable()
    try:
        assert list(work.run()) == [work.steps] == [1]
        assert seen() is None
    finally:
        gc.enable()

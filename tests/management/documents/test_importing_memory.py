from __future__ import annotations

import gc
import weakref

from amqp_broker.management.documents.importing import Import
from tests.broker_parts import new_vhost


def test_an_import_is_freed_without_a_collection_of_garbage() -> None:
    work = Import(new_vhost().broker, {"queues": [{"name": "q", "vhost": "/"}]})
    seen = weakref.ref(work)
    gc.disable()
    try:
        assert list(work.run()) == [work.steps] == [1]
        del work
        assert seen() is None
    finally:
        gc.enable()

from __future__ import annotations

import gc
import weakref

from amqp_broker.management.documents.disposable import Disposable
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


def test_the_sections_of_a_disposable_document_are_freed_in_the_steps_that_read_them() -> None:
    queues = Disposable({"name": str(number), "vhost": "/"} for number in range(4))
    work = Import(new_vhost().broker, {"queues": queues}, reads=False)
    assert [len(queues) for _ in work.reading()] == [3, 2, 1, 0]
    assert work.steps == 4

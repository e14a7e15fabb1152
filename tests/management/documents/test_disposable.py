from __future__ import annotations

from amqp_broker.management.documents.disposable import Disposable


def test_items_are_taken_out_in_their_order() -> None:
    items = Disposable([1, 2, 3])
    seen = [(item, len(items)) for item in items.taken()]
    assert seen == [(1, 2), (2, 1), (3, 0)]

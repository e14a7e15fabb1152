"""Mutants without a visible effect, with the reasons; they do not count as survivors."""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {
    "amqp_broker.broker.queues.unused_expiry:UnusedExpiry._on_due: self.expires_ms is None or self._consumers → "
    "self._consumers": "without a time there is no timer",
    "amqp_broker.broker.exchanges.topic:TopicTrie.match: if children → if children or True": "only saves two look-ups",
    "amqp_broker.broker.scheduling.timers:Timers.at: 1 → 2": "numbers of timers only have to grow",
    "amqp_broker.broker.observe.trace:Trace._observe: if self.is_full → if self.is_full or True": "only saves work",
    "amqp_broker.broker.durability.stream_log:JournaledLog.first_head: if self._first_head is None or "
    "self._first_head.first != self.first → if (self._first_head is None or self._first_head.first != self.first) "
    "or True": "only saves a read",
    "amqp_broker.broker.queues.stream:StreamQueue._deliver_batch: reader.next - 1 → reader.next + 1": (
        "a stream asks for no position when a delivery is settled"
    ),
    "amqp_broker.store.contents:reason: f'{error}' or type(error).__name__ → f'{error}'": "only texts of errors",
    "amqp_broker.session.session:Session._on_time_over: if self.state is not ENDED → "
    "if self.state is not ENDED or True": "a session ends once",
    "amqp_broker.session.wire.reader:FrameReader.take_partial_frame: self._pending_bytes > PARTIAL_FRAME_BYTES_MAX → "
    "self._pending_bytes >= PARTIAL_FRAME_BYTES_MAX": "what is left is taken here or there",
}

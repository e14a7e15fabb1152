"""The types of queues and their parts: buffers, consumer rotation, limits, expiry, arguments.

`broker/routing/` decides which messages arrive here, `broker/durability/` makes them survive. Read `queue.py`
first.

**Order.** A message's position is its place in the order of arrival. Returned messages have positions before the
head of the buffer and are served first, which restores the original order. Ready consumers and ready messages never
wait for each other, except while a backlog is delivered in portions.

**Features.** A plain queue asks a single question per message: does it have any extra, that is a time to live, a
limit, a journal, a trace, an order other than arrival? Only then does the longer way handle deadlines, expiry at
the head, overflow and the form that the consumer sees. A message that a consumer takes at once does not wait, so
most extras do not apply.

**Memory.** The buffer of a durable queue keeps a window in memory and the rest in the journal. Its memory precedes
the rest, and after the first access it is never empty while the journal has more. From half of the memory watermark
on, a long transient queue gets an overflow, a paged buffer behind its memory, and loses it when it has run empty
and memory suffices. Definitions do not name the range of an overflow, so a restart discards it. Priority queues
stay in memory.

**Streams.** Pushing appends to the log and nothing else. After the commit the queue delivers to each consumer with
credit. A `Cursor` is a consumer's place: an offset and the chunk around it. Chunks in the form that readers get are
kept in one bounded cache for all streams: live readers never touch the disk, and readers that catch up together
read it once. Settling only frees credit. Retention drops whole chunks from the head, never the newest.
"""

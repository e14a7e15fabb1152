"""State that survives the process: the journal's interface, buffers, logs of streams.

`amqp_broker/store` writes the files; `broker/journal_entries.py` and `broker/operations/restoring.py` have the entries
of other objects. Read `journal.py` first.

**Order of commits.** A change is safe when `Journal.committed` has reached the number that its batch had. A batch
is taken between two reads, so a message that leaves one queue for another is always in one of them, at whatever
moment the process is killed. Definitions are field tables; after a restart `restoring.restore` declares everything
again, and paged buffers know their counts from the last commit and read nothing until the first access. Messages that
were delivered and not settled come first, as redelivered.

**Delay of commits.** A message that is acked before its batch is taken is never written. If that is true of all
messages of a batch (`Journal.is_void`), they are confirmed without a commit. `server/committing.py` decides how long a
batch may wait for that, and for more messages.

**Streams** become chunks when a batch is taken: 256 KiB or 4096 messages at most, one record under (stream, first
offset), with time and filter values in front. A chunk is found by a seek, a time by bisecting offsets; memory holds
no index.
"""

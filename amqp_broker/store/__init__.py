"""The durable journal on LMDB: the folder, recovery, checks, copies, and the thread that commits.

`broker/durability/journal.py` declares the interface, and the broker never imports this package. Read
`environment.py` first, which describes the files and the format.

**Decisions and their reasons:**

- `pages.py` reads LMDB's pages before LMDB does: LMDB trusts its file, and a truncated one ends the process with
  SIGBUS. A broker checks the small tables at each start (all of them if the file is shorter than LMDB says),
  `verify`, `compact` and `backup` every page.
- After a crash the next broker checks every page, because LMDB's own checks end the process. `salvage.py` reads damaged
  files without LMDB: the checksums of records prove what it finds.
- `broker.lock` is locked with flock and holds a process id: LMDB lets two writers alternate; two brokers on one
  store must not. The system releases the lock when the process dies.
- Checks precede all changes: a refused folder stays as it was; a failed first start removes what it made.
- `backup` holds a read transaction: LMDB then overwrites no page of that moment while a broker commits.
- `backup` locks `data.mdb` shared, `compact` exclusively, and removes `lock.mdb`: a compacted file counts commits
  from 1; a process with the old `lock.mdb` would choose the wrong meta page.
- The blocks of `lock.mdb` are allocated before LMDB maps it: LMDB leaves holes, and a write to a hole on a full
  disk is a SIGBUS.
- `contents.py` declares all definitions in a broker without messages: `info`, `verify` and `definitions export` see
  queues exactly as a restart would.
- The event loop fills transactions, the writer thread commits: py-lmdb releases the interpreter lock around each
  put; a thread that puts would wait for it a thousand times per batch.
- A batch fills its transaction in slices of about a millisecond: the loop runs in between; later changes belong to
  the next batch.
- Without a flush per commit (`store_sync` os), one flushed commit is kept whole until the next is (`checkpoint.py`):
  LMDB without flushes is torn by a power loss.
- Each record has a checksum of its key and its octets (`seal.py`): the page of another record is found, too. A damaged
  message becomes a `DamagedMessage`, which is due at once, so that the path of whole messages needs no test for it.

**A failing disk.** A failed commit puts its batch back into the one being collected: nothing is lost and nothing is
confirmed. The server raises the alarm `disk`, which blocks publishers, and retries each second. Writing a batch
twice does no harm. Where LMDB refuses all further work (MDB_PANIC), the files are reopened between two reads.

**Deletion** of thousands of messages is recorded as a range of garbage and done in portions; until then reads skip
the range, so a crash brings nothing back.
"""

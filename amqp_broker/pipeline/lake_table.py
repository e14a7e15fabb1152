"""A table of a lake: a Delta table, whose log the library deltalake reads and writes, without Spark.

    events/_delta_log/00000000000000000017.json              a commit: files added and removed
    events/<query>-<batch>-<random>/date=…/part-….parquet    the files of a batch, as Spark wrote them
    events/date=…/part-….parquet                             files that compaction joined

Files become rows with the commit that names them: what a killed process left behind belongs to no commit, no reader
sees it, and `vacuum` removes it. The commit of a batch stores the number of the batch under the id of its query, so a
repeated batch is recognized, and of two processes that write the same batch one fails. A reader keeps the files that it
planned with: compaction removes them from the log, and `vacuum` from the disk when they are old.

The table's properties store the version of the columns, and for each queue the job that archives it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.pipeline.event_rows import Field

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, Schema

# Increased when columns are added: an older program refuses the table, a newer one adds the columns.
VERSION: Final = 2
VERSION_PROPERTY: Final = "amqp-broker.schema-version"
OWNER_PROPERTY: Final = "amqp-broker.archive-of."
# Sizes up to which files are joined: those of single batches first, then the results.
TARGETS_BYTES: Final = (8 * 1024 * 1024, 128 * 1024 * 1024)
# Files of a day below half a target, above which they are joined.
FILES_MAX: Final = 32
# How long removed files remain for readers, in hours: a week, as Delta's own default.
KEEP_HOURS: Final = 168
PARTITION: Final = "date"

_TYPES: Final[dict[str, Any]] = {
    "string": "string",
    "bigint": "long",
    "int": "integer",
    "boolean": "boolean",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "array<string>": {"type": "array", "elementType": "string", "containsNull": True},
    "map<string,string>": {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
}
# Settings of Hadoop's s3a, and the options of deltalake with the same meaning.
_S3A: Final = {
    "fs.s3a.access.key": "AWS_ACCESS_KEY_ID",
    "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY",
    "fs.s3a.session.token": "AWS_SESSION_TOKEN",
    "fs.s3a.endpoint.region": "AWS_REGION",
}


class LakeRefused(Exception):
    """The lake is not fit for what was asked; the text is a sentence for the user."""


class LakeBusy(LakeRefused):
    """Another process works with the same checkpoint."""


class DataFile(NamedTuple):
    """A file of a snapshot; `path` is relative to the table."""

    path: str
    date: str
    size_bytes: int
    rows: int


class Owner(NamedTuple):
    """The archive of a queue: its job, and Spark's id of the query, which its checkpoint stores."""

    job: str
    query: str


def storage_options(setting: Callable[[str], str | None]) -> dict[str, str]:
    """Return the options of deltalake for the s3a settings of Hadoop; without them, AWS's variables count."""
    options = {name: value for key, name in _S3A.items() if (value := setting(key))}
    if endpoint := setting("fs.s3a.endpoint"):
        is_plain = setting("fs.s3a.connection.ssl.enabled") == "false"
        url = endpoint if "://" in endpoint else f"{'http' if is_plain else 'https'}://{endpoint}"
        options["AWS_ENDPOINT_URL"] = url
        if url.startswith("http://"):
            options["AWS_ALLOW_HTTP"] = "true"
    return options


def crowded(files: Iterable[DataFile], target_bytes: int) -> list[str]:
    """Return the dates with more than `FILES_MAX` files below half the target, in order."""
    counts = Counter(file.date for file in files if file.size_bytes < target_bytes // 2)
    return sorted(date_ for date_, count in counts.items() if count > FILES_MAX)


def schema_of(fields: Sequence[Field]) -> Schema:
    from deltalake import Schema

    every = [*fields, Field(PARTITION, "date", "")]
    columns = [{"name": field.name, "type": _TYPES[field.type], "nullable": True, "metadata": {}} for field in every]
    return Schema.from_json(json.dumps({"type": "struct", "fields": columns}))


class LakeTable:
    """A table at a path or an address; it need not exist. All methods but `create` and `exists` raise LakeRefused."""

    def __init__(self, place: str, fields: Sequence[Field], options: Mapping[str, str] | None = None) -> None:
        self.place = place
        self.fields = fields
        self.options = dict(options or {})

    def exists(self) -> bool:
        from deltalake import DeltaTable

        return DeltaTable.is_deltatable(self.place, self.options)

    def create(self) -> None:
        """Create the table, or add the columns that it lacks. Raise LakeRefused if it is newer."""
        from deltalake import DeltaTable

        if not self.exists():
            DeltaTable.create(
                self.place,
                schema_of(self.fields),
                mode="ignore",
                partition_by=[PARTITION],
                configuration={VERSION_PROPERTY: str(VERSION)},
                storage_options=self.options,
                raise_if_key_not_exists=False,
            )
        table = self.opened()
        known = {field.name for field in table.schema().fields}
        lacking = [field for field in schema_of(self.fields).fields if field.name not in known]
        if lacking:
            table.alter.add_columns(lacking)
        if self._version(table) < VERSION:
            table.alter.set_table_properties({VERSION_PROPERTY: str(VERSION)}, raise_if_not_exists=False)

    def opened(self) -> DeltaTable:
        """Return the newest snapshot. Raise LakeRefused if it is not a table of a lake, or too new."""
        from deltalake import DeltaTable

        table = DeltaTable(self.place, storage_options=self.options)
        version = self._version(table)
        if version > VERSION:
            raise LakeRefused(
                f"the table '{self.place}' has version {version} of its columns, and this amqp-broker knows those up "
                f"to {VERSION}: use a newer amqp-broker"
            )
        return table

    def _version(self, table: DeltaTable) -> int:
        try:
            return int(table.metadata().configuration[VERSION_PROPERTY])
        except (KeyError, ValueError):
            raise LakeRefused(f"the table '{self.place}' was not made by an archive of amqp-broker") from None

    # Reading

    def files(self, since: date | None = None, until: date | None = None) -> list[DataFile]:
        """Return the files of the newest snapshot, those of some dates or all; none if there is no table."""
        if not self.exists():
            return []
        found = self._files(self.opened())
        low, high = (since or date.min).isoformat(), (until or date.max).isoformat()
        return [file for file in found if low <= file.date <= high]

    def _files(self, table: DeltaTable) -> list[DataFile]:
        import pyarrow

        rows = pyarrow.table(table.get_add_actions(flatten=True)).to_pylist()
        return sorted(
            DataFile(row["path"], str(row[f"partition.{PARTITION}"]), row["size_bytes"], row["num_records"] or 0)
            for row in rows
        )

    # Writing

    def last_batch(self, query: str) -> int | None:
        """Return the number of the last batch of a query in the table, None if there is none."""
        return self.opened().transaction_version(query)

    def new_folder(self, query: str, batch: int) -> str:
        """Return the name of a new folder for the files of a batch, which `commit` makes rows of the table."""
        return f"{query}-{batch}-{uuid.uuid4().hex[:8]}"

    def commit(self, folder: str, batches: Mapping[str, int], writer: str) -> int:
        """Add the files in a folder of the table; return their rows. `batches` has the last batch by query.

        Raise LakeBusy if another process has added a batch of one of these queries meanwhile; `writer` names this
        one in the log.
        """
        from deltalake import CommitProperties, Transaction
        from deltalake.exceptions import CommitFailedError

        table = self.opened()
        files = self._written(folder)
        done = CommitProperties(
            custom_metadata={"writer": writer},
            app_transactions=[Transaction(query, batch) for query, batch in batches.items()],
        )
        try:
            self._add(table, files, done)
        except CommitFailedError as error:
            if "Concurrent transaction" not in str(error):
                raise
            raise LakeBusy(f"{self.last_writer()} writes to this lake from the same checkpoint") from None
        return sum(file.rows for file in files)

    def last_writer(self) -> str:
        """Return the name of the last archive that has written to the table."""
        names = (commit.get("writer") for commit in self.opened().history(100))
        return next((str(name) for name in names if name), "another archive")

    def _written(self, folder: str) -> list[DataFile]:
        import pyarrow.fs
        import pyarrow.parquet
        from deltalake.fs import DeltaStorageHandler

        store = pyarrow.fs.PyFileSystem(DeltaStorageHandler(self.place, self.options))
        selector = pyarrow.fs.FileSelector(folder, recursive=True, allow_not_found=True)
        found = []
        for info in store.get_file_info(selector):
            if not info.is_file or not info.path.endswith(".parquet"):
                continue
            with store.open_input_file(info.path) as file:
                rows = pyarrow.parquet.read_metadata(file).num_rows
            part = next(part for part in info.path.split("/") if part.startswith(f"{PARTITION}="))
            found.append(DataFile(info.path, part.partition("=")[2], info.size, rows))
        return found

    def _add(self, table: DeltaTable, files: list[DataFile], done: CommitProperties) -> None:
        from deltalake.transaction import AddAction, RemoveAction

        now_ms = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size_bytes, {PARTITION: file.date}, now_ms, True, f'{{"numRecords":{file.rows}}}')
            for file in files
        ]
        table.create_write_transaction(actions, "append", table.schema(), [PARTITION], commit_properties=done)

    def discard(self, query: str, batch: int) -> None:
        """Remove the rows of a batch, unless their files have been joined with others."""
        from deltalake.transaction import AddAction, RemoveAction

        table, now_ms = self.opened(), int(time.time() * 1000)
        gone = [file for file in self._files(table) if file.path.startswith(f"{query}-{batch}-")]
        if gone:
            actions: list[AddAction | RemoveAction] = [
                RemoveAction(file.path, True, now_ms, file.size_bytes, {PARTITION: file.date}) for file in gone
            ]
            table.create_write_transaction(actions, "append", table.schema(), [PARTITION])

    # Owners

    def owner(self, queue: str) -> Owner | None:
        """Return the archive of a queue in this table."""
        text = self.opened().metadata().configuration.get(OWNER_PROPERTY + queue)
        return Owner(*json.loads(text)) if text else None

    def claim(self, queue: str, owner: Owner) -> None:
        """Make an archive the only one of a queue. Raise LakeRefused if there is another."""
        from deltalake.exceptions import CommitFailedError

        self.check_owner(queue, owner)
        if self.owner(queue) is None:
            properties = {OWNER_PROPERTY + queue: json.dumps(owner)}
            # Another process may be faster.
            with suppress(CommitFailedError):
                self.opened().alter.set_table_properties(properties, raise_if_not_exists=False)
            self.check_owner(queue, owner)

    def check_owner(self, queue: str, owner: Owner) -> None:
        """Raise LakeRefused if the queue has another archive than this one in this table."""
        found = self.owner(queue)
        if found is None or found == owner:
            return
        whose = f"the job '{found.job}'"
        if found.job == owner.job:
            whose += " from another checkpoint, which is gone or was replaced"
        raise LakeRefused(
            f"'{queue}' is archived in '{self.place}' by {whose}: a second archive would store its events again"
        )

    # Upkeep

    def compact(self, *, only_crowded: bool = False) -> int:
        """Join small files of a day; return the number of files that were joined."""
        from deltalake.exceptions import CommitFailedError

        joined = 0
        for target in TARGETS_BYTES if only_crowded else TARGETS_BYTES[-1:]:
            table = self.opened()
            dates = crowded(self._files(table), target) if only_crowded else [None]
            for date_ in dates:
                filters = None if date_ is None else [(PARTITION, "=", date_)]
                # Another process has joined the same files.
                with suppress(CommitFailedError):
                    metrics = table.optimize.compact(partition_filters=filters, target_size=target)
                    joined += int(metrics["numFilesRemoved"])
        return joined

    def vacuum(self, keep_hours: int = KEEP_HOURS, *, is_full: bool = True) -> int:
        """Delete files that the table has not had for `keep_hours`; return their number.

        If `is_full`, also those that never were in it, from processes that were killed.
        """
        gone = self.opened().vacuum(keep_hours, dry_run=False, enforce_retention_duration=False, full=is_full)
        if "://" not in self.place:
            for folder in {Path(self.place, name).parent for name in gone}:
                _remove_empty(folder, Path(self.place))
        return len(gone)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it up to the table, as far as they are empty."""
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent

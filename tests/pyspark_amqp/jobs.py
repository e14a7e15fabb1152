"""Parts of programs that Spark runs on other hosts, as text, and the queues that these need."""

from __future__ import annotations

import subprocess
import sys

from tests.hosts import RemoteBroker

DECLARE = """
import pika, sys
channel = pika.BlockingConnection(pika.URLParameters(sys.argv[1])).channel()
channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
channel.queue_declare("classic", durable=True)
"""
# It needs `spark`, `url` and `folder`. The sum of what is written to a queue is 4950.
WRITE_AND_DRAIN = """
def drain(queue, **given):
    options = {"url": url, "queue": queue, **given}
    rows = spark.readStream.format("amqp").options(**options).load()
    query = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/{queue}-checkpoint")
    query.trigger(availableNow=True).start(f"{folder}/{queue}").awaitTermination()
    return spark.read.parquet(f"{folder}/{queue}").selectExpr("sum(int(string(body)))").first()[0]

for queue in ("stream", "classic"):
    rows = spark.range(100).selectExpr("string(id) AS body")
    rows.write.format("amqp").options(url=url, routingKey=queue).mode("append").save()
"""


def declare_queues(broker: RemoteBroker) -> None:
    """Declare the stream `stream` and the queue `classic`."""
    command = broker.namespace.command(sys.executable, "-c", DECLARE, broker.url)
    subprocess.run(command, check=True)

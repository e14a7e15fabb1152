"""From an empty machine to a report: run it whole, or cell by cell in an editor that knows `# %%`.

    pip install '.[spark]'             # and Java 17, or the extra spark-jre
    python examples/pipeline.py

It writes a folder `trace` with the lake, the tables and the page report.html.
"""

# %% A broker in this process, with its trace in a stream.
import random
import time
from pathlib import Path

import pika

from amqp_broker.broker.observe.selection import Selection
from amqp_broker.pipeline import report_page
from amqp_broker.pipeline.spark_archive import SparkArchive
from amqp_broker.pipeline.spark_lake import SparkLake
from amqp_broker.pipeline.spark_report import SparkReport
from amqp_broker.pipeline.spark_session import open_session
from amqp_broker.testing import EmbeddedBroker

folder = Path("trace").absolute()
broker = EmbeddedBroker()
broker.start()
# Without heartbeats: on a slow machine, a cell may take longer than they allow.
connection = pika.BlockingConnection(pika.URLParameters(f"{broker.url}?heartbeat=0"))
channel = connection.channel()
channel.queue_declare("trace", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "7D"})
# The same as `amqp-broker trace on` with a broker in another process.
broker.ask(lambda server: (vhost := server.broker.vhosts["/"]).tracing.record(vhost.queues["trace"], Selection()))

# %% Work: orders, some of which are refused, come again or end as dead letters.
channel.queue_declare("dead")
channel.queue_declare("orders", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
channel.confirm_delivery()
chance = random.Random(1)
for number in range(300):
    channel.basic_publish("", "orders", b"order %d" % number, pika.BasicProperties(message_id=str(number)))
    method, _, _ = channel.basic_get("orders")
    if chance.random() < 0.1:
        channel.basic_nack(method.delivery_tag, requeue=chance.random() < 0.5)
    else:
        time.sleep(chance.expovariate(2000))
        channel.basic_ack(method.delivery_tag)
connection.close()

# %% The archive: a Structured Streaming job, each event once. Run it again, and it goes on where it was.
spark = open_session("example")
lake = SparkLake(spark, str(folder / "lake"))
archive = SparkArchive(lake, {"url": broker.url, "queue": "trace"})
archive.run()
print(f"{archive.events} events archived, {archive.poisoned} poisoned")

# %% The lake is a table like any other.
events = lake.read()
events.groupBy("event").count().orderBy("event").show()
events.where("event = 'dead_letter'").select("time", "queue", "reason", "message_number").show(3, truncate=False)

# %% The report: tables of Parquet, and a page.
with SparkReport(events) as report:
    report.write(str(folder / "report"))
    page = report_page.page(report)
    queues = report.tables["queues"]
    queues.select("queue", "interval_start", "arrived", "acked", "wait_ms_p95", "handling_ms_p95").show()
(folder / "report.html").write_text(page, "utf-8")
print(f"open {folder / 'report.html'}")

# %%
broker.stop()

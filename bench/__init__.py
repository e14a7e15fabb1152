"""A benchmark of amqp-broker and RabbitMQ under the same load: `python -m bench`.

Read benchmarks.py first, which lists the rows and goals. The load generator is in load/, and generator.py runs it. Rows
are measured by side_by_side.py, those of management by managed.py, and the scaling of costs by flat.py. Output is in
figures_report.py; README.md explains it.
"""

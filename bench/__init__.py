"""Our broker beside RabbitMQ on the same machine, under the same load: `python -m bench`.

rows.py says what is compared and what is wanted, generator.py drives the load generator of load/, compare.py runs the
rows on both brokers in turn, managed.py those of management, flat.py looks whether our cost per message depends on how
much else there is, report.py prints. README.md says how to read it.
"""

"""The client matrix: programs in many languages play the same scenarios against our broker and against RabbitMQ.

`python -m compat.matrix` plays them and writes the table of compat/README.md. A client joins with a folder beside this
one that has a `row.py`; how it speaks with the harness stands in compat/README.md.
"""

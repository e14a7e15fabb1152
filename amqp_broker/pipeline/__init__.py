"""A trace as data: archived from a stream queue into a lake of Parquet, reported on, and replayed, by Spark.

Nothing here is imported by the broker; importing this package imports no Spark.
"""

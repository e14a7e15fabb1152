"""Hadoop's YARN on one host, for Spark: `cluster.py` runs a ResourceManager and a NodeManager.

Maven fetches them (`pom.xml`), in the version of Spark's own Hadoop client.
"""

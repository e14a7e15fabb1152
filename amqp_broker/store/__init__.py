"""The durable journal on LMDB, and recovery from it."""

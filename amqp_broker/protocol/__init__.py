"""Bytes to frames and methods and back, and the states of a connection; knows no queues and does no input or output."""

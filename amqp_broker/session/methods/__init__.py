"""The methods that a client calls on an open channel, by class: `wire/dispatch.py` lists them.

`basic_publish.py` leads from a method frame to a route. basic.ack, nack and reject are in `channel/channel.py`.
"""

"""Logins and permissions by services beside the broker's own users (RabbitMQ, "Access Control").

A check of a permission is a plain call. Where only a remote backend knows the answer, the call raises `Unanswered`: the
session or the request waits, alone, while the backend is asked, and then makes the call again.
"""

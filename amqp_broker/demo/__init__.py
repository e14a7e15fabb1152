"""The confirm demo: publishers of four strategies meet a plan of faults, and the result is checked.

Everything but `strategy_run.py`, which has the event loop, pika and the broker, and `served_demo.py`, which runs it
for the web page, consists of pure values. The command line is in `cli/own/demo.py`. Read `strategies.py` and
`publisher.py` first.

A seed determines the fault plan. The run asks a publisher what to publish next, reports the answers, and adds each
fault event or restarts the broker when its message is next. The proof compares the ledger of attempts with the
queue's messages.
"""

"""The web page: its files in `static/`, and how they are served.

The page gets its data from the HTTP API (`api/`) and its live updates from `live/`. Read `static/js/app.js` first.
"""

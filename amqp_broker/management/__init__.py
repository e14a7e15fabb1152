"""RabbitMQ's management: the HTTP API, the web page, the metrics.

`application.py` puts the parts together, `api_sections.py` lists the endpoints of `api/`, `node/node.py` is the seam to
the process around the broker. Sockets and listeners are in `server/management.py`. Read `http/endpoint.py` first, then
a module of `api/`.

**A request.** An endpoint declares its tag, body and answer once; routing, validation, OpenAPI and the docs page
follow from it. A handler is a plain function from a `Request` to a value or an `Answer`, tested without HTTP. The
application authenticates, collects counters, calls the handler, flushes the sessions, waits until changes are
committed, and maps exceptions to a status and a JSON reason. Handlers ask the `Node` about the process. A timer per
connection ends slow and idle ones. The control socket serves the same application without a login: the file's
permissions admit the broker's user only.

**The page** consists of ES modules without a build step, under a policy that admits no other script. It uses the
HTTP API as any client does; `dom.js` alone creates elements, from text and never from markup. Updates come as
server-sent events. Observers exist only while a page listens, and a page that falls behind learns how many updates
it missed.
"""

"""Write docs/http-api.md from the declarations of the endpoints: `python -m docs.http_api_page`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from amqp_broker.management.api_sections import SECTIONS
from amqp_broker.management.http.auth import PUBLIC
from amqp_broker.management.http.endpoint import Endpoint
from amqp_broker.management.http.listing import ListQuery
from amqp_broker.management.http.shapes import fields_of
from amqp_broker.management.metrics import exposition

PAGE: Final = Path(__file__).with_name("http-api.md")

INTRODUCTION: Final = """\
# HTTP API

This page is generated: `python -m docs.http_api_page`. Paths below `/api/` are RabbitMQ's, with its field names, status
codes and errors; paths below `/_broker/` are the broker's own. A running broker describes all of them as an OpenAPI
document.

```console
$ amqp-broker serve
…
$ curl -s -u guest:guest -X PUT http://localhost:15672/api/queues/%2F/orders -d '{"durable": true}'
$ curl -s -u guest:guest 'http://localhost:15672/api/queues/%2F?columns=name,durable,messages'
[{"durable":true,"name":"orders","messages":0}]
$ curl -s -u guest:guest http://localhost:15672/api/queues/%2F/nothing
{"error":"Object Not Found","reason":"Not Found"}
$ curl -s http://localhost:15672/_broker/openapi.json
{"openapi":"3.1.0",…}
```

## Common rules

- **Logins** use HTTP's basic authentication. The user needs a tag: `management` shows the user's own objects,
  `policymaker` also sets policies and parameters, `monitoring` shows everything, `administrator` includes all of them.
  Endpoints without a tag are public. A change also needs a permission in the vhost, as over AMQP.
- **Names in a path** are percent-encoded: the vhost `/` is `%2F`. The default exchange is called `amq.default`.
- **Lists** take `page` (from 1), `page_size` (500 at most), `name`, `use_regex=true`, `sort` (`sort=messages`) and
  `sort_reverse=true`; with `page` the answer has `items` and the counts around them. `columns=name,messages` shortens
  any answer. `disable_stats=true` leaves out counters.
- **Numbers** are current. Rates are those of the last seconds; `msg_rates_age`, `msg_rates_incr`, `lengths_age`,
  `lengths_incr` and similar parameters add samples.
- **Browsers** are answered only for the broker's own [page](web-page.md#pages-of-other-sites).
- **A body** is JSON. In the tables its required parts are **bold**, and parameters of the query begin with `?`.
- **Answers** are 200 with JSON, 201 (created), 202 (begun) or 204 (changed, deleted or already so). Errors are
  `{"error": …, "reason": …}`: 400 for a wrong request, 401 for a missing login, tag or permission, 404 for a missing
  object, 405 for a method that the path does not have, 413 for a body that is too large.
- **Over TLS** (`--tls`, `management.ssl.*`) the same API is served on port 15671. The command line uses a socket that
  belongs to the broker's user and needs no login.
"""

METRICS: Final = """
## Metrics

On the port of the metrics, 15692; see [metrics.md](metrics.md).

"""

HEAD: Final = "| endpoint | tag | effect | body or query |\n|---|---|---|---|\n"


def page() -> str:
    """Return the text of the page."""
    text = INTRODUCTION
    for section, endpoints in SECTIONS.items():
        text += f"\n## {section}\n\n{HEAD}{''.join(_rows(endpoints))}"
    return f"{text}{METRICS}{HEAD}{''.join(_rows(exposition.endpoints(is_per_object=False)))}"


def _rows(endpoints: Iterable[Endpoint]) -> Iterator[str]:
    """Yield a row for each handler, with all the paths that it serves."""
    for _, group in groupby(endpoints, lambda endpoint: (endpoint.handler, endpoint.tag)):
        declared = list(group)
        first = declared[0]
        places = "<br>".join(f"`{endpoint}`" for endpoint in declared)
        tag = "" if first.tag == PUBLIC else first.tag
        yield f"| {places} | {tag} | {first.summary} | {', '.join(_parts(first))} |\n"


def _parts(endpoint: Endpoint) -> Iterator[str]:
    if endpoint.body is not None:
        for field in fields_of(endpoint.body):
            yield f"**`{field.name}`**" if field.is_required else f"`{field.name}`"
    if endpoint.query is ListQuery:
        yield "a list"
    elif endpoint.query is not None:
        yield from (f"`?{field.name}`" for field in fields_of(endpoint.query))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

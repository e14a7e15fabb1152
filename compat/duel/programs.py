"""Random programs. The weights of `choices.py` make the interesting happen: few names, small limits, full queues."""

from __future__ import annotations

from hypothesis import strategies as st
from pamqp.commands import Exchange, Queue

from amqp_broker.conformance.duel.steps import At, Call, Http, Name, Program, Step
from compat.duel import choices, makers
from compat.duel.makers import Draw
from compat.duel.themes import THEMES, Theme


@st.composite
def programs(draw: Draw, themes: st.SearchStrategy[Theme] = THEMES) -> Program:
    """Draw a program, which begins with queues and consumers."""
    theme = draw(themes)
    queues = draw(theme.queues)
    begun = [_declared(draw, At(), queue, theme) for queue in queues]
    if theme.is_bound:
        begun += _bound(draw, At(), queues)
    for at in draw(theme.consumers):
        begun += [makers.qos(draw, at), makers.consume(draw, at)]
    # A broker whose HTTP API is not asked can be compared by those without requests.
    is_without_http = not theme.needs_http and draw(choices.OFTEN)
    drawn = draw(theme.steps_without_http if is_without_http else theme.steps)
    steps = [*begun, *(step for step in drawn if step is not None)]
    if any(isinstance(step, Http) and "max-length" in str(step.body) for step in steps):
        return tuple(_without_delayed_retries(step) for step in steps)
    return tuple(steps)


def _without_delayed_retries(step: Step) -> Step:
    """Leave delayed retries out of a declaration."""
    if isinstance(step, Call) and choices.DELAYED_RETRY in step.fields.get("arguments", {}):
        arguments = {
            name: value for name, value in step.fields["arguments"].items() if not name.startswith("x-delayed-retry")
        }
        return Call(step.at, step.method, {**step.fields, "arguments": arguments})
    return step


def _declared(draw: Draw, at: At, queue: str, theme: Theme) -> Step:
    """Return the declaration of a queue at the beginning."""
    is_first = queue == choices.Q0
    kind = theme.kind if is_first and theme.kind else draw(choices.KINDS)
    arguments = draw(theme.arguments_of(queue))
    flags = theme.flags if is_first else choices.QUEUE_FLAGS
    return makers.declaration(draw, at, queue, kind, choices.permitted(arguments, kind), flags)


def _bound(draw: Draw, at: At, queues: tuple[Name, ...]) -> list[Step]:
    """Return the declarations of both exchanges, each with a binding of a queue."""
    kinds, flags = draw(choices.BOUND_KINDS), draw(choices.EXCHANGE_FLAGS)
    exchanges = [
        Call(at, Exchange.Declare, {"exchange": exchange, "exchange_type": kind, **flags})
        for exchange, kind in zip((choices.X1, choices.X0), kinds, strict=True)
    ]
    ends = zip((choices.X1, choices.X0), (queues[-1], queues[0]), strict=True)
    return [
        *exchanges,
        *(Call(at, Queue.Bind, {"exchange": x, "queue": q, "routing_key": draw(choices.KEYS)}) for x, q in ends),
    ]

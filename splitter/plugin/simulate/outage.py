"""Traces that nobody measured: all spot nodes go at once, again and again.

The command line reads `every=2h,last=10m,nodes=8,days=7` with `parse_outage`. It is the question most
people have ("what if spot is gone for ten minutes every two hours?"), and harder than most real traces,
because nothing survives.
"""

from splitter.core.labels_annotations.words import nearest, parse_duration
from splitter.plugin.simulate.trace import CHANGES_MAX, LENGTH_MAX_S, NODES_MAX, Change, Trace

DAY_S = 86_400
_DEFAULTS = {"every": "", "last": "", "nodes": "", "days": "7"}
_EXAMPLE = "every=2h,last=10m,nodes=8,days=7"


def outage_trace(every_s: int, last_s: int, nodes: int, days: int) -> Trace:
    """Return a trace in which all nodes are gone for the last `last_s` of each `every_s` seconds.

    >>> [(change.at_s, change.node, change.added) for change in outage_trace(7200, 600, 1, 1).changes[:3]]
    [(0.0, 'node-1', True), (6600.0, 'node-1', False), (7200.0, 'node-1', True)]
    """
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    changes = []
    end_s = days * DAY_S
    for begin_s in range(0, end_s, every_s):
        changes += [Change(float(begin_s), name, added=True) for name in names]
        if (gone_s := begin_s + every_s - last_s) < end_s:
            changes += [Change(float(gone_s), name, added=False) for name in names]
    return Trace("outage", tuple(changes), float(end_s))


def parse_outage(text: str) -> Trace:
    """Read `every=2h,last=10m,nodes=8,days=7`; `days` may be left out, and is 7 then.

    Raises ValueError with the field that is wrong and what to write.
    """
    fields = dict(_DEFAULTS)
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or key not in fields:
            near = nearest(key, tuple(fields))
            advice = f"did you mean {near}?" if near else f"write for example {_EXAMPLE}"
            raise ValueError(f"outage: {part!r} is no field; {advice}")
        fields[key] = value
    every_s, last_s = (_seconds(key, fields[key]) for key in ("every", "last"))
    nodes, days = _whole("nodes", fields["nodes"], NODES_MAX), _whole("days", fields["days"], 3650)
    if last_s >= every_s:
        raise ValueError(f"outage: last={fields['last']} is not shorter than every={fields['every']}")
    if 2 * nodes * days * DAY_S / every_s > CHANGES_MAX:
        raise ValueError(f"outage: more than {CHANGES_MAX} changes of nodes; take fewer days or nodes")
    return outage_trace(every_s, last_s, nodes, days)


def _seconds(key: str, text: str) -> int:
    seconds = parse_duration(text)
    if not seconds or seconds > LENGTH_MAX_S:
        raise ValueError(f"outage: {key} is {text!r}; it must be a duration such as 90s, 10m or 2h")
    return seconds


def _whole(key: str, text: str, highest: int) -> int:
    number = int(text) if text.isdecimal() and text.isascii() and len(text) <= len(str(highest)) else 0
    if not 1 <= number <= highest:
        raise ValueError(f"outage: {key} is {text!r}; it must be a whole number 1..{highest}")
    return number

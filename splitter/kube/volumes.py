"""Finds where the volumes of a workload can be attached, and foreign claims of twins.

`related_objects` asks, before a take-over and now and then afterwards. A claim that is not bound yet, a
volume without node affinity, and a pool without any node (an autoscaler may buy one anywhere) keep nobody. It
writes nothing.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence

from splitter.core import labels_annotations as keys
from splitter.core.model import Mode, SourceView
from splitter.core.names import is_name
from splitter.core.nodes.facts import NodeState
from splitter.core.nodes.fit import NodeTerm
from splitter.core.placeable import Reach
from splitter.core.replica import Pool
from splitter.kube.listed import Reader
from splitter.kube.parse.fields import Raw
from splitter.kube.parse.pods import expressions
from splitter.kube.paths import VOLUMES, claims

_AT_ONCE = 8
# Of what the volumes of one pod ask for together: a driver may name each zone in a term of its own, and the
# terms of each volume are combined with those of each other one.
_MOST_TERMS = 100

_Known = dict[str, tuple[bool, bool]]
"""By what volumes ask of nodes: whether an on-demand node has it, and whether a spot node."""


async def reach_of(client: Reader, source: SourceView, nodes: Sequence[NodeState]) -> Mapping[int, Reach]:
    """Return where each pod can go that has volumes bound to nodes. Raises ApiError without an answer."""
    stateful = source.stateful
    if stateful is None or not stateful.claim_templates:
        return {}
    limit = asyncio.Semaphore(_AT_ONCE)

    async def look(ordinal: int) -> list[Raw]:
        async with limit:
            volumes = [
                await _volume(client, source, f"{template}-{source.key.name}-{ordinal}")
                for template in stateful.claim_templates
            ]
        return [volume for volume in volumes if volume is not None]

    ordinals = range(stateful.first_ordinal, stateful.first_ordinal + source.replicas)
    attached, known = await asyncio.gather(*map(look, ordinals)), _Known()
    by_ordinal = {one: _reach(volumes, nodes, known) for one, volumes in zip(ordinals, attached, strict=True)}
    return {ordinal: reach for ordinal, reach in by_ordinal.items() if reach != Reach()}


async def shared_reach(client: Reader, source: SourceView, nodes: Sequence[NodeState]) -> Reach:
    """Return where the volumes can be attached that all replicas mount. Raises ApiError without an answer."""
    volumes = [await _volume(client, source, claim) for claim in source.claims]
    return _reach([volume for volume in volumes if volume is not None], nodes, {})


async def taken_claims(
    client: Reader, source: SourceView, annotations: Mapping[str, str], *, are_twins: bool = False
) -> Mapping[Pool, tuple[int, str]]:
    """Return, of each twin that would take a claim of somebody else's, its replicas below that and its name.

    Only where twins may have volumes (`annotations` are the source's and its namespace's), or are there,
    whatever is annotated by now: they are deleted with a twin's pod, whoever has made them. The StatefulSet
    controller gives the claims that it makes the labels of the selector, and so the pool's. Raises ApiError
    without an answer.
    """
    stateful = source.stateful
    asked = (
        annotations.get(keys.ANNOTATION_MODE) == Mode.TWINS
        and annotations.get(keys.ANNOTATION_VOLUMES) == "disposable"
    )
    if stateful is None or not (asked or are_twins):
        return {}
    limit, templates = asyncio.Semaphore(_AT_ONCE), stateful.claim_templates

    async def look(name: str) -> str:
        async with limit:
            raw = await client.find(claims(source.key.namespace).of(name)) if is_name(name) else None
        foreign = raw is not None and keys.LABEL_POOL not in raw["metadata"].get("labels", {})
        return name if foreign else ""

    taken = {}
    for pool in Pool:
        first = stateful.first_ordinal + (keys.SPOT_ORDINALS if pool is Pool.SPOT else 0)
        twin = keys.twin_name(source.key.name, pool)
        members = [[f"{one}-{twin}-{first + place}" for one in templates] for place in range(source.replicas)]
        foreign = await asyncio.gather(*(look(name) for names in members for name in names))
        lowest = next((number for number, name in enumerate(foreign) if name), None)
        if lowest is not None:
            taken[pool] = lowest // len(templates), foreign[lowest]
    return taken


async def _volume(client: Reader, source: SourceView, claim: str) -> Raw | None:
    """Return the PersistentVolume that a claim is bound to; None of what no claim and no volume is called."""
    if not is_name(claim):
        return None
    raw = await client.find(claims(source.key.namespace).of(claim))
    name = (raw or {}).get("spec", {}).get("volumeName")
    return await client.find(VOLUMES.of(name)) if is_name(name) else None


def _reach(volumes: Sequence[Raw], nodes: Sequence[NodeState], known: _Known) -> Reach:
    """Return where a pod with these volumes can go; all of them have to be attachable.

    What is `known` is not looked for again: volumes in one zone ask for the same.
    """
    asked: list[Sequence[Raw]] = []
    all_terms: list[Raw] = []
    bound = []
    for volume in volumes:
        terms = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get(
            "nodeSelectorTerms"
        ) or []
        if not terms:
            continue
        if terms not in asked:
            asked.append(terms)
        all_terms = _both(all_terms, terms)
        bound.append(volume["metadata"]["name"])
    if not bound:
        return Reach()
    if (key := json.dumps(asked)) not in known:
        fits = _fitting(asked, nodes)
        known[key] = any(not node.is_spot for node in fits), any(node.is_spot for node in fits)
    places = {spot: any(node.is_spot is spot for node in nodes) for spot in (False, True)}
    reached = known[key]
    on_demand = reached[False] or not places[False]
    spot = reached[True] or not places[True]
    lacking = [pool for pool, there in (("on-demand", on_demand), ("spot", spot)) if not there]
    why = ""
    if lacking:
        where = _where(all_terms)
        why = (
            f"volume {', '.join(bound)} can be attached {where}, where there is no"
            f" {' and no '.join(lacking)} node"
        )
    return Reach(on_demand, spot, why, json.dumps(all_terms, sort_keys=True))


def _fitting(asked: Sequence[Sequence[Raw]], nodes: Sequence[NodeState]) -> Sequence[NodeState]:
    """Return the nodes that match a term of each list."""
    for terms in asked:
        parsed = [
            NodeTerm(expressions(raw.get("matchExpressions")), expressions(raw.get("matchFields")))
            for raw in terms
        ]
        nodes = [node for node in nodes if any(term.matches(node) for term in parsed)]
    return nodes


def _both(ours: list[Raw], others: Sequence[Raw]) -> list[Raw]:
    """Return terms that match what both lists match: lists are ORed, what is in a term is ANDed.

    Where these would be too many, what ours match: a placeholder may then stand where a volume is not.
    """
    if not ours:
        return list(others)
    if ours == list(others) or len(ours) * len(others) > _MOST_TERMS:
        return ours
    return [
        {
            key: [*(one.get(key) or ()), *(other.get(key) or ())]
            for key in ("matchExpressions", "matchFields")
            if one.get(key) or other.get(key)
        }
        for one in ours
        for other in others
    ]


def _where(terms: Sequence[Raw]) -> str:
    """Say where, by zones where they are all that is asked for."""
    asked = [expression for term in terms for expression in term.get("matchExpressions") or ()]
    zones = {zone for one in asked if one["key"].endswith("/zone") for zone in one.get("values") or ()}
    others = {one["key"] for one in asked if not one["key"].endswith("/zone")}
    if zones and not others:
        return f"in zone {', '.join(sorted(zones))} only"
    rules = sorted(f"{one['key']} {one['operator']} {', '.join(one.get('values') or ())}" for one in asked)
    return f"on nodes with {'; '.join(dict.fromkeys(rules)) or 'certain names'} only"

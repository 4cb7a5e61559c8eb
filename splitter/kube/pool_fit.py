"""Holds a workload's twins against the nodes of both pools, and remembers the answer for a while.

The reconciler asks when the twins are rendered, `splitter plan` and `splitter suggest` as well. Where nothing
is rendered (placement, `suggest`) the template is taken with what splitter adds to it. Nothing is decided.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from splitter.core.causes import of_nodes
from splitter.core.desired.manifest import Manifest, mapping_at
from splitter.core.desired.scheduling import NodePresets, ReservationRules
from splitter.core.limits import too_large
from splitter.core.model import Observation, Rendered, SourceView, seconds_between
from splitter.core.names import Key
from splitter.core.nodes import pools
from splitter.core.nodes.fit import NodeTerm
from splitter.core.nodes.pools import Asked, Barrier, PoolFit
from splitter.core.placement.reservations import placeholder_manifest
from splitter.core.replica import Pool
from splitter.kube.cache import Cache
from splitter.kube.parse.fields import UNREADABLE, Raw, texts
from splitter.kube.parse.pods import pod_request, spread_constraints

# Nodes come and go; an older answer is asked for again. In an emergency any answer does.
_LASTS_S = 10.0


@dataclass(frozen=True, slots=True)
class _Answer:
    at: datetime
    asked: object
    fit: PoolFit


class PoolFits:
    """Answers for each workload whether each pool can take its replicas."""

    def __init__(self, cache: Cache, rules: ReservationRules | None) -> None:
        self._cache = cache
        self._rules = rules
        self._answers: dict[Key, _Answer] = {}

    def forget(self, key: Key) -> None:
        """Forget a workload that is gone."""
        self._answers.pop(key, None)

    def of(self, observed: Observation, rendered: Mapping[Pool, Rendered] | None) -> PoolFit | None:
        """Return what keeps its replicas out of a pool; None: not known.

        `rendered` are its twins; None if there are none, or they are not rendered.
        """
        source, rules = observed.source, self._rules
        if source is None or rules is None or too_large(source):
            return None
        known = self._answers.get(observed.key)
        hashes = tuple(one.hash for one in rendered.values()) if rendered is not None else None
        asked = (hashes or source.template_hash, source.replicas, observed.related.shared_reach)
        losing = any(twin.is_losing for twin in observed.twins)
        if known is not None and known.asked == asked:
            if losing or 0 <= seconds_between(known.at, observed.now) < _LASTS_S:
                return known.fit
        elif losing:
            return None
        if (fit := self._compared(source, rules, rendered, observed)) is not None:
            self._answers[observed.key] = _Answer(observed.now, asked, fit)
        return fit

    def _compared(
        self,
        source: SourceView,
        rules: ReservationRules,
        rendered: Mapping[Pool, Rendered] | None,
        observed: Observation,
    ) -> PoolFit | None:
        try:
            barriers = {pool: self._of_pool(source, rules, rendered, observed, pool) for pool in Pool}
        except UNREADABLE:  # nothing has looked at what a template set renders yet: the dry run says it
            return None
        return PoolFit(barriers[Pool.ON_DEMAND], barriers[Pool.SPOT], self._no_spot_node())

    def _of_pool(
        self,
        source: SourceView,
        rules: ReservationRules,
        rendered: Mapping[Pool, Rendered] | None,
        observed: Observation,
        pool: Pool,
    ) -> Barrier | None:
        template = _template(source, pool, rules, rendered)
        spec = mapping_at(template, "spec")
        asked = Asked(
            pod_request(dict(spec)),
            spread_constraints(dict(spec)),
            texts(mapping_at(mapping_at(template, "metadata"), "labels")),
            str(spec.get("nodeName") or ""),
            source.replicas,
        )
        return self._barrier(asked, pool, rules.nodes) or _by_volume(observed, pool)

    def _barrier(self, asked: Asked, pool: Pool, presets: NodePresets) -> Barrier | None:
        spot = pool is Pool.SPOT
        marks = _terms(presets.spot_marks if spot else presets.on_demand_marks)
        # One node of each kind mostly tells that all is well. If not, all of them are asked.
        samples = [record.state for record in self._cache.nodes.samples("kind")]
        barrier = pools.compare(asked, marks, samples, spot=spot)
        if barrier is None and of_nodes(asked.pod, samples, spot=spot) is None:
            return None
        if barrier is not None and barrier.certain:
            return barrier
        nodes = [record.state for record in self._cache.nodes.values()]
        barrier = pools.compare(asked, marks, nodes, spot=spot)
        if barrier is not None:
            return barrier
        trouble = of_nodes(asked.pod, nodes, spot=spot)
        return Barrier(trouble.detail) if trouble is not None else None

    def _no_spot_node(self) -> str:
        """Return what looks like spot if no node is recognised as spot; empty if one is."""
        samples = [record.state for record in self._cache.nodes.samples("kind")]
        if not samples or any(node.is_spot for node in samples):
            return ""
        return pools.looks_like_spot(samples) or pools.NOTHING_LIKE_SPOT


def _template(
    source: SourceView, pool: Pool, rules: ReservationRules, rendered: Mapping[Pool, Rendered] | None
) -> Manifest:
    """Return the pod template of a twin. Raises ValueError where none can be made."""
    manifest = json.loads(rendered[pool].manifest_json if rendered is not None else source.manifest_json)
    template = mapping_at(mapping_at(manifest, "spec"), "template")
    if rendered is not None:
        return template
    spec = {**mapping_at(template, "spec"), **placeholder_manifest(manifest, pool, rules)}
    return {**template, "spec": spec}


def _by_volume(observed: Observation, pool: Pool) -> Barrier | None:
    """Return what keeps the volumes that all replicas mount out of a pool."""
    reach = observed.related.shared_reach
    reached = reach.spot if pool is Pool.SPOT else reach.on_demand
    return None if reached else Barrier(reach.why)


def _terms(marks: tuple[Manifest, ...]) -> tuple[NodeTerm, ...]:
    required: Raw = {"nodeSelectorTerms": list(marks)}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod_request({"affinity": affinity}).affinity if marks else ()

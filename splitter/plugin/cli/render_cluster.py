"""`splitter render deploy/web`: renders the twins of a workload in a cluster, or shows what would change.

`render` calls it when a workload is named instead of a file. It renders as the controller would, with the
cluster's template sets and the policy in force, and within the same limits, for others wrote those sets; and
lets the API server say what would become of it, with the rights of who asks and nothing written. One with
`--templates` shows what a set would do before anybody uses it.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from splitter.core.division import base_replicas
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations import ANNOTATION_TEMPLATE
from splitter.core.labels_annotations.policy import Policy
from splitter.core.mode import mode_of
from splitter.core.model import Mode, Note, Observation, Rendered
from splitter.core.planner import policy_in_force
from splitter.core.replica import Pool
from splitter.kube.client import Client, Json
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.dialect import written
from splitter.plugin.cli.target import Target
from splitter.plugin.cli.template_sets import check, read_templates
from splitter.plugin.kube.comparison import Comparison, compare
from splitter.plugin.preview import observed_now
from splitter.reconciler.rendering import Rendering
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings


async def twins_of(
    target: Target,
    cluster: Cluster,
    templates: Path | None,
    over: dict[str, str],
) -> tuple[Mapping[Pool, Rendered], Mapping[Pool, int]]:
    """Return both twins of a workload as they would be rendered now, and how the replicas are divided.

    Raises SplitterError or ValueError with what is wrong, ApiError when the cluster cannot be read.
    """
    async with cluster.connected() as (client, settings):
        observed, policy, rendered = await _rendered(client, settings, target, templates, over)
    replicas = observed.source.replicas if observed.source else 0
    on_demand = base_replicas(replicas, policy)
    return rendered, {Pool.ON_DEMAND: on_demand, Pool.SPOT: replicas - on_demand}


async def differences(
    target: Target,
    cluster: Cluster,
    templates: Path | None,
    over: dict[str, str],
) -> list[Comparison]:
    """Return both twins of a workload as they are and as they would be. Raises as `twins_of`."""
    async with cluster.connected() as (client, settings):
        observed, _, rendered = await _rendered(client, settings, target, templates, over)
        return await compare(client, observed, rendered)


async def _rendered(
    client: Client, settings: Settings, target: Target, templates: Path | None, over: dict[str, str]
) -> tuple[Observation, Policy, Mapping[Pool, Rendered]]:
    from splitter.assembly import cache_of, renderer_of, rules_of
    from splitter.kube.asks import enqueue_nothing

    settings, brought = read_templates(templates, settings)
    cache = cache_of(settings, enqueue_nothing)
    key = target.key
    observed = await observed_now(client, cache, key)
    if observed.source is None:
        raise ValueError(f"{target.words} is not there")
    source = replace(observed.source, annotations={**observed.source.annotations, **over})
    observed = replace(observed, source=source)
    known = {**cache.template_sets.by_name, **brought}
    with closing(BoundedRenderer(renderer_of(settings, known))) as renderer:
        await check(renderer, brought)
        in_force = policy_in_force(observed, rules_of(settings).defaults)
        if not in_force.valid:
            raise ValueError(" ".join(problem.message for problem in in_force.problems))
        name = in_force.policy.template_set
        if brought and name not in brought:
            raise ValueError(
                f"{key} uses the template set {name}, which is not in {templates};"
                f" add --annotation template={next(iter(brought))} ({ANNOTATION_TEMPLATE})"
            )
        placed = observed.split is not None and observed.split.ordinals is not None
        if placed or (not observed.twins and mode_of(key.kind, in_force.policy.mode) is Mode.PLACEMENT):
            raise ValueError(
                f"{target.words} is split by placement, which makes no twins: `splitter plan {target.short}"
                f" -n {key.namespace}` says where each pod stands and is wanted. To render the twins that it"
                " would have as such, give its manifest with -f, and --annotation mode=twins"
            )
        if renderer.template_set(name) is None and cache.template_sets.unread:
            raise ValueError(f"the template set {name} cannot be read: {cache.template_sets.unread}")
        twins = await Rendering(renderer).twins_of(observed, in_force.policy)
    if isinstance(twins, Note):
        raise SplitterError(twins.reason, twins.message)
    return observed, in_force.policy, twins


def describe_comparisons(comparisons: Sequence[Comparison]) -> str:
    """Return what would change as a unified diff, empty when nothing would.

    >>> print(describe_comparisons([Comparison("web-spot", {"spec": {"a": 1}}, {"spec": {"a": 2}})]))
    --- live/web-spot
    +++ rendered/web-spot
    @@ -1,2 +1,2 @@
     spec:
    -  a: 1
    +  a: 2
    """
    return "\n".join(line for one in comparisons for line in _diff(one))


def _diff(one: Comparison) -> Iterator[str]:
    return difflib.unified_diff(
        _lines(one.live), _lines(one.would_be), f"live/{one.name}", f"rendered/{one.name}", lineterm=""
    )


def _lines(manifest: Json) -> list[str]:
    if not manifest:
        return []
    return written(manifest, sort_keys=True).splitlines()

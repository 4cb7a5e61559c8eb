"""Builds the parts of the controller, and of a preview, from the settings.

`operator` builds the running controller from these, the plugin the one-off look of `plan`. Nothing here
starts, writes or decides.
"""

from collections import ChainMap
from functools import partial
from typing import TYPE_CHECKING

from splitter.core.desired.scheduling import NodePresets, ReservationRules
from splitter.core.labels_annotations.policy import Policy
from splitter.core.nodes import capacity
from splitter.core.nodes.signals import assess
from splitter.core.plan import Rules
from splitter.core.rebalance import Tuning
from splitter.core.relief.model import Tuning as ReliefTuning
from splitter.core.template_sets import TemplateSet
from splitter.kube.asks import Assess, Enqueue
from splitter.kube.cache import Cache
from splitter.render import Renderer, read_template_sets
from splitter.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from splitter.core.names import Key
    from splitter.kube.listed import Reader
    from splitter.relief.watch import HotNodesWatch

    WatchOf = Callable[[Rules, Reader, Cache, Callable[[Key], None]], HotNodesWatch]

_NOT_OF_THE_CORE = {"node_coalesce_s", "relief_interval_s", "relief_cycle_s"}
# metrics-server measures every 15 s to a minute.
_STALE_S = 180.0


def assess_of(settings: Settings) -> Assess:
    """Return what says of a node what it is, as the settings classify nodes."""
    return partial(
        assess, presets=capacity.presets_with(settings.spot_selectors, settings.on_demand_selectors)
    )


def cache_of(settings: Settings, enqueue: Enqueue) -> Cache:
    """Return an empty cache that classifies nodes as the settings say."""
    return Cache(
        assess_of(settings),
        enqueue,
        settings.autoscaler_status,
        settings.own_namespace,
        hear_node_events=settings.hear_node_events,
    )


def renderer_of(settings: Settings, brought: dict[str, TemplateSet] | None = None) -> Renderer:
    """Return a renderer of the configured template sets and providers.

    `brought` are the sets of ConfigMaps, as they are at each rendering. A name that travels with splitter
    is taken (docs/adr/0017).
    """
    template_sets = ChainMap(
        read_template_sets(settings.templates_dir), brought if brought is not None else {}
    )
    return Renderer(template_sets, node_presets_of(settings))


def rules_of(settings: Settings) -> Rules:
    """Return what the settings say to the planner."""
    tuning = settings.tuning
    return Rules(
        defaults=Policy(grace_s=settings.grace_s, soak_s=settings.soak_s, relief=settings.relief or None),
        tuning=Tuning(
            restarts_per_hour=settings.member_restarts_per_hour, **tuning.model_dump(exclude=_NOT_OF_THE_CORE)
        ),
        excluded_namespaces=(*settings.excluded_namespaces, settings.own_namespace),
        delete_pods_of_vanished_nodes=settings.delete_pods_of_vanished_nodes,
        max_concurrent_moves=settings.max_concurrent_moves,
        look_again_s=settings.look_again_s,
        available_condition=settings.available_condition,
        relief=ReliefTuning(
            stale_s=max(_STALE_S, 3 * tuning.relief_interval_s),
            cycle_s=tuning.relief_cycle_s,
            rest_s=3 * tuning.relief_cycle_s,
            received_s=tuning.relief_cycle_s,
        ),
        reservations=ReservationRules(
            nodes=node_presets_of(settings),
            image=settings.placeholder_image,
            pull_secrets=settings.placeholder_pull_secrets,
        ),
    )


def relief_of(settings: Settings) -> "WatchOf | None":
    """Return what makes a term's watch of hot nodes; None if the settings name no source of real use.

    Nothing else loads `splitter.relief`. Loading takes 25 ms: ask before a term begins (docs/adr/0111).
    """
    if settings.relief_source == "off":
        return None
    from splitter.relief.watch import watch_of  # noqa: PLC0415 - only if asked for

    return partial(watch_of, settings)


def node_presets_of(settings: Settings) -> NodePresets:
    """Return what enters affinity and tolerations: the named providers, the user's own always."""
    names = settings.provider_presets
    presets = capacity.presets_with(settings.spot_selectors, settings.on_demand_selectors)
    chosen = tuple(preset for preset in presets if not names or preset.name in names or preset.overrides)
    return NodePresets(
        spot_terms=tuple(capacity.spot_node_selector_terms(chosen)),
        on_demand_terms=tuple(capacity.on_demand_node_selector_terms(chosen)),
        spot_tolerations=tuple(capacity.spot_tolerations(chosen)),
        # What a node is is read off all of the table.
        spot_marks=tuple(capacity.spot_mark_terms(presets)),
        on_demand_marks=tuple(capacity.on_demand_mark_terms(presets)),
    )

"""Renders what the page shows, whole and in parts: a part is an element with an id that is sent anew alone.

Jinja2 escapes everything; what comes as `Markup` was made by `timeline` and by the templates themselves.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from splitter.core.labels_annotations.reported import policy_in_words
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key, is_name
from splitter.core.reasons import State
from splitter.kube.records import SplitRecord
from splitter.plugin.core.savings import ASSUMED_SPOT_PRICE
from splitter.plugin.dashboard import fleet, timeline, workload
from splitter.plugin.dashboard.clusters import MEMBERS, Clusters
from splitter.plugin.dashboard.history import KEPT
from splitter.plugin.dashboard.model import Model
from splitter.plugin.dashboard.workload_status import asked

FILES = Path(__file__).resolve().parent
# What a state is marked with beside its word, and how it is coloured.
_STATES = {
    State.STEADY: ("●", "good"),
    State.MOVING: ("↔", "busy"),
    State.ROLLING: ("↻", "busy"),
    State.TAKING_OVER: ("→", "busy"),
    State.GIVING_BACK: ("←", "busy"),
    State.HELD: ("!", "warn"),
    State.REFUSED: ("×", "bad"),  # noqa: RUF001 (the sign that is meant)
    State.CONFLICT: ("×", "bad"),  # noqa: RUF001 (the same)
}
_KINDS = {"deployment": DEPLOYMENT, "statefulset": STATEFUL_SET}
_LINES = 400
# A picture of many decisions takes longer: it lives so much longer, too.
_PICTURE_LIVES, _FOR_EACH = timedelta(seconds=2), timedelta(milliseconds=10)
_ROW_LIVES_S = 300
Parts = dict[str, Markup]


@dataclass(frozen=True, slots=True)
class Tellers:
    """The output of the verbs of the same names, in lines of text."""

    explain: Callable[[SplitRecord], list[str]]
    plan: Callable[[Key], Awaitable[list[str]]]


class Views:
    """Renders the model."""

    def __init__(self, model: Model, tellers: Tellers, where: str, *, above: bool = False) -> None:
        """`where` is said in the heading: which cluster, which namespaces. `above`: others are shown, too."""
        self._model = model
        self._tellers = tellers
        self._pictured: tuple[datetime, Markup] | None = None
        self._rows: dict[Key, tuple[tuple[int, int], Markup]] = {}
        self._environment = environment(where, above=above)

    def page(self, name: str, **given: object) -> str:
        """Return a whole page."""
        change = self._model.last_change
        return self._environment.get_template(f"{name}.html").render(change=change, **given)

    def fleet_page(self) -> str:
        """Return the first view."""
        for gone in self._rows.keys() - self._model.statuses.keys():
            del self._rows[gone]
        return self.page(
            "fleet",
            base="",
            title="Fleet",
            rows=[self.row(key) for key in self._model.keys()],  # noqa: SIM118 (keys in order)
            sees_splits=self._model.view.sees("splits"),
            **self.fleet_parts(),
        )

    def fleet_parts(self, *, pictures: bool = True) -> dict[str, Any]:
        """Return the parts of the first view that are not rows; `pictures`: those that take time, too."""
        model = self._model
        parts = {
            "notices": self._part("notices", missing=model.view.missing),
            "figures": self._part("figures", it=fleet.figures(model)),
            "going": self._part("going", nodes=fleet.going(model), sees_nodes=model.view.sees("nodes")),
        }
        if pictures and self._is_old(self._pictured):
            self._pictured = model.now, self._timeline()
        if pictures and self._pictured is not None:
            parts["timeline"] = self._pictured[1]
        return parts

    def _is_old(self, made: tuple[datetime, Markup] | None) -> bool:
        """Whether a picture has to be drawn again: all browsers share one for a while."""
        lives = _PICTURE_LIVES + _FOR_EACH * len(self._model.statuses)
        return made is None or not timedelta() <= self._model.now - made[0] < lives

    def _timeline(self) -> Markup:
        model = self._model
        said = fleet.asked(model)
        first = min([model.opened, *(one.at for one in said[:1])])
        span = timeline.span_of(max(first, model.now - KEPT), model.now)
        recent_decisions = (one.decision for one in fleet.recent_decisions(model))
        return self._part(
            "fleet_timeline",
            drawn=timeline.fleet_picture(span, list(model.fleet), said, recent_decisions),
            latest=fleet.latest(model),
            opened=model.opened,
        )

    def row(self, key: Key) -> Markup:
        """Return the row of a workload; rendered once a change, and now and then for what it saves."""
        model = self._model
        state = model.changes.get(key, 0), int(model.now.timestamp() // _ROW_LIVES_S)
        known = self._rows.get(key)
        if known is None or known[0] != state:
            self._rows[key] = known = state, self._row(key)
        return known[1]

    def _row(self, key: Key) -> Markup:
        status = self._model.statuses[key]
        return self._part("row", key=key, it=status, saved=fleet.saved(status, self._model.now))

    def workload_page(self, key: Key) -> str:
        """Return the second view. Raises KeyError for a workload that is not shown."""
        return self.page("workload", base="../../../", title=str(key), key=key, **self.workload_parts(key))

    def missing_page(self, name: str) -> str:
        """Return what is shown in the place of a workload that is not split, or may not be seen."""
        return self.page("missing", base="../../../", title="Not here", called=name)

    def workload_parts(self, key: Key) -> Parts:
        """Return the parts of the second view. Raises KeyError for a workload that is not shown."""
        model = self._model
        status, split = model.statuses[key], workload.split_of(model, key)
        if split is None:
            raise KeyError(key)
        pools, left_out = workload.picture(model, split)
        seen, decisions = list(model.series[key]), status.decisions
        times = [one.at for one in decisions] + [one.at for one in seen]
        first = min(times, default=model.now)
        span = timeline.span_of(max(first, model.now - KEPT), model.now)
        return {
            "notices": self._part("notices", missing=model.view.missing),
            "head": self._part("head", key=key, it=status, saved=fleet.saved(status, model.now)),
            "nodes": self._part(
                "nodes", pools=pools, left_out=left_out, it=status, sees_pods=model.view.sees("pods")
            ),
            "timeline": self._part(
                "workload_timeline",
                drawn=timeline.workload_picture(span, seen, asked(status), decisions),
                decisions=list(enumerate(decisions, 1))[::-1],
                opened=model.opened,
            ),
            "policy": self._part("policy", policy=list(policy_in_words(status))),
            "explain": self._part("explain", lines=self._tellers.explain(split)[:_LINES]),
        }

    async def plan_part(self, key: Key) -> Markup:
        """Return what would be done now, as `splitter plan` prints it."""
        return self._part("plan", lines=(await self._tellers.plan(key))[:_LINES])

    def _part(self, name: str, **given: object) -> Markup:
        template = self._environment.get_template(f"parts/{name}.html")
        return Markup(template.render(given))  # noqa: S704 (what the template has escaped)


class ClustersViews:
    """Renders several clusters together."""

    def __init__(self, clusters: Clusters, where: str) -> None:
        """`where` is said in the heading: which clusters, which namespaces."""
        self.clusters = clusters
        self._environment = environment(where, above=False)
        self._rendered: tuple[object, Markup] | None = None

    def page(self) -> str:
        """Return the whole page."""
        template = self._environment.get_template("clusters.html")
        return template.render(base="", title="Clusters", change=0, **self.parts())

    def parts(self) -> Parts:
        """Return what changes in it; rendered once a change, for all browsers."""
        change = self.clusters.change
        if self._rendered is None or self._rendered[0] != change:
            template = self._environment.get_template("parts/clusters.html")
            it, members = self.clusters.together(), self.clusters.members
            text = template.render(it=it, members=members, path=MEMBERS)
            self._rendered = change, Markup(text)  # noqa: S704 (what the template has escaped)
        return {"clusters": self._rendered[1]}


def environment(where: str, *, above: bool) -> Environment:
    """Return what renders all templates."""
    made = Environment(
        loader=FileSystemLoader(FILES / "templates"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "where": where,
        "above": above,
        "spot_price": ASSUMED_SPOT_PRICE,
        "id_of": fleet.element_id,
        "path_of": path_of,
        "called": str,
        "state": lambda word: _STATES.get(word, ("·", "busy")),
        "signs": workload.SIGNS,
        "words": workload.WORDS,
        "sorts": [(timeline.WORDS[sort], timeline.key_picture(sort)) for sort in timeline.Sort],
        "sort_of": timeline.sort_of,
        "mark": timeline.key_picture,
    }
    made.filters |= {"percent": _percent, "clock": _clock, "day": _day, "breakable": _breakable}
    return made


def path_of(key: Key) -> str:
    """Return where a workload is shown, from the first view."""
    return f"workload/{key.namespace}/{key.kind.lower()}/{key.name}"


def key_at(text: str) -> Key | None:
    """Return a workload from `namespace/kind/name`; None for what none can be called."""
    namespace, _, rest = text.partition("/")
    kind, _, name = rest.partition("/")
    if kind not in _KINDS or not (is_name(namespace) and is_name(name)):
        return None
    return Key(_KINDS[kind], namespace, name)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _breakable(text: str) -> Markup:
    """Return a text whose lines may be broken behind a slash, as those of long labels."""
    return Markup("/<wbr>").join(text.split("/"))


def _clock(at: datetime | None) -> str:
    return f"{at:%H:%M:%S}" if at is not None else "-"


def _day(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at is not None else "-"


def sent(parts: Mapping[str, Markup]) -> dict[str, str]:
    """Return parts as they are sent."""
    return {name: str(markup) for name, markup in parts.items()}

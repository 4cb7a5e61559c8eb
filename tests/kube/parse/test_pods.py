"""How pods ask to be spread, as the scheduler reads it."""

from splitter.core.nodes.fit import MatchExpression, SpreadConstraint
from splitter.kube.parse.pods import spread_constraints


class TestSpreadConstraints:
    def test_are_read(self) -> None:
        """As the scheduler reads them: what is left out is what it takes then."""
        short = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        terms = [{"key": "app", "operator": "In", "values": ["web"]}, {"key": "canary", "operator": "Exists"}]
        whole = {
            "maxSkew": 2,
            "topologyKey": "host",
            "whenUnsatisfiable": "DoNotSchedule",
            "minDomains": 3,
            "matchLabelKeys": ["pod-template-hash"],
            "labelSelector": {"matchLabels": {"tier": "front"}, "matchExpressions": terms},
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        }
        nobody, all_of_it = spread_constraints({"topologySpreadConstraints": [short, whole]})
        assert nobody == SpreadConstraint("zone", 1, strict=False)
        assert all_of_it == SpreadConstraint(
            "host",
            2,
            strict=True,
            selector=(
                MatchExpression("tier", "In", ("front",)),
                MatchExpression("app", "In", ("web",)),
                MatchExpression("canary", "Exists"),
            ),
            label_keys=("pod-template-hash",),
            min_domains=3,
            honors_affinity=False,
            honors_taints=True,
        )
        assert spread_constraints({}) == ()

    def test_more_than_are_heeded(self) -> None:
        """Whoever may write a twin's template chooses how many there are, and how long: it is not spread."""
        selector = {"matchLabels": {"app": "web"}}
        one = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        many = [{**one, "topologyKey": f"key-{n}"} for n in range(5)]
        long = [{**one, "labelSelector": {"matchLabels": {f"app-{n}": "web" for n in range(1000)}}}]
        right = [{**one, "labelSelector": selector}]
        sizes = [
            len(spread_constraints({"topologySpreadConstraints": asked})) for asked in (many, long, right)
        ]
        assert sizes == [0, 0, 1]

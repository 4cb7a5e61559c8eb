"""Placeholders: what they ask for, and where."""

import json
from collections.abc import Mapping
from dataclasses import replace

from core.placement.placed_sets import MANIFEST, ON_DEMAND, RESERVATIONS, SPOT, TOLERATED
from splitter.core.placement.reservations import placeholder_manifest, reservation_hash
from splitter.core.replica import Pool


class TestPlaceholder:
    """What holds room."""

    def test_asks_for_what_the_member_asks_for(self) -> None:
        """Containers and sidecars, where the user's pods may be; it runs nothing of theirs."""
        spec = placeholder_manifest(MANIFEST, Pool.SPOT, RESERVATIONS)
        containers = spec["containers"]
        assert isinstance(containers, list)
        assert [one_["resources"] for one_ in containers] == [
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "2"}},
        ]
        assert {one_["image"] for one_ in containers} == {"pause:1"}
        assert all("env" not in one_ for one_ in containers)
        assert spec["nodeSelector"] == {"disk": "ssd"}
        assert spec["tolerations"] == [TOLERATED]
        assert (spec["priorityClassName"], spec["terminationGracePeriodSeconds"]) == (
            "splitter-placeholder",
            0,
        )
        assert terms(spec) == [SPOT]

    def test_asks_for_all_that_the_scheduler_counts(self) -> None:
        """Resources of the whole pod, devices, ports of the node; another size asks for other room."""
        spec = {
            "resources": {"requests": {"cpu": "8"}},
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            "containers": [
                {
                    "name": "db",
                    "ports": [{"name": "sql", "containerPort": 1, "hostPort": 5432}, {"containerPort": 2}],
                    "resources": {"claims": [{"name": "gpu"}]},
                }
            ],
        }
        source = {"spec": {"template": {"spec": spec}}}
        made = json.loads(json.dumps(placeholder_manifest(source, Pool.ON_DEMAND, RESERVATIONS)))
        assert (made["resources"], made["resourceClaims"]) == (spec["resources"], spec["resourceClaims"])
        assert made["containers"][0]["ports"] == [{"containerPort": 1, "hostPort": 5432}]
        assert made["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}
        larger = {**spec, "resources": {"requests": {"cpu": "16"}}}
        assert reservation_hash(source, RESERVATIONS) != reservation_hash(
            {"spec": {"template": {"spec": larger}}}, RESERVATIONS
        )

    def test_is_pulled_with_the_secrets_of_the_settings(self) -> None:
        """Without any the pod names none; with other ones it is made anew."""
        pulled = replace(RESERVATIONS, pull_secrets=("pull", "mirror"))
        spec = placeholder_manifest(MANIFEST, Pool.SPOT, pulled)
        assert spec["imagePullSecrets"] == [{"name": "pull"}, {"name": "mirror"}]
        assert "imagePullSecrets" not in placeholder_manifest(MANIFEST, Pool.SPOT, RESERVATIONS)
        assert reservation_hash(MANIFEST, pulled) != reservation_hash(MANIFEST, RESERVATIONS)

    def test_heeds_the_volumes_of_the_member(self) -> None:
        """Room in another zone is none."""
        zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
        spec = placeholder_manifest(MANIFEST, Pool.ON_DEMAND, RESERVATIONS, json.dumps([zone]))
        assert terms(spec) == [
            {"matchExpressions": [*ON_DEMAND["matchExpressions"], *zone["matchExpressions"]]}
        ]
        assert "tolerations" not in spec


def terms(spec: Mapping[str, object]) -> object:
    """Return the required node selector terms."""
    affinity = json.loads(json.dumps(spec["affinity"]))
    return affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

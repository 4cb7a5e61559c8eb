"""What of a twin counts as changed."""

import pytest

from splitter.core.desired.compare import pod_hash, rendered_hash, template_hash


class TestHashes:
    def test_rendered_hash_leaves_out(self) -> None:
        """Replicas, the numbers of the roll and the stored hash are written apart from the template."""
        twin = {
            "metadata": {"annotations": {"splitter.io/rendered-hash": "x", "note": "n"}},
            "spec": {"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 7}}},
        }
        bare = {"spec": {"strategy": {"type": "RollingUpdate"}}, "metadata": {"annotations": {"note": "n"}}}
        assert rendered_hash(twin) == rendered_hash(bare)
        assert rendered_hash(twin) != rendered_hash(bare | {"metadata": {}})

    def test_known_value(self) -> None:
        """The hash does not change between versions unseen: each change is a write to every twin."""
        assert rendered_hash({}) == "0b62bf431418a4d4"

    @pytest.mark.parametrize(
        ("one", "other", "equal"),
        [
            (
                {"metadata": {"labels": {"a": "1", "pod-template-hash": "x"}}},
                {"metadata": {"labels": {"a": "1"}}},
                True,
            ),
            ({"metadata": {"creationTimestamp": None}}, {"metadata": {}}, True),
            ({"spec": {"a": 1, "b": 2}}, {"spec": {"b": 2, "a": 1}}, True),
            ({"spec": {"a": [1, 2]}}, {"spec": {"a": [2, 1]}}, False),
            ({"metadata": {"annotations": {"a": "1"}}}, {"metadata": {}}, False),
            ({"spec": {"a": "1"}}, {"spec": {"a": 1}}, False),
        ],
    )
    def test_template_hash(self, one: dict[str, object], other: dict[str, object], equal: bool) -> None:
        """Two pod templates are one where the Deployment controller says so."""
        assert (template_hash(one) == template_hash(other)) is equal

    def test_a_finalizer_is_another_pod(self) -> None:
        """A pod without it is none of the twin's; a template without any hashes as ever."""
        plain: dict[str, object] = {"metadata": {"labels": {"app": "web"}}, "spec": {}}
        with_one = {"metadata": {"labels": {"app": "web"}, "finalizers": ["example.com/a"]}, "spec": {}}
        assert pod_hash(plain) != pod_hash(with_one)
        assert pod_hash({**plain, "metadata": {"labels": {"app": "web"}, "finalizers": []}}) == pod_hash(
            plain
        )

    def test_orders_to_reloader_are_no_part_of_a_pod(self) -> None:
        """No twin carries them, and its pods may be the source's; what Reloader writes is a roll."""
        plain: dict[str, object] = {"metadata": {"annotations": {"a": "1"}}}
        ordered = {"metadata": {"annotations": {"a": "1", "secret.reloader.stakater.com/reload": "s"}}}
        rolled = {"metadata": {"annotations": {"a": "1", "reloader.stakater.com/last-reloaded-from": "{}"}}}
        assert pod_hash(plain) == pod_hash(ordered) != pod_hash(rolled)

    def test_half_a_surrogate_pair(self) -> None:
        """Text that is not Unicode is hashed, not an error."""
        assert template_hash({"a": "\ud800"})

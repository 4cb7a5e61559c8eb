"""The policy that places members asks for nodes as the settings know them."""

import pytest

from splitter.admission import placement_policy
from splitter.core.desired.scheduling import NodePresets
from splitter.plugin.cli.admission import Subject, document, policies
from splitter.settings import Settings

EXPRESSION = {"key": "cheap.example.com/pool", "operator": "Exists"}


class TestPlacement:
    def test_own_selectors_enter(self) -> None:
        """Nodes that only the settings know are asked for, and kept away from."""
        settings = Settings(spot_selectors=("cheap.example.com/pool",), provider_presets=("oke",))
        text = document(Subject.PLACEMENT, policies(Subject.PLACEMENT, settings))
        # Among the labels to ask by; preferred, if so; kept away from, with and without the user's.
        assert text.count("cheap.example.com/pool") == 1 + 2 + 2
        assert "karpenter.sh/capacity-type" not in text

    def test_without_terms(self) -> None:
        """Nothing that tells spot nodes from others: no policy rather than one that does nothing."""
        with pytest.raises(ValueError, match="nothing tells spot nodes from others"):
            placement_policy(NodePresets((), ({"matchExpressions": [EXPRESSION]},)))

    def test_without_tolerations(self) -> None:
        """A provider that taints nothing needs none."""
        terms = ({"matchExpressions": [EXPRESSION]},)
        [made, _] = placement_policy(NodePresets(terms, terms))
        assert "variables.ownTolerations + dyn([])" in str(made)

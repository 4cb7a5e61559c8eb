"""The parts of the controller are built as the settings say: nothing that is written goes unheard."""

from dataclasses import fields

import pytest

from splitter.assembly import assess_of, node_presets_of, renderer_of, rules_of
from splitter.core.labels_annotations.policy import Policy
from splitter.core.nodes.facts import CapacityClass, NodeFacts
from splitter.core.plan import Rules
from splitter.core.rebalance import Tuning
from splitter.core.relief.model import Tuning as ReliefTuning
from splitter.core.template_sets import TemplateSet
from splitter.settings import Settings
from splitter.settings.loading import load_settings

OWN = {"SPLITTER_SPOT_SELECTORS": "cheap=yes", "SPLITTER_ON_DEMAND_SELECTORS": "cheap=no"}


class TestRules:
    def test_reach_the_planner(self) -> None:
        """What the planner goes by is what is written; its own defaults are those of the settings."""
        written = load_settings(
            environment={"SPLITTER_LOOK_AGAIN_S": "7", "SPLITTER_MAX_CONCURRENT_MOVES": "3"}
        )
        rules = rules_of(written)
        assert (rules.look_again_s, rules.max_concurrent_moves) == (7, 3)
        rules = rules_of(load_settings(environment={}))
        assert (rules.look_again_s, rules.max_concurrent_moves) == (
            Rules().look_again_s,
            Rules().max_concurrent_moves,
        )

    def test_leave_its_own_namespace_alone(self) -> None:
        """The policy on its account refuses each write there."""
        assert rules_of(Settings(own_namespace="home")).excluded_namespaces[-1] == "home"

    def test_defaults_are_the_cores_own(self) -> None:
        """Two numbers for one thing would be decided by whoever asks."""
        rules = rules_of(Settings())
        assert rules.tuning == Tuning()
        assert rules.defaults == Policy(grace_s=rules.defaults.grace_s, soak_s=rules.defaults.soak_s)
        assert {
            one.name
            for one in fields(ReliefTuning)
            if getattr(rules.relief, one.name) != getattr(ReliefTuning(), one.name)
        } <= {"stale_s"}

    @pytest.mark.parametrize(
        ("name", "text", "value"),
        [
            ("soak_max_s", "7201", 7201.0),
            ("step_interval_s", "61", 61.0),
            ("release_s", "61", 61.0),
            ("burst_s", "61", 61.0),
            ("settle_s", "11", 11.0),
            ("first_window", "2", 2),
            ("vanished_node_wait_s", "41", 41.0),
        ],
    )
    def test_each_number_of_the_tuning_is_heard(self, name: str, text: str, value: float) -> None:
        """By its own name, and no other is changed by it."""
        written = load_settings(environment={f"SPLITTER_TUNING_{name.upper()}": text})
        changed = {one.name: getattr(rules_of(written).tuning, one.name) for one in fields(Tuning)}
        before = {one.name: getattr(Tuning(), one.name) for one in fields(Tuning)}
        assert dict(changed.items() - before.items()) == {name: value}

    def test_relief_rests_three_times_its_cycle(self) -> None:
        """And a measurement is old after three looks in vain, or three minutes."""
        written = load_settings(
            environment={"SPLITTER_TUNING_RELIEF_CYCLE_S": "1200", "SPLITTER_TUNING_RELIEF_INTERVAL_S": "300"}
        )
        relief = rules_of(written).relief
        assert (relief.cycle_s, relief.rest_s, relief.received_s, relief.stale_s) == (1200, 3600, 1200, 900)
        assert rules_of(Settings()).relief.stale_s == 180


class TestNodes:
    def test_are_classified_by_ones_own_labels(self) -> None:
        """Beside those that everybody knows."""
        assess = assess_of(load_settings(environment=OWN))
        for value, capacity in (("yes", CapacityClass.SPOT), ("no", CapacityClass.ON_DEMAND)):
            assert assess(NodeFacts("n", "n", labels={"cheap": value})).capacity is capacity
        known = NodeFacts("n", "n", labels={"karpenter.sh/capacity-type": "spot"})
        assert assess(known).capacity is CapacityClass.SPOT

    def test_are_asked_for_by_the_named_providers_and_ones_own(self) -> None:
        """Without any named, by all of them."""
        every = repr(node_presets_of(load_settings(environment=OWN)).spot_terms)
        presets = node_presets_of(load_settings(environment={**OWN, "SPLITTER_PROVIDER_PRESETS": "eks"}))
        some = repr(presets.spot_terms)
        assert "gke" in repr(presets.spot_marks), "what a node is, all of them say"
        for label, named in (("cheap", True), ("eks.amazonaws.com/capacityType", True), ("gke", False)):
            assert label in every
            assert (label in some) is named


class TestTemplateSets:
    def test_that_travel_with_splitter_win(self) -> None:
        """Who may write a ConfigMap does not replace what all use; what is brought later is seen."""
        brought = {"default": TemplateSet("default", {}, config_map="home/default")}
        renderer = renderer_of(Settings(), brought)
        assert renderer.template_set("default") != brought["default"]
        assert renderer.template_set("own") is None
        brought["own"] = TemplateSet("own", {}, config_map="home/own")
        assert renderer.template_set("own") is brought["own"]

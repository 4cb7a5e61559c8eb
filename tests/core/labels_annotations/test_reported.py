"""The policy in force as a Split reports it: each value, and where it comes from."""

from dataclasses import fields

from builders import observation, source, split
from splitter.core.labels_annotations.policy import ANNOTATIONS, Level, Policy
from splitter.core.labels_annotations.reported import levels_of, policy_in_words, values_of
from splitter.core.planner import policy_in_force
from splitter.core.split_status import SplitStatus


class TestValues:
    def test_are_those_of_json(self) -> None:
        """Durations have their unit; what is not set is left out."""
        values = values_of(Policy(spot_percent=80, soak_s=300.0, freeze=True))
        assert (values["spotPercent"], values["soak"], values["freeze"]) == (80, "300s", True)
        assert "spotMax" not in values
        assert values_of(Policy(spot_max=0))["spotMax"] == 0

    def test_are_of_every_field_that_is_reported(self) -> None:
        """By the field of the policy: two under one name would hide one."""
        names = [row.reported_as for row in ANNOTATIONS if row.reported_as]
        assert len(set(names)) == len(names)
        assert {row.field for row in ANNOTATIONS if row.reported_as} <= {one.name for one in fields(Policy)}


class TestOrigins:
    def test_each_level(self) -> None:
        """A value is the source's, its namespace's or the default, and says which."""
        written = source(annotations={"splitter.io/spot-percent": "80", "splitter.io/on-demand-max": "9"})
        observed = observation(written, namespace_annotations={"splitter.io/soak": "5m"})
        in_force = policy_in_force(observed, Policy())
        values = values_of(in_force.policy)
        origins = levels_of(values, in_force.levels)
        assert (values["spotPercent"], values["soak"], values["onDemandMax"]) == (80, "300s", 9)
        assert set(origins) == set(values)
        others = {name: origin for name, origin in origins.items() if origin != "Default"}
        assert others == {"spotPercent": "Source", "onDemandMax": "Source", "soak": "Namespace"}

    def test_last_good(self) -> None:
        """While what is written cannot be read, what was written before says so."""
        bad = source(annotations={"splitter.io/spot-percent": "80%"})
        before = split(good_annotations={"splitter.io/spot-percent": "70"})
        in_force = policy_in_force(observation(bad, split=before), Policy())
        values = values_of(in_force.policy)
        origins = levels_of(values, in_force.levels)
        assert (values["spotPercent"], origins["spotPercent"], origins["soak"]) == (70, "LastGood", "Default")

    def test_nothing_said_is_the_default(self) -> None:
        """Of a value that nobody has written."""
        assert levels_of({"soak": "60s"}, {}) == {"soak": Level.DEFAULT.value}


class TestWords:
    def test_are_annotations(self) -> None:
        """Without the prefix, as one would write them, in the order of the reference page."""
        status = SplitStatus(
            policy={"freeze": True, "spotPercent": 80, "soak": "300s"},
            policy_from={"spotPercent": "Source", "soak": "Namespace", "freeze": "LastGood"},
        )
        assert sorted(policy_in_words(status)) == [
            ("freeze", "true", "last good annotation"),
            ("soak", "300s", "on the Namespace"),
            ("spot-percent", "80", "on the workload"),
        ]

    def test_of_a_later_version_or_a_forged_status(self) -> None:
        """A field that nobody knows is left out, an origin that nobody knows is none."""
        status = SplitStatus(policy={"soak": "1s", "odd": 1}, policy_from={"soak": "Elsewhere"})
        assert list(policy_in_words(status)) == [("soak", "1s", "")]

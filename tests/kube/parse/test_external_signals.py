"""What others say about nodes, as it is read: Events, NodeClaims, the status of cluster-autoscaler."""

from datetime import timedelta

import pytest

from kube.autoscaler import NOW, STATUS, config_map
from kube.raw import Raw, metadata
from splitter.kube import parse
from splitter.kube.parse.fields import UnreadableError


class TestStatusOfClusterAutoscaler:
    """YAML since 1.30."""

    def test_is_read(self) -> None:
        """Its time, and which groups are in backoff, with the provider's word."""
        autoscaler_status = parse.autoscaler_status(STATUS)
        assert autoscaler_status is not None
        assert autoscaler_status.at == NOW - timedelta(seconds=10)
        assert [(group.name, group.backoff, group.why) for group in autoscaler_status.groups] == [
            ("eks-spot-a", True, "InsufficientInstanceCapacity"),
            ("eks-workers", False, ""),
        ]

    def test_is_read_with_an_offset(self) -> None:
        """Go writes the zone of the machine that it runs on."""
        autoscaler_status = parse.autoscaler_status(
            STATUS.replace("09:59:50.546750398 +0000 UTC", "11:59:50 +0200 CEST")
        )
        assert autoscaler_status is not None
        assert autoscaler_status.at == NOW - timedelta(seconds=10)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "Cluster-autoscaler status at 2026-01-05 10:00:00 +0000 UTC:\nInitializing Backoff",
            "Cluster-wide:\n  Health: Healthy (ready=3 unready=0)\n    ScaleUp:     Backoff (ready=1 ...)\n",
            "Backoff",
            "[Backoff]",
            "{Backoff",
            "time: yesterday\nnodeGroups: [{name: a, scaleUp: {status: Backoff}}]",
            "nodeGroups: [{name: spot, scaleUp: {status: Backoff}}]",
            "Backoff: !!int ''",
            "time: 2026-01-05 10:00:00 +0000 UTC\nnodeGroups: Backoff",
            "time: 2026-01-05 10:00:00 +0000 UTC\nnodeGroups: [{scaleUp: {status: Backoff}}]",
        ],
    )
    def test_that_says_nothing_of_use_is_nothing_known(self, text: str) -> None:
        """Empty, of an older version, without a time, or broken."""
        assert parse.autoscaler_status(text) is None
        assert parse.autoscaler(config_map(text)).status is None
        assert parse.autoscaler(config_map(None)).status is None

    def test_without_a_backoff_is_not_even_parsed(self) -> None:
        """It is long, comes every ten seconds, and says that all is well."""
        assert parse.autoscaler_status("{ not YAML") is None
        assert parse.autoscaler_status(STATUS.replace("Backoff", "NoActivity")) is None


class TestNodeEvents:
    @staticmethod
    def event(**fields: object) -> Raw:
        """Return an Event about a node."""
        about = {"kind": "Node", "name": "spot-a", "uid": "uid-a"}
        return {
            "metadata": metadata("spot-a.1", version=20),
            "involvedObject": about,
            "reason": "Drain",
            **fields,
        }

    @pytest.mark.parametrize(
        ("fields", "minutes"),
        [
            (
                {
                    "series": {"lastObservedTime": "2026-01-05T10:04:00Z"},
                    "lastTimestamp": "2026-01-05T10:01:00Z",
                },
                4,
            ),
            ({"series": {}, "lastTimestamp": "2026-01-05T10:03:00Z", "eventTime": "2026-01-05T10:01:00Z"}, 3),
            ({"lastTimestamp": None, "eventTime": "2026-01-05T10:02:00.123456Z"}, 2),
            ({"firstTimestamp": "2026-01-05T10:01:00Z", "series": None}, 1),
        ],
    )
    def test_are_of_the_time_that_was_seen_last(self, fields: dict[str, object], minutes: int) -> None:
        """Each recorder fills in other fields; a series counts on."""
        seen = parse.node_event(self.event(**fields))
        assert seen.event.at.replace(microsecond=0) == NOW + timedelta(minutes=minutes)
        assert (seen.node, seen.node_uid, seen.event.reason, seen.version) == ("spot-a", "uid-a", "Drain", 20)

    def test_without_a_time_or_a_uid(self) -> None:
        """It is as old as the Event, and about any node of the name."""
        raw = self.event(involvedObject={"kind": "Node", "name": "spot-a"})
        seen = parse.node_event(raw)
        assert seen.event.at.isoformat().replace("+00:00", "Z") == raw["metadata"]["creationTimestamp"]
        assert seen.node_uid == ""

    def test_that_refuse_a_claim(self) -> None:
        """By its name and its UID: who may write Events may write one that does not belong to the other."""
        about = {"kind": "NodeClaim", "name": "claim-1", "uid": "uid-1"}
        seen = parse.refusal(self.event(involvedObject=about, lastTimestamp="2026-01-05T10:01:00Z"))
        assert (seen.claim_name, seen.claim_uid, seen.at) == ("claim-1", "uid-1", NOW + timedelta(minutes=1))

    @pytest.mark.parametrize("name", ["", "n" * 254, "../web", 7, None])
    def test_about_what_no_object_is_called(self, name: object) -> None:
        """They are left out."""
        raw = self.event(involvedObject={"kind": "Node", "name": name})
        for read in (parse.node_event, parse.refusal):
            with pytest.raises(UnreadableError):
                read(raw)


class TestNodeClaims:
    def test_what_they_ask_for_and_what_becomes_of_them(self) -> None:
        """Conditions count where they are true."""
        conditions = [
            {"type": "DisruptionReason", "status": "True"},
            {"type": "Consolidatable", "status": "False"},
        ]
        raw: Raw = {
            "metadata": metadata("claim", version=7, namespace=""),
            "spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}]},
            "status": {"nodeName": "spot-a", "conditions": conditions},
        }
        record = parse.claim(raw)
        assert (record.node, record.voluntary, record.consolidates, record.version) == (
            "spot-a",
            True,
            False,
            7,
        )
        assert (record.name, record.launched) == ("claim", False)
        assert [str(taint) for taint in record.claim.taints] == ["spot:NoSchedule"]

    def test_before_there_is_anything_to_say(self) -> None:
        """One that was created this moment."""
        record = parse.claim({"metadata": metadata("claim", version=7, namespace="")})
        assert (record.node, record.voluntary, record.consolidates, record.ends) == ("", False, False, "")

"""Karmada's requests, by bytes that protobuf's own library wrote, and what is none of them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator import requests
from estimator.requests import field, quantity
from splitter.core.names import Key
from splitter.core.nodes.fit import MatchExpression, NodeTerm, Toleration
from splitter.estimator import messages
from splitter.estimator.wire import WireError, number_field


@pytest.mark.parametrize("recorded", [requests.UP_TO_1_17, requests.IN_1_18, requests.SINCE_1_19])
def test_reads_what_every_karmada_says(recorded: str) -> None:
    """Up to 1.17 as messages, since 1.18 as bytes, in 1.18 both: each is read once."""
    asked = messages.max_replicas(bytes.fromhex(recorded))
    [one] = asked.components
    assert (asked.cluster, one.replicas, asked.assumed) == ("m1", 1, ())
    assert one.pod.requests == {"cpu": 1500, "memory": 2**30}
    assert one.pod.node_selector == {"disk": "ssd"}
    assert one.pod.affinity == (
        NodeTerm((MatchExpression("kubernetes.io/arch", "In", ("amd64", "arm64")),), ()),
    )
    assert one.pod.tolerations == (Toleration("dedicated", "Equal", "shop", "NoSchedule"),)


def test_reads_workloads_that_are_on_their_way() -> None:
    """What the scheduler has given to this cluster, before pods are bound."""
    asked = messages.max_replicas(bytes.fromhex(requests.ASSUMED))
    assert [(one.pod.requests, one.replicas) for one in asked.assumed] == [({"cpu": 4000}, 3)]


def test_reads_sets_of_components() -> None:
    """Each with its replicas."""
    asked = messages.max_component_sets(bytes.fromhex(requests.SETS))
    assert [(one.pod.requests, one.replicas) for one in asked.components] == [
        ({"cpu": 1000}, 1),
        ({"cpu": 2000}, 3),
    ]


def test_reads_which_workload_is_meant() -> None:
    """The threshold comes in nanoseconds; a negative one is none."""
    asked = messages.unschedulable(bytes.fromhex(requests.UNSCHEDULABLE))
    assert asked == messages.UnschedulableRequest("m1", Key("Deployment", "shop", "web"), 30.0)
    negative = requests.unschedulable(threshold_s=0) + b"\x18" + b"\xff" * 9 + b"\x01"
    assert messages.unschedulable(negative).threshold_s == 0


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1e99", "999999999999999999E", "1" * 40, "1 ", "0x1", "1Kib"]
)
def test_refuses_a_quantity_that_would_count_as_nothing(text: str) -> None:
    """What cannot be read would fit everywhere."""
    with pytest.raises(WireError, match="quantity"):
        messages.max_replicas(requests.max_replicas(cpu=text))


@pytest.mark.parametrize(
    ("text", "amount"), [("0", 0), ("0.0", 0), ("250m", 250), ("1e1", 10000), (".5", 500)]
)
def test_reads_a_quantity(text: str, amount: int) -> None:
    """As Kubernetes writes them; nothing is an amount, too."""
    [one] = messages.max_replicas(requests.max_replicas(cpu=text)).components
    assert one.pod.requests == {"cpu": amount}


@pytest.mark.parametrize(
    "raw",
    [
        requests.unschedulable(kind="Job"),
        requests.unschedulable(api="batch/v1"),
        requests.unschedulable(name=""),
        requests.unschedulable(name="../../etc"),
        requests.unschedulable(namespace="a/b"),
        requests.unschedulable(name="x" * 1000),
    ],
)
def test_refuses_a_workload_that_there_cannot_be(raw: bytes) -> None:
    """Another kind, or a name that no object has."""
    with pytest.raises(WireError, match=r"known here|object can have"):
        messages.unschedulable(raw)


def test_refuses_more_than_people_write() -> None:
    """Resources and components are held against every node."""
    many = b"".join(field(5, quantity(f"example.com/r{number}", "1")) for number in range(33))
    with pytest.raises(WireError, match="33 resources"):
        messages.max_replicas(field(1, "m1") + field(2, many))
    component = field(2, field(2, b"") + number_field(3, 1))
    with pytest.raises(WireError, match="65 components"):
        messages.max_component_sets(field(1, "m1") + component * 65)
    with pytest.raises(WireError, match="66 components"):
        messages.max_replicas(requests.max_replicas(cpu="1") + field(3, component * 33) * 2)


def test_refuses_what_has_no_meaning() -> None:
    """No component, and an operator that there is not."""
    with pytest.raises(WireError, match="without components"):
        messages.max_component_sets(field(1, "m1"))
    selector = field(1, field(1, field(1, "arch") + field(2, "Near")))
    with pytest.raises(WireError, match="operator"):
        messages.max_replicas(requests.max_replicas(claim=field(4, selector)))


@pytest.mark.parametrize("read", [messages.max_replicas, messages.max_component_sets, messages.unschedulable])
@given(data=st.data())
def test_any_bytes_are_a_request_or_none(read: object, data: st.DataObject) -> None:
    """Whatever is sent, it is a request or a WireError: recorded ones that are cut, changed, or noise."""
    recorded = [requests.IN_1_18, requests.ASSUMED, requests.SETS, requests.UNSCHEDULABLE]
    raw = bytearray.fromhex(data.draw(st.sampled_from(recorded)))
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=3)):
        raw[at] = data.draw(st.integers(0, 255))
    assert callable(read)
    asked = None
    with suppress(WireError):
        asked = read(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    assert asked is None or len(asked.cluster.encode()) < len(raw)

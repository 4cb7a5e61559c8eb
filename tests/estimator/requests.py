"""Requests as Karmada sends them, written field by field, and some that protobuf's own library wrote."""

from typing import Final

from splitter.estimator.wire import number_field

# Written by protobuf 7.36 by the definitions in pkg/estimator/pb of Karmada: 1500m of CPU and 1Gi of memory,
# on disk=ssd and amd64 or arm64, with a toleration: of Karmada up to 1.17, of 1.18 (twice), and since 1.19.
UP_TO_1_17: Final = (
    "0a026d311288010a5f0a2a0a280a260a126b756265726e657465732e696f2f617263681202496e1a05616d6436341a0561726d3634"
    "120b0a046469736b12037373641a240a096465646963617465641205457175616c1a0473686f70220a4e6f5363686564756c65120e"
    "0a0363707512070a05313530306d120f0a066d656d6f727912050a033147691a0473686f70"
)
IN_1_18: Final = (
    "0a026d3112fc010ab1010a2a0a280a260a126b756265726e657465732e696f2f617263681202496e1a05616d6436341a0561726d36"
    "34120b0a046469736b12037373641a240a096465646963617465641205457175616c1a0473686f70220a4e6f5363686564756c6522"
    "2a0a280a260a126b756265726e657465732e696f2f617263681202496e1a05616d6436341a0561726d36342a240a09646564696361"
    "7465641205457175616c1a0473686f70220a4e6f5363686564756c65120e0a0363707512070a05313530306d120f0a066d656d6f72"
    "7912050a033147691a0473686f702a0e0a0363707512070a05313530306d2a0f0a066d656d6f727912050a03314769"
)
SINCE_1_19: Final = (
    "0a026d311288010a5f120b0a046469736b1203737364222a0a280a260a126b756265726e657465732e696f2f617263681202496e1a"
    "05616d6436341a0561726d36342a240a096465646963617465641205457175616c1a0473686f70220a4e6f5363686564756c651a04"
    "73686f702a0e0a0363707512070a05313530306d2a0f0a066d656d6f727912050a03314769"
)
# One CPU, while three replicas of 4 CPU are on their way; a set of one replica of 1 CPU and three of 2 CPU;
# how many replicas of the Deployment shop/web find no place after 30 s.
ASSUMED: Final = (
    "0a026d31120c2a0a0a0363707512030a01311a270a0473686f70121f0a01771218120a0a0363707512030a0134220a0a0363707512"
    "030a01341803"
)
SETS: Final = (
    "0a026d3112200a026a6d1218120a0a0363707512030a0131220a0a0363707512030a0131180112200a02746d1218120a0a03637075"
    "12030a0132220a0a0363707512030a013218031a0473686f70"
)
UNSCHEDULABLE: Final = (
    "0a026d3112200a07617070732f7631120a4465706c6f796d656e741a0473686f7022037765621880d88ee16f"
)


def field(number: int, content: bytes | str) -> bytes:
    """Write a field with bytes, or with a text."""
    raw = content.encode() if isinstance(content, str) else content
    return bytes([number << 3 | 2]) + number_field(0, len(raw))[1:] + raw


def quantity(resource: str, text: str) -> bytes:
    """Write an entry of what a replica requests."""
    return field(1, resource) + field(2, field(1, text))


def max_replicas(cluster: str = "m1", *, claim: bytes = b"", **requests: str) -> bytes:
    """Write a MaxAvailableReplicasRequest."""
    asked = b"".join(field(5, quantity(name, text)) for name, text in requests.items())
    return field(1, cluster) + field(2, field(1, claim) + asked)


def unschedulable(
    name: str = "web", kind: str = "Deployment", threshold_s: float = 30, **other: str
) -> bytes:
    """Write an UnschedulableReplicasRequest."""
    reference = {1: other.get("api", "apps/v1"), 2: kind, 3: other.get("namespace", "shop"), 4: name}
    resource = b"".join(field(number, text) for number, text in reference.items())
    return field(1, "m1") + field(2, resource) + number_field(3, int(threshold_s * 1e9))

"""Which controllers are taken for rivals of a Deployment's pods, and which never are."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from builders import NOW, ago
from cpu import cpu_below
from kube.cached import cache
from kube.raw import Raw, deployment, metadata, owner, pod, replica_set
from splitter.kube import parse, rivals
from splitter.kube.client import ApiError, Json
from splitter.kube.paths import ResourcePath
from splitter.kube.rivals import RivalFinder, Rivals

HASH = {"pod-template-hash": "1"}
OWN = {"matchLabels": {"app": "web", **HASH}}


class Namespace:
    """What a namespace holds, by kind; a status in place of objects is an answer."""

    def __init__(self, **kinds: list[Raw] | int) -> None:
        self.kinds = kinds
        self.asked: list[str] = []

    async def pages(self, path: ResourcePath, limit: int = 500, **_: str) -> AsyncIterator[Json]:
        """Yield one page."""
        assert limit
        self.asked.append(path.plural)
        held = self.kinds.get(path.plural, [])
        if isinstance(held, int):
            raise ApiError(held, "Said", "no")
        yield {"items": held}


async def rivals_of(
    *sets: Raw, pods: tuple[Raw, ...] = (), labels: Mapping[str, str] | None = None, **kinds: list[Raw] | int
) -> Rivals:
    """Return who selects the pods of `web`, beside its ReplicaSet `web-1`."""
    known = cache()
    template = {"metadata": {"labels": {"app": "web", **(labels or {})}}, "spec": {}}
    raw = deployment(spec={"template": template})
    for rs in (replica_set(spec={"selector": OWN}), *sets):
        known.replica_sets.upsert(rs)
    for one in pods:
        known.pods.upsert(one)
    return await RivalFinder(Namespace(**kinds), known).of(parse.source(raw).view, (), NOW)  # type: ignore[arg-type]


def selecting(name: str, selector: object, **fields: Any) -> Raw:  # noqa: ANN401 (fields of metadata)
    """Return a controller of any kind."""
    return {"metadata": metadata(name, **fields), "spec": {"selector": selector}}


def of_green(selector: object = OWN, replicas: int = 0, **fields: Any) -> Raw:  # noqa: ANN401 (fields of metadata)
    """Return a ReplicaSet of the Deployment `green`."""
    owners = [owner("Deployment", "green")]
    spec = {"replicas": replicas, "selector": selector}
    return replica_set("green-1", spec=spec, **{"ownerReferences": owners, **fields})


class TestReplicaSets:
    """Those of other Deployments, and those of nobody."""

    async def test_an_idle_colour(self) -> None:
        """With one selector and one template two colours have one hash; at 0 it ends all."""
        assert (await rivals_of(of_green())).rival == (
            "ReplicaSet green-1 of Deployment green, at 0 replicas"
            " (selector app in (web),pod-template-hash in (1))"
        )

    async def test_its_own(self) -> None:
        """Attached, or parked."""
        assert await rivals_of(replica_set("web-0", spec={"selector": OWN})) == Rivals()

    @pytest.mark.parametrize(
        ("selector", "is_one"),
        [
            ({"matchLabels": {"app": "shop"}}, False),
            ({"matchLabels": {"app": "web", "pod-template-hash": "2"}}, False),
            ({"matchLabels": HASH}, True),
            ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "shop"]}]}, True),
            ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
            ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
            ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
            ({"matchLabels": {"splitter.io/pool": "spot"}}, True),
            ({}, False),
        ],
    )
    async def test_by_what_it_selects(self, selector: object, is_one: bool) -> None:
        """Labels that the pods have, or will have in a pool; nothing acts on an empty selector."""
        assert bool((await rivals_of(of_green(selector))).rival) is is_one

    async def test_that_is_being_deleted(self) -> None:
        """It adopts nothing any more."""
        assert await rivals_of(of_green(deletionTimestamp="2026-01-05T10:00:00Z")) == Rivals()

    async def test_of_another_namespace(self) -> None:
        """It does not see these pods."""
        assert await rivals_of(of_green(namespace="elsewhere")) == Rivals()

    async def test_labels_that_only_the_pods_have(self) -> None:
        """Somebody else's admission has added one: the template does not show it."""
        mesh = {"matchLabels": {"mesh": "on"}}
        bears = pod("web-1-a", labels={"app": "web", **HASH, "mesh": "on"})
        assert await rivals_of(of_green(mesh)) == Rivals()
        assert (await rivals_of(of_green(mesh), pods=(bears,))).rival


class TestOtherKinds:
    """They are listed."""

    @pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet", "Job"])
    async def test_by_their_selector(self, kind: str) -> None:
        """The whole of it, and its name."""
        where = f"{kind.lower()}s"
        wide, narrow = {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "web", "part": "node"}}
        both: dict[str, Any] = {where: [selecting("x", narrow), selecting("agent", wide)]}
        one: dict[str, Any] = {where: [selecting("x", narrow)]}
        assert await rivals_of(**one) == Rivals()
        assert (await rivals_of(**both)).rival == f"{kind} agent (selector app=web)"
        assert (await rivals_of(labels={"part": "node"}, **one)).rival

    async def test_a_replication_controller(self) -> None:
        """Its selector is a plain map."""
        old = selecting("old", {"app": "web"})
        assert (await rivals_of(replicationcontrollers=[old])).rival == (
            "ReplicationController old (selector app=web)"
        )

    @pytest.mark.parametrize(
        "harmless",
        [
            selecting("going", {"matchLabels": {"app": "web"}}, deletionTimestamp="2026-01-05T10:00:00Z"),
            selecting(
                "by-itself", {"matchLabels": {"batch.kubernetes.io/controller-uid": "u", "app": "web"}}
            ),
            selecting("empty", {}),
            selecting("without", None),
            {
                **selecting("done", {"matchLabels": {"app": "web"}}),
                "status": {"conditions": [{"type": "Complete", "status": "True"}]},
            },
        ],
        ids=lambda raw: str(raw["metadata"]["name"]),
    )
    async def test_a_job_that_takes_no_pods(self, harmless: Raw) -> None:
        """It is going, has ended, or selects by its own UID."""
        assert await rivals_of(jobs=[harmless]) == Rivals()

    async def test_that_may_not_be_listed(self) -> None:
        """That is said: what was not looked at may be one. A kind that is not there is none."""
        seen = await rivals_of(daemonsets=403, jobs=404)
        assert seen == Rivals(unread="splitter may not list daemonsets (apply manifests/rbac.yaml)")

    async def test_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The tenant chooses how many there are; those left out may be one."""
        monkeypatch.setattr(rivals, "MAX_RIVALS", 1)
        other = {"matchLabels": {"app": "shop"}}
        seen = await rivals_of(daemonsets=[selecting("a", other), selecting("b", other)])
        assert seen.unread == "there are more than 1 DaemonSets"

    @pytest.mark.parametrize(
        "long",
        [
            {
                "matchExpressions": [
                    {"key": f"k-{number}", "operator": "DoesNotExist"} for number in range(101)
                ]
            },
            {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["v"] * 101}]},
        ],
        ids=["terms", "values"],
    )
    async def test_too_long(self, long: Raw) -> None:
        """The tenant chooses how long a selector is; one that is not compared may be of a rival."""
        seen = [await rivals_of(daemonsets=[selecting("a", long)]), await rivals_of(of_green(long))]
        assert [one.unread for one in seen] == [
            f"the selector of {who} has more than 100 terms and values"
            for who in ("DaemonSet a", "ReplicaSet green-1")
        ]
        assert not any(one.rival for one in seen)

    @pytest.mark.parametrize(("others", "terms"), [(1, 20_000), (20, 1_000), (1999, 99)])
    async def test_what_takes_long_to_compare(self, others: int, terms: int) -> None:
        """Selectors of tenants that miss by their last term alone, beside 2,000 pods that all differ."""
        harmless = [{"key": f"k-{number}", "operator": "DoesNotExist"} for number in range(terms)]
        missing = {"matchExpressions": [*harmless, {"key": "app", "operator": "In", "values": ["no"]}]}
        pods = (
            pod(f"web-{number}", labels={"app": "web", **HASH, "n": str(number)}) for number in range(2000)
        )
        with cpu_below(2.0):  # half of it makes these objects
            seen = await rivals_of(
                pods=tuple(pods), daemonsets=[selecting(f"a-{number}", missing) for number in range(others)]
            )
        assert not seen.rival

    async def test_no_answer(self) -> None:
        """Then there is none here either."""
        with pytest.raises(ApiError):
            await rivals_of(daemonsets=503)


async def test_a_list_serves_a_moment() -> None:
    """A thousand workloads of one namespace do not list it a thousand times; what is old is read again."""
    namespace, known = Namespace(), cache()
    finder, source = RivalFinder(namespace, known), parse.source(deployment()).view  # type: ignore[arg-type]
    await finder.of(source, (), ago(5))
    await finder.of(source, (), ago(4.5))
    assert len(namespace.asked) == 4
    await finder.of(source, (), NOW)
    assert len(namespace.asked) == 8


@pytest.mark.parametrize("where", ["of a pod", "of a ReplicaSet", "of its template"])
async def test_labels_that_are_too_long_to_be_kept(where: str) -> None:
    """Nobody knows what selects those: it is said whose they are, as long as they are there."""
    long = {f"l{number}": "x" * 40 for number in range(400)} | {"app": "web"}
    template = {"metadata": {"labels": long}, "spec": {}}
    rs = replica_set("web-2", spec={"selector": OWN}, labels=long if where == "of a ReplicaSet" else {})
    if where == "of its template":
        rs["spec"]["template"] = template
    rivals = await rivals_of(rs, pods=(pod("web-1-a", labels=long),) if where == "of a pod" else ())
    who = "pod web-1-a" if where == "of a pod" else "ReplicaSet web-2"
    assert rivals.unread == f"the labels of {who} are longer than 16 KiB"

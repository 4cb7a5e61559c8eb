"""PodDisruptionBudgets: which are seen and whom they wake, and what is written of ours."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from builders import KEY, NOW, observation, source, split
from kube.raw import metadata, owner
from kube.server import Asked, Script, connected, json, page, refusal, silence
from splitter.core.actions import SetBudget
from splitter.core.names import Key
from splitter.kube.budgets import Budgets, budget
from splitter.kube.client import ApiError, Client

MANIFEST = '{"spec": {"selector": {"matchLabels": {"app": "web"}}}}'
SPLIT_UID = "uid-split"
REFUSES = {"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": NOW.isoformat()}
REFUSING = {"currentHealthy": 3, "disruptedPods": {"web-1": NOW.isoformat()}, "conditions": [REFUSES]}


def raw(name: str = "web-guard", version: int = 1, **spec: object) -> dict[str, Any]:
    """Return a budget, of our Split's unless it is called otherwise."""
    owners = [owner("Split", "split")] if name == "web-guard" else []
    return {"metadata": metadata(name, version=version, ownerReferences=owners), "spec": spec}


class Seen:
    """Budgets that are followed, and whom they have woken."""

    def __init__(self) -> None:
        self.woken: list[tuple[str, str | None]] = []
        self.budgets = Budgets(lambda namespace, uid: self.woken.append((namespace, uid)))

    def follow(self, client: Client) -> None:
        """Have them listed, and nothing there."""
        self.budgets.reflector(client, "").synced.set()


class TestSees:
    """What a budget says, whoever wrote it."""

    def test_ours_and_others(self) -> None:
        """By who controls it; of other namespaces none."""
        seen = Seen()
        for one in (raw(minAvailable=3), raw("mine", maxUnavailable=1), raw("percent", minAvailable="50%")):
            seen.budgets.indexer.upsert(one)
        elsewhere = raw("mine", minAvailable=1)
        elsewhere["metadata"] |= {"namespace": "bank", "uid": "uid-elsewhere"}
        seen.budgets.indexer.upsert(elsewhere)
        by_name = {one.name: (one.is_ours, one.min_available) for one in seen.budgets.of(KEY, SPLIT_UID)}
        assert by_name == {"web-guard": (True, 3), "mine": (False, None), "percent": (False, None)}

    @pytest.mark.parametrize(
        ("selector", "read"),
        [
            (None, None),
            ({}, ()),
            ({"matchLabels": {"app": "web"}}, (("app", "In", ("web",)),)),
            (
                {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
                (("tier", "Exists", ()),),
            ),
            ({"matchLabels": {f"key-{number}": "x" for number in range(99)}}, ()),
            ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"] * 999}]}, ()),
        ],
        ids=["none", "empty", "labels", "expressions", "many terms", "many values"],
    )
    def test_selectors(self, selector: object, read: object) -> None:
        """One that is too long to look at counts as if it selected every pod."""
        seen = Seen()
        seen.budgets.indexer.upsert(raw("mine", selector=selector))
        [result] = seen.budgets.of(KEY, SPLIT_UID)
        assert result.selector == read

    async def test_wakes(self) -> None:
        """Whose budget it is, or the namespace; of its status nobody is told."""
        seen = Seen()
        async with connected(Script()) as client:
            seen.follow(client)
            seen.budgets.indexer.upsert(raw(minAvailable=3))
            seen.budgets.indexer.upsert({**raw(version=2, minAvailable=3), "status": {"currentHealthy": 4}})
            seen.budgets.indexer.upsert(raw("mine", version=3, minAvailable=1))
            seen.budgets.indexer.upsert({**raw("mine", version=3, minAvailable=1), "status": REFUSING})
            seen.budgets.indexer.remove(raw("mine", version=4, minAvailable=1))
        assert seen.woken == [("shop", SPLIT_UID), ("shop", None), ("shop", None)]

    @pytest.mark.parametrize(
        ("status", "healthy", "since"),
        [
            ({}, 0, None),
            (REFUSING, 4, NOW),
            ({**REFUSING, "disruptedPods": None}, 3, NOW),
            ({**REFUSING, "conditions": [{**REFUSES, "status": "True"}]}, 3 + 1, None),
            ({**REFUSING, "conditions": [{**REFUSES, "lastTransitionTime": None}]}, 3 + 1, None),
        ],
    )
    def test_what_kubernetes_counts(self, status: object, healthy: int, since: datetime | None) -> None:
        """Those that are being evicted too: they still have to go."""
        seen = Seen()
        seen.budgets.indexer.upsert({**raw("mine", maxUnavailable=1), "status": status})
        [result] = seen.budgets.of(KEY, SPLIT_UID)
        assert (result.healthy, result.refuses_since) == (healthy, since)

    def test_not_followed(self) -> None:
        """Where they may not be read none is kept, and that is said."""
        assert "may not read" in Seen().budgets.unguardable(KEY, NOW)

    async def test_an_interruption(self) -> None:
        """A watch that breaks says nothing about what is allowed: what was known is gone by."""
        seen = Seen()
        async with connected(Script().then(page(raw(minAvailable=3), version=1), silence())) as client:
            reflector = seen.budgets.reflector(client, "")
            await reflector.list_once()
            reflector.error = ApiError(0, "", "the connection broke")
            assert not seen.budgets.unguardable(KEY, NOW)

    def test_of_other_workloads(self) -> None:
        """A thousand of them select a thousand others, and are not looked at."""
        seen = Seen()
        other = raw("api-guard", minAvailable=1)
        other["metadata"]["ownerReferences"] = [owner("Split", "split-of-api")]
        stranger = raw("web-guard", version=2, minAvailable=1)
        stranger["metadata"] |= {"uid": "uid-stranger", "ownerReferences": []}
        for one in (other, stranger):
            seen.budgets.indexer.upsert(one)
        assert [one.uid for one in seen.budgets.of(KEY, SPLIT_UID)] == ["uid-stranger"]

    def test_without_an_owner(self) -> None:
        """As Velero restores it: ours by its label, and written again with its owner."""
        seen, left = Seen(), raw(minAvailable=3)
        left["metadata"] |= {"ownerReferences": [], "labels": {"splitter.io/source": "web"}}
        seen.budgets.indexer.upsert(left)
        [result] = seen.budgets.of(KEY, SPLIT_UID)
        assert (result.name, result.is_ours, result.min_available) == ("web-guard", True, None)
        [others] = seen.budgets.of(Key("Deployment", KEY.namespace, "api"), "uid-split-of-api")
        assert not others.is_ours

    def test_without_an_owner_and_of_another(self) -> None:
        """Its name is that of our budget, and its label is not."""
        seen, left = Seen(), raw(minAvailable=3)
        left["metadata"] |= {"ownerReferences": [], "labels": {"splitter.io/source": "api"}}
        seen.budgets.indexer.upsert(left)
        [result] = seen.budgets.of(KEY, SPLIT_UID)
        assert (result.is_ours, result.min_available) == (False, 3)

    def test_what_they_say(self) -> None:
        """As their users wrote it."""
        seen = Seen()
        for name, spec in (("a", {"minAvailable": "50%"}), ("b", {"maxUnavailable": 0}), ("c", {})):
            seen.budgets.indexer.upsert(raw(name, **spec))
        said = {one.name: one.says for one in seen.budgets.of(KEY, SPLIT_UID)}
        assert said == {"a": "minAvailable 50%", "b": "maxUnavailable 0", "c": ""}


class TestWrites:
    """Ours alone, and a refusal stops nothing."""

    async def done(self, seen: Seen, script: Script, action: SetBudget) -> list[Asked]:
        """Write it; return what was asked."""
        observed = observation(source(manifest_json=MANIFEST), split=split(uid=SPLIT_UID))
        assert observed.source is not None
        async with connected(script) as client:
            seen.follow(client)
            await seen.budgets.write(client, observed, observed.source, action)
        return script.asked

    async def test_the_first(self) -> None:
        """Is created: a stranger's of the name is never taken over."""
        script = Script().then(json(raw(minAvailable=9), 201))
        [asked] = await self.done(Seen(), script, SetBudget("web-guard", 9))
        assert asked.method == "POST"
        body: Any = asked.body
        assert body["spec"]["minAvailable"] == 9
        assert body["spec"]["selector"]["matchLabels"] == {"app": "web", "splitter.io/source": "web"}
        assert body["metadata"]["ownerReferences"][0]["uid"] == SPLIT_UID

    async def test_later_ones(self) -> None:
        """By its UID; the answer is known at once."""
        seen = Seen()
        script = Script().then(json(raw(version=5, minAvailable=10)))
        [asked] = await self.done(seen, script, SetBudget("web-guard", 10, "uid-web-guard"))
        body: Any = asked.body
        assert (asked.method, body["metadata"]["uid"]) == ("PATCH", "uid-web-guard")
        assert [one.min_available for one in seen.budgets.of(KEY, SPLIT_UID)] == [10]

    async def test_its_end(self) -> None:
        """By its UID too."""
        seen = Seen()
        seen.budgets.indexer.upsert(raw(minAvailable=9))
        script = Script().then(json({"kind": "Status"}))
        [asked] = await self.done(seen, script, SetBudget("web-guard", None, "uid-web-guard"))
        assert (asked.method, asked.body) == ("DELETE", {"preconditions": {"uid": "uid-web-guard"}})
        assert seen.budgets.of(KEY, SPLIT_UID) == ()

    @pytest.mark.parametrize(
        ("status", "least"), [(403, 9), (404, 9), (422, 9), (403, None), (422, None)], ids=str
    )
    async def test_refused(self, status: int, least: int | None, caplog: pytest.LogCaptureFixture) -> None:
        """Told once, and not asked again for a while; of this workload alone: others may have theirs."""
        seen = Seen()
        script = Script().then(refusal(status, "Forbidden", "no"))
        await self.done(seen, script, SetBudget("web-guard", least, "uid-web-guard"))
        await self.done(seen, script, SetBudget("web-guard", least, "uid-web-guard"))
        assert "may not write" in seen.budgets.unguardable(KEY, NOW)
        assert not seen.budgets.unguardable(replace(KEY, name="api"), NOW)
        assert caplog.text.count("do not wait for replacements") == 1
        assert seen.budgets.again_at(KEY, NOW) == NOW + timedelta(minutes=5)
        assert not seen.budgets.unguardable(KEY, NOW + timedelta(minutes=6))

    async def test_a_namespace_that_goes(self, caplog: pytest.LogCaptureFixture) -> None:
        """No rights are missing: whoever deletes a namespace is not warned."""
        seen, going = Seen(), "unable to create new content in namespace shop because it is being terminated"
        await self.done(seen, Script().then(refusal(403, "Forbidden", going)), SetBudget("web-guard", 9))
        assert seen.budgets.again_at(KEY, NOW) == NOW + timedelta(minutes=5)
        assert not caplog.records

    @pytest.mark.parametrize("status", [409, 429, 500, 503])
    async def test_no_answer(self, status: int) -> None:
        """As of a webhook that is down: everything else goes on, and it is tried again in seconds."""
        seen = Seen()
        await self.done(seen, Script().then(refusal(status, "", "busy")), SetBudget("web-guard", 9))
        assert "busy" in seen.budgets.unguardable(KEY, NOW)
        assert seen.budgets.again_at(KEY, NOW) == NOW + timedelta(seconds=5)

    async def test_well_again(self) -> None:
        """What was refused is forgotten with the first write that goes well."""
        seen = Seen()
        await self.done(seen, Script().then(refusal(503, "", "busy")), SetBudget("web-guard", 9))
        await self.done(seen, Script().then(json(raw(minAvailable=9), 201)), SetBudget("web-guard", 9))
        assert (seen.budgets.unguardable(KEY, NOW), seen.budgets.again_at(KEY, NOW)) == ("", None)


def test_of_two_kinds() -> None:
    """A Deployment and a StatefulSet of one name have one each."""
    web = source(manifest_json=MANIFEST)
    names = {
        budget(one, SPLIT_UID, 1)["metadata"]["name"]
        for one in (web, source(manifest_json=MANIFEST, key=Key("StatefulSet", "shop", "web")))
    }
    assert names == {"web-guard", "web-sts-guard"}

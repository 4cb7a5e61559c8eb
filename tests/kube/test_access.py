"""What is asked at the start is what manifests/rbac.yaml gives, so that no right is missed in mid-flight."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kube.server import Answer, Script, connected, hang_up, json, refusal, silence, text
from rbac import Right, rules
from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason
from splitter.kube.access import check_access, check_connection, patiently
from splitter.kube.client import Client
from splitter.kube.paths import REVIEWS, ResourcePath

ASKING = Right("", "authorization.k8s.io", "selfsubjectaccessreviews", "create")


class Interrogated(Client):
    """An API server that allows what `may` says, else nothing, and remembers what it was asked."""

    def __init__(
        self, may: Callable[[Right], bool] = lambda _: False, versions: Sequence[str] = ("v1alpha1",)
    ) -> None:
        self.may = may
        self.versions = versions  # of Splits, the preferred one first
        self.asked: set[Right] = set()
        self.under_way = 0
        self.most_under_way = 0

    async def send(self, method: str, path: ResourcePath, body: Any = None, **_: Any) -> dict[str, Any]:  # noqa: ANN401
        """Answer a SelfSubjectAccessReview with no, after everybody else had a turn."""
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        assert (method, path) == ("POST", REVIEWS)
        about = body["spec"]["resourceAttributes"]
        resource = "/".join(part for part in (about["resource"], about.get("subresource")) if part)
        right = Right(about["namespace"], about["group"], resource, about["verb"])
        await asyncio.to_thread(self.asked.add, right)
        self.under_way -= 1
        return {"status": {"allowed": self.may(right)}}

    async def get(self, path: ResourcePath, **_: str) -> dict[str, Any]:
        """Know every kind."""
        assert path == ResourcePath("/apis/splitter.io")
        return {
            "versions": [{"version": one} for one in self.versions],
            "preferredVersion": {"version": self.versions[0]},
        }


def asked(*namespaces: str, lease: str = "") -> tuple[set[Right], str]:
    """Return what was asked, and the sentence about what is missing: everything."""
    server = Interrogated()
    try:
        asyncio.run(check_access(server, namespaces, lease))
    except SplitterError as error:
        return server.asked, str(error)
    raise AssertionError


def needed(*, namespaced: bool) -> set[Right]:
    """Return what the file gives and does not call optional."""
    return {
        right
        for rule in rules()
        if not rule.optional
        for right in rule.rights
        if bool(right.namespace) is namespaced
    }


class TestStart:
    def test_asks_for_each_right_that_is_given(self) -> None:
        """Everything that rbac.yaml gives and does not call optional is asked for, and nothing else."""
        result, _ = asked()
        assert result == needed(namespaced=False) - {ASKING}

    def test_names_each_one_that_is_missing(self) -> None:
        """Whichever verb is taken away: the start fails, and the sentence names it."""
        result, sentence = asked()
        for right in result:
            kind = f"{right.resource}.{right.group}" if right.group else right.resource
            assert f"{right.verb} {kind}" in sentence

    def test_asks_in_each_watched_namespace(self) -> None:
        """A namespaced install is asked for the rights on workloads there, and elsewhere for nodes only."""
        workloads = {
            right
            for rule in rules()
            if rule.role == "splitter" and not rule.optional
            for right in rule.rights
        }
        there = {right._replace(namespace=namespace) for right in workloads for namespace in ("shop", "cart")}
        result, _ = asked("shop", "cart")
        assert {right for right in result if right.namespace} == there
        assert {right.resource for right in result if not right.namespace} == {"nodes"}

    def test_one_namespace_may_be_missing(self) -> None:
        """It is nobody else's outage; all of them are a wrong install, as is a missing right elsewhere."""
        server = Interrogated(may=lambda right: right.namespace != "cart")
        assert asyncio.run(check_access(server, ["shop", "cart"])) == ("cart",)
        with pytest.raises(SplitterError, match="in namespace cart"):
            asyncio.run(check_access(server, ["cart"]))
        nodeless = Interrogated(may=lambda right: right.namespace == "shop")
        with pytest.raises(SplitterError, match="list nodes"):
            asyncio.run(check_access(nodeless, ["shop", "cart"]))

    def test_asks_a_few_at_a_time(self) -> None:
        """Fifty namespaces, two thousand questions: none waits in line while its deadline runs."""
        server = Interrogated()
        with pytest.raises(SplitterError):
            asyncio.run(check_access(server, [f"shop-{number}" for number in range(50)]))
        assert len(server.asked) > 1_000
        assert server.most_under_way <= 8

    def test_asks_for_the_lease_where_a_leader_is_elected(self) -> None:
        """With an election, the rights on the Lease beside splitter are asked for too, and no others."""
        lease = {right for rule in rules() if rule.role == "splitter-lease" for right in rule.rights}
        result, sentence = asked(lease="splitter-system")
        assert result - asked()[0] == lease
        assert "update leases.coordination.k8s.io splitter in namespace splitter-system" in sentence


@pytest.mark.parametrize("versions", [("v1beta1",), ("v1beta1", "v1alpha1"), ("v2", "v1")])
def test_splits_of_a_newer_version(versions: tuple[str, ...]) -> None:
    """Where a newer splitter has brought another version of its API, this one does not start."""
    with pytest.raises(SplitterError, match=f"keeps Splits as {versions[0]}") as caught:
        asyncio.run(check_access(Interrogated(lambda _: True, versions), ()))
    assert caught.value.reason is Reason.NEWER_STATE
    assert "Run that version again" in caught.value.message


@pytest.mark.parametrize("versions", [("v1alpha1",), ("v1alpha1", "v1alpha0")])
def test_splits_of_this_version(versions: tuple[str, ...]) -> None:
    """What is preferred is what counts."""
    assert asyncio.run(check_access(Interrogated(lambda _: True, versions), ())) == ()


class TestCheckConnection:
    async def test_version(self) -> None:
        """The first request returns the server's version."""
        script = Script().then(json({"gitVersion": "v1.36.3"}))
        async with connected(script) as client:
            assert await check_connection(client) == "v1.36.3"
        assert script.asked[0].path == "/version"

    @pytest.mark.parametrize(
        ("answer", "reason", "words"),
        [
            (refusal(401, "Unauthorized", "Unauthorized"), Reason.FORBIDDEN, "refuses these credentials"),
            (refusal(403, "Forbidden", "no"), Reason.FORBIDDEN, "refuses these credentials"),
            (hang_up(), Reason.API_UNREACHABLE, "does not answer"),
            (text("not an API", 404), Reason.API_UNREACHABLE, "does not answer"),
        ],
    )
    async def test_failed(self, answer: Answer, reason: Reason, words: str) -> None:
        """What is wrong is said with the server's address and what to check."""
        async with connected(Script().then(answer)) as client:
            with pytest.raises(SplitterError, match=words) as caught:
                await check_connection(client)
            assert client.server in str(caught.value)
        assert caught.value.reason is reason


class TestPatience:
    async def test_until_somebody_answers(self) -> None:
        """While connections break it is asked again; the first answer counts."""
        script = Script().then(*[hang_up()] * 6, json({"gitVersion": "v1.36.3"}))
        async with connected(script) as client:
            assert await patiently(lambda: check_connection(client), 60) == "v1.36.3"
        assert len(script.asked) == 7

    async def test_ends(self, caplog: pytest.LogCaptureFixture) -> None:
        """Afterwards it is said as if it had been asked once; the log has said that it waits, once."""
        script = Script().then(hang_up())
        async with connected(script) as client:
            with pytest.raises(SplitterError, match="does not answer") as caught:
                await patiently(lambda: check_connection(client), 3)
        assert caught.value.reason is Reason.API_UNREACHABLE
        assert len(script.asked) > 4  # more than one question, which is tried four times
        [waits] = [record.message for record in caplog.records if "asked again for 3 s" in record.message]
        assert client.server in waits

    async def test_ends_in_the_middle_of_a_question(self) -> None:
        """A network that swallows everything does not make it longer."""
        async with connected(Script().then(silence()), timeout_s=60) as client:
            with pytest.raises(SplitterError, match=r"has not answered for 0\.2 s") as caught:
                await patiently(lambda: check_connection(client), 0.2)
        assert caught.value.reason is Reason.API_UNREACHABLE

    async def test_not_with_a_refusal(self) -> None:
        """Who is refused is told at once: waiting makes no credentials."""
        script = Script().then(refusal(401, "Unauthorized", "Unauthorized"))
        async with connected(script) as client:
            with pytest.raises(SplitterError, match="refuses these credentials"):
                await patiently(lambda: check_connection(client), 60)
        assert len(script.asked) == 1

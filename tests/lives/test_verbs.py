"""What a person asks splitter itself: what it would do, how it stands, and to have everything back."""

import json
from typing import Any

from e2e.support.causes import quota_used
from e2e.support.refusals import ASKED, REPLICAS, Untouched, condition
from e2e.support.terminal import reported
from lab.fixtures.shop import JsonObject, Shop
from lives.terminal import Terminal


class TestPlan:
    def test_of_one_that_is_refused(self, shop: Shop, admin: Terminal) -> None:
        """The dry run's own words, before anybody has asked the controller; nothing is written."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.kubectl("create", "quota", "few", "--hard=count/replicasets.apps=1")
        shop.until(lambda: quota_used(shop), "the quota to be counted")
        shop.kubectl("label", "deployment", "web", "splitter.io/split=enabled")
        shop.reported("WriteDenied")
        before = Untouched(shop)
        text = reported(admin.splitter("plan", "deploy/web", "-n", shop.namespace))
        assert text.splitlines()[0] == f"{shop.namespace}/web  Refused"
        assert "exceeded quota: few" in text
        assert "would write nothing" in text
        before.verify()

    def test_of_a_namespace_as_json(self, shop: Shop, admin: Terminal) -> None:
        """Each workload of it that is labelled or split, with its counts."""
        for name in ("web", "cart"):
            shop.deploy(name=name, replicas=REPLICAS, annotations=ASKED)
        shop.label("cart")
        shop.wait_split(on_demand=1, spot=2, name="cart")
        shop.wait_steady("cart")
        before = generations(shop)
        (content,) = json.loads(reported(admin.splitter("plan", "-n", shop.namespace, "-o", "json")))
        assert (content["name"], content["state"], content["actions"]) == ("cart", "Steady", [])
        assert content["wanted"] == {"onDemand": 1, "spot": 2}
        assert generations(shop) == before
        everywhere = json.loads(reported(admin.splitter("plan", "-A", "-o", "json")))
        assert (shop.namespace, "cart") in {(one["namespace"], one["name"]) for one in everywhere}

    def test_before_the_label(self, shop: Shop, admin: Terminal) -> None:
        """What the label would bring: how many pods stay, how many move, and what refuses it."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        before = Untouched(shop)
        text = reported(admin.splitter("plan", "web", "-n", shop.namespace))
        assert text.splitlines()[0].endswith("(if it were labelled splitter.io/split=enabled)")
        assert "running pods stay where they are" in text
        assert (
            reported(admin.splitter("plan", "-n", shop.namespace))
            == "no workload is labelled or split here\n"
        )
        before.verify()
        shop.kubectl(
            "patch",
            "deployment",
            "web",
            "-p",
            '{"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}',
        )
        assert "  Refused (if " in reported(admin.splitter("plan", "deploy/web", "-n", shop.namespace))

    def test_of_one_that_is_not_there(self, shop: Shop, admin: Terminal) -> None:
        """Said, with an exit code of its own."""
        answer = admin.splitter("plan", "deploy/web", "-n", shop.namespace)
        assert (answer.returncode, answer.stderr) == (3, f"deployment {shop.namespace}/web is not there\n")


def generations(shop: Shop) -> dict[str, int]:
    """Return the generation of everything that splitter may write, by kind and name: status apart."""
    values: dict[str, int] = {}
    kinds = ("deployments", "replicasets", "splits")
    raws: list[JsonObject] = [
        raw for kind in kinds for raw in json.loads(shop.kubectl("get", kind, "-o", "json"))["items"]
    ]
    for raw in raws:
        values[f"{raw['kind']}/{raw['metadata']['name']}"] = raw["metadata"].get("generation", 0)
    return values


class TestDryRun:
    def test_reports_and_writes_nothing(self, shop: Shop) -> None:
        """The annotation: its Split says what would be done; without it, it is done."""
        shop.deploy(replicas=REPLICAS, annotations={**ASKED, "splitter.io/dry-run": "true"})
        before = Untouched(shop)
        shop.kubectl("label", "deployment", "web", "splitter.io/split=enabled")
        shop.says("DryRun", "would now do: taking over 3 replicas")
        shop.kubectl("label", "deployment", "web", "splitter.io/split-")
        shop.until(lambda: shop.split() is None, "the report to go")
        before.verify()
        shop.label()
        shop.kubectl("annotate", "deployment", "web", "splitter.io/dry-run-")
        shop.wait_split(on_demand=1, spot=2)
        shop.until(lambda: condition(shop, "Eligible")[0] == "True", "the Split to say that it is eligible")


class TestStatus:
    def test_a_line_a_workload(self, shop: Shop, admin: Terminal) -> None:
        """Counts of both pools against what is wanted there."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        shop.wait_steady()
        line = reported(admin.splitter("status", "deploy/web", "-n", shop.namespace)).splitlines()[1]
        assert line.split() == ["web", "3/3", "1/1", "2/2", "0", "Steady", "Balanced"]
        whole: Any = json.loads(reported(admin.splitter("status", "-n", shop.namespace, "-o", "json")))
        assert "Balanced" in json.dumps(whole)


class TestNeighbours:
    def test_one_that_writes_the_workload_whole(self, shop: Shop, admin: Terminal) -> None:
        """Is named by its field manager, with the page to read, by `status` and by `explain`."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        where = ("deploy/web", "-n", shop.namespace)
        for verb in ("status", "explain"):
            assert "pause away" not in reported(admin.splitter(verb, *where))
        path = f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web"
        shop.sandbox.api.patch(path, {"spec": {"replicas": 4}}, field_manager="kapp")
        for verb in ("status", "explain"):
            text = " ".join(reported(admin.splitter(verb, *where)).split())
            assert "kapp writes this workload whole, which takes splitter's pause away" in text
            assert "docs/how-to/beside-other-tools.md" in text
        json.loads(reported(admin.splitter("status", *where, "-o", "json")))


class TestUninstall:
    def test_gives_everything_back(self, shop: Shop, admin: Terminal) -> None:
        """All labels go, it waits, and nothing of splitter's is left; availability is kept meanwhile."""
        before = {}
        for name in ("web", "cart"):
            shop.deploy(name=name, replicas=REPLICAS, annotations=ASKED)
            before[name] = shop.snapshot(name)
            shop.label(name)
        with shop.watch() as web, shop.watch("cart") as cart:
            for name in before:
                shop.wait_split(on_demand=1, spot=2, name=name)
            text = reported(admin.splitter("uninstall", "-n", shop.namespace, "--timeout", "80"))
            assert "everything is given back" in text
            assert all(f"deployment {shop.namespace}/{name}" in text for name in before)
        assert min(web.lowest(), cart.lowest()) >= REPLICAS
        for name, one in before.items():
            now = shop.snapshot(name)
            assert (now.spec, now.labels, now.annotations) == (one.spec, one.labels, one.annotations)
            assert not shop.leftovers(name)
        assert shop.deployments() == set(before)

    def test_says_who_is_still_split(self, shop: Shop, admin: Terminal) -> None:
        """A workload that cannot be given back in time is named, with what to do and a code of its own."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        become_ready(shop, after="1h")
        shop.until(lambda: "1h" in paces(shop), "a rollout, which goes first and does not end")
        answer = admin.splitter("uninstall", "-n", shop.namespace, "--timeout", "1")
        assert answer.returncode == 4
        assert f"{shop.namespace}/web" in answer.stderr
        assert "give-back-by-hand.md" in answer.stderr
        become_ready(shop, after="500ms")
        shop.wait_given_back()


READY_AFTER = "sandbox.splitter.io/ready-after"


def paces(shop: Shop) -> set[str]:
    """Return after how long pods become ready."""
    return {pod["metadata"]["annotations"][READY_AFTER] for pod in shop.pods()}


def become_ready(shop: Shop, after: str) -> None:
    """Roll pods out that become ready after so long."""
    patch = {"spec": {"template": {"metadata": {"annotations": {READY_AFTER: after}}}}}
    shop.kubectl("patch", "deployment", "web", "-p", json.dumps(patch))


class TestAsks:
    """What a person would write as an annotation, written by a verb."""

    def test_restart(self, shop: Shop, admin: Terminal) -> None:
        """Every pod is replaced, and none is missing meanwhile."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        before = shop.pod_uids()
        with shop.watch() as watched:
            assert "restarts" in reported(admin.splitter("restart", "deploy/web", "-n", shop.namespace))
            shop.until(
                lambda: not before & shop.pod_uids(),
                "every pod to be another",
            )
            shop.wait_split(on_demand=1, spot=2)
        assert watched.lowest() >= REPLICAS

    def test_of_one_that_is_refused(self, shop: Shop, admin: Terminal) -> None:
        """Nothing would come of it: it is told why it is not split, and what restarts it."""
        shop.deploy(replicas=REPLICAS, strategy={"type": "Recreate"})
        shop.label()
        shop.says("StrategyRecreate")
        before = shop.deployment()["metadata"]["annotations"]
        for verb in ("restart", "rollout"):
            answer = admin.splitter(verb, "deploy/web", "-n", shop.namespace)
            assert answer.returncode == 3
            assert f"deployment {shop.namespace}/web is labelled and not split" in answer.stderr
            assert "StrategyRecreate" in answer.stderr
        assert shop.deployment()["metadata"]["annotations"] == before

    def test_freeze_and_unfreeze(self, shop: Shop, admin: Terminal) -> None:
        """Frozen, a new count moves nothing and is said; unfrozen, it is followed."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        reported(admin.splitter("freeze", "web", "-n", shop.namespace))
        shop.scale(REPLICAS + 2)
        shop.says("Frozen")
        assert shop.twins() == (1, 2)
        reported(admin.splitter("unfreeze", "web", "-n", shop.namespace))
        shop.wait_split(on_demand=1, spot=4)

    def test_by_label(self, shop: Shop, admin: Terminal) -> None:
        """`-l` freezes, and gives back, those with the label and nobody else; nobody chosen is said."""
        here = ("-n", shop.namespace)
        for name in ("web", "cart"):
            shop.deploy(name=name, replicas=REPLICAS, annotations=ASKED, labels={"team": name})
            shop.label(name)
        for name in ("web", "cart"):
            shop.wait_split(on_demand=1, spot=2, name=name)
        text = reported(admin.splitter("freeze", "-l", "team=web", *here))
        assert f"deployment {shop.namespace}/web is frozen" in text
        assert "cart" not in text
        assert "splitter.io/freeze" not in shop.deployment("cart")["metadata"]["annotations"]
        reported(admin.splitter("unfreeze", "-l", "team", *here))
        assert "splitter.io/freeze" not in shop.deployment()["metadata"]["annotations"]
        nobody = admin.splitter("freeze", "-l", "team=nobody", *here)
        assert (nobody.returncode, nobody.stdout) == (0, "")
        assert nobody.stderr == "no split workload was chosen: nothing is changed\n"
        assert "choose several by -l or -A" in admin.splitter("freeze", *here).stderr
        text = reported(admin.splitter("uninstall", "-l", "team=web", *here, "--timeout", "80"))
        assert text.splitlines()[-1] == "every workload with team=web is given back"
        assert shop.deployments() == {"web", "cart", "cart-on-demand", "cart-spot"}
        assert admin.splitter("status", "cart", *here).returncode == 0

    def test_of_one_that_is_not_split(self, shop: Shop, admin: Terminal) -> None:
        """Nothing is written on a Deployment without the label, nor where there is none."""
        shop.deploy(replicas=REPLICAS)
        before = Untouched(shop)
        for verb in ("restart", "rollout", "freeze", "unfreeze"):
            for name in ("web", "cart"):
                answer = admin.splitter(verb, f"deploy/{name}", "-n", shop.namespace)
                assert answer.returncode == 3
                assert f"deployment {shop.namespace}/{name} is not split" in answer.stderr
        before.verify()

"""`splitter suggest`: what it reads, what it shows, and what it says where it may not read."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from splitter.plugin.cli import app
from unlabelled import World
from world.server import serving

RUN = CliRunner()
HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
SPLITS = "/apis/splitter.io/v1alpha1/splits"
CLEAR = "\x1b[2J"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Serve a cluster of one on-demand and one spot node, both new, and point KUBECONFIG there."""
    result = World()
    result.add_namespace("shop")
    result.add_nodes(age_s=60)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with serving(result.api, tmp_path / "kubeconfig"):
        yield result


def suggest(*reported: str) -> Result:
    """Run the verb."""
    return RUN.invoke(app, ["suggest", *reported])


def reported(*arguments: str) -> dict[str, Any]:
    """Return its JSON about namespace shop."""
    result = suggest("-n", "shop", "-o", "json", *arguments)
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def named(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is suggested by name."""
    return {one["name"]: one for one in answer["workloads"]}


class TestTheAnswer:
    """What is told of each workload."""

    def test_is_a_table_with_reasons_and_commands(self, world: World) -> None:
        """The largest saving first, what is refused last; below each line why, and what to type."""
        world.add_deployment("web", 6, start_s=60)
        world.add_deployment("fast", 2, on_spot=1)
        world.add_deployment("job", 1, spec={"strategy": {"type": "Recreate"}})
        result = suggest("-n", "shop")
        assert result.exit_code == 0
        lines = result.stdout.splitlines()
        assert lines[:10] == [
            "WORKLOAD  N  VCPU  GIB  START  ON-DEMAND  SPOT  MOVES  SAVING  LOST/MONTH",
            "fast      2   1.0  2.0   10 s          0     2      1    69 %         0 s",
            "  its pods start in 10 s and a notice lasts 30 s, so all can be on spot",
            "    kubectl -n shop annotate deployment fast splitter.io/on-demand-base=0",
            "    kubectl -n shop label deployment fast splitter.io/split=enabled",
            "web       6   3.0  6.0   60 s          3     3      3    34 %      2700 s",
            "  its pods start in 60 s and a notice lasts 30 s, so 3 of 6 on on-demand serve through the gap",
            "    kubectl -n shop annotate deployment web splitter.io/on-demand-base=3",
            "    kubectl -n shop label deployment web splitter.io/split=enabled",
            "job       1   0.5  1.0   10 s          -     -      -       -           -",
        ]
        assert lines[10].startswith("  refused: a handover runs pods of two generations at a time")
        assert lines[10].endswith("set spec.strategy.type to RollingUpdate (StrategyRecreate)")
        assert "splitter simulate --outage every=24h,last=10m,days=1,nodes=N --notice 30" in result.stdout
        assert result.stderr == ""

    def test_leaves_out_what_is_labelled_or_split(self, world: World) -> None:
        """And what is on its way: a Split may outlive the label for a moment."""
        world.add_deployment("web")
        world.add_deployment("split", labels={"splitter.io/split": "enabled"})
        world.add_deployment("web-spot", labels={"splitter.io/split": "twin", "splitter.io/pool": "spot"})
        back = world.add_deployment("back")
        owner = {"kind": "Deployment", "name": "back", "uid": back["metadata"]["uid"]}
        world.add(
            SPLITS,
            "back",
            metadata={"ownerReferences": [owner]},
            spec={
                "source": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "back"},
                "takeOver": True,
            },
            status={"state": "GivingBack", "desired": 4},
        )
        assert list(named(reported())) == ["web"]

    def test_goes_by_what_stands_beside_a_workload(self, world: World) -> None:
        """A budget, an autoscaler, a foreign twin's name, a volume, a policy on the Namespace."""
        for name in ("web", "scaled", "taken", "disk"):
            disk = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}
            raw = world.add_deployment(name, 6, start_s=60)
            if name == "disk":
                raw["spec"]["template"]["spec"] |= disk
        world.add_deployment("taken-spot", 1)
        budget = {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}}
        world.add(BUDGETS, "calm", spec=budget)
        world.add(HPAS, "busy", spec={"scaleTargetRef": {"kind": "Deployment", "name": "scaled"}})
        world.add("/api/v1/persistentvolumeclaims", "d", spec={"accessModes": ["ReadWriteOnce"]})
        found_by = named(reported())
        assert found_by["web"]["policy"] == {"splitter.io/on-demand-base": "4"}
        assert "PodDisruptionBudget calm" in found_by["web"]["why"]
        assert found_by["scaled"]["policy"] == {"splitter.io/spot-percent": "50"}
        assert found_by["scaled"]["why"].endswith("HorizontalPodAutoscaler/busy changes the count")
        assert found_by["taken"]["reason"] == "TwinNameTaken"
        assert found_by["disk"]["reason"] == "VolumeReadWriteOnce"
        assert found_by["taken-spot"]["eligible"]

    def test_takes_the_policy_of_the_namespace(self, world: World) -> None:
        """What is annotated there is in force, and not proposed again."""
        world.add_namespace("bank", **{"splitter.io/spot-percent": "50"})
        world.add_deployment("web", namespace="bank")
        (one,) = json.loads(suggest("-A", "-o", "json").stdout)["workloads"]
        assert (one["policy"], one["wanted"]) == ({}, {"onDemand": 2, "spot": 2})
        assert one["commands"] == ["kubectl -n bank label deployment web splitter.io/split=enabled"]

    def test_of_stateful_sets(self, world: World) -> None:
        """Placed where the policy is there; refused, with what to apply, where it is not."""
        world.add_stateful_set("db")
        assert named(reported())["db"]["reason"] == "PlacementUnsupported"
        world.add_policy()
        result = named(reported())["db"]
        assert (result["eligible"], result["mode"], result["moves"]) == (
            True,
            "placement",
            {"toSpot": 1, "toOnDemand": 0},
        )

    def test_takes_the_notice_of_the_spot_nodes(self, world: World) -> None:
        """Only of those: here they are of AWS, two minutes."""
        world.remove_nodes()
        world.add_nodes(provider="aws", age_s=60)
        world.add_deployment("web", 6, start_s=60)
        answer = reported()
        assert answer["assumed"]["noticeSeconds"] == 120
        assert named(answer)["web"]["wanted"] == {"onDemand": 0, "spot": 6}

    def test_says_where_there_is_no_spot(self, world: World) -> None:
        """Nothing could move: that is said first, with the setting."""
        world.remove_nodes()
        world.add_nodes(spot=0)
        world.add_deployment("web")
        first = suggest("-n", "shop").stdout.splitlines()[0]
        assert first.startswith("! no node of the cluster is recognised as spot (")
        assert "spot_selectors" in first

    def test_promises_nothing_where_a_pool_takes_no_replica(self, world: World) -> None:
        """Pinned to spot it is refused; what the nodes of now do not take has a warning and no figures."""
        for name, selector in (("pinned", {"karpenter.sh/capacity-type": "spot"}), ("ssd", {"disk": "ssd"})):
            labels = {"app": name}
            pod = {"containers": [{"name": "web"}], "nodeSelector": selector}
            world.add_deployment(name, spec={"template": {"metadata": {"labels": labels}, "spec": pod}})
        found_by = named(reported())
        assert (found_by["pinned"]["refused"], found_by["pinned"]["reason"]) == (True, "CoverImpossible")
        assert found_by["pinned"]["savingPercent"] is None
        assert (found_by["ssd"]["refused"], found_by["ssd"]["savingPercent"]) == (False, None)
        assert "cover is impossible with the nodes that there are" in found_by["ssd"]["advice"][0]

    def test_is_of_what_is_chosen(self, world: World) -> None:
        """-n looks at one namespace, -A at all, and names them."""
        world.add_namespace("bank")
        for namespace in ("shop", "bank"):
            world.add_deployment("web", namespace=namespace)
        assert suggest("-n", "bank").stdout.splitlines()[1].startswith("web ")
        lines = suggest("-A").stdout.splitlines()
        assert [line.split()[0] for line in lines if "/web " in line] == ["bank/web", "shop/web"]

    def test_leaves_out_kubernetes_and_splitter(self, world: World) -> None:
        """Asked about all namespaces; who names one of them is told why its workloads are refused."""
        for namespace in ("kube-system", "splitter-system"):
            world.add_namespace(namespace)
            world.add_deployment("system", namespace=namespace)
        world.add_deployment("web")
        assert "system" not in suggest("-A").stdout
        assert "refused: " in suggest("-n", "kube-system").stdout


class TestInterruptions:
    """What the saving and the losses rest on: the best that is known, and it is said which."""

    def test_of_new_nodes_are_invented(self, world: World) -> None:
        """Nothing can be told from a node that came a minute ago."""
        world.add_deployment("web", 6, start_s=60)
        out = suggest("-n", "shop").stdout
        assert "Interruptions: invented." in out
        assert "Your 1 spot nodes are 1 min old on average, which tells nothing yet." in out
        assert reported()["assumed"]["interruptions"] == "assumed"

    def test_go_by_the_ages_of_spot_nodes(self, world: World) -> None:
        """They are lower bounds, and nodes that went are not seen: both is said."""
        world.remove_nodes()
        world.add_nodes(spot=3, age_s=9000)
        world.add_deployment("web", 6, start_s=60)
        out = suggest("-n", "shop").stdout
        assert "as the ages of your 3 spot nodes tell, 2.5 h on average" in out
        assert "nodes that went before are not seen" in out
        answer = reported()
        assert answer["assumed"]["interruptions"] == "nodes"
        short = named(answer)["web"]["lostReplicaSecondsPerMonth"]
        world.remove_nodes()
        world.add_nodes(spot=3, age_s=90_000)
        assert 0 < named(reported())["web"]["lostReplicaSecondsPerMonth"] < short / 5

    def test_follow_a_trace_that_is_given(self, world: World, tmp_path: Path) -> None:
        """Whatever the nodes say."""
        file = tmp_path / "calm.json"
        counts = {"metadata": {"gap_seconds": 3600}, "data": [4, 4, 0, *[4] * 21]}
        file.write_text(json.dumps(counts), encoding="utf-8")
        world.add_deployment("web", 6, start_s=60)
        answer = reported("--trace", str(file))
        assert (answer["assumed"]["interruptions"], answer["assumed"]["trace"]) == ("file", "calm")
        assert "Interruptions: as in trace calm," in suggest("-n", "shop", "--trace", str(file)).stdout

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "has no changes"),
            ("a,b,c\n", "line 1"),
            ("{}", "metadata.gap_seconds"),
            ('{"metadata": {"gap_seconds": 60}, "data": [0, 0]}', "has no node"),
            ("0,add,node1\n", "has no node for any length of time"),
            (None, "No such file"),
        ],
    )
    def test_a_trace_that_cannot_be_read(
        self, world: World, tmp_path: Path, text: str | None, words: str
    ) -> None:
        """One sentence on standard error and exit code 1, before anything is asked of the cluster."""
        file = tmp_path / "bad.csv"
        if text is not None:
            file.write_text(text, encoding="utf-8")
        result = suggest("-n", "shop", "--trace", str(file))
        assert result.exit_code == 1
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert world.api.asked == []


class TestWhereNothingCanBeShown:
    """Bad input, and rights that are missing."""

    @pytest.mark.parametrize(
        ("plural", "lost"),
        [
            ("nodes", "how many pods would change pool is not shown"),
            ("pods", "start times, and how many pods would change pool, are not shown"),
            ("replicasets", "start times, and how many pods would change pool, are not shown"),
            ("poddisruptionbudgets", "no proposal goes by their minAvailable"),
            ("horizontalpodautoscalers", "nobody is said to change a count"),
            ("namespaces", "a policy that is annotated on a Namespace is not known"),
            ("statefulsets", "no StatefulSet is shown"),
        ],
    )
    def test_a_missing_right_is_told(self, world: World, plural: str, lost: str) -> None:
        """What it costs; all else is shown."""
        world.add_deployment("web")
        world.api.forbidden = {plural}
        answer = reported()
        assert answer["notShown"] == [f"these credentials may not list {plural}: {lost}"] or (
            plural == "nodes" and answer["notShown"][0].endswith("the shortest notice is assumed")
        )
        moves = named(answer)["web"]["moves"]
        assert (moves["toSpot"] is None) is (plural in {"nodes", "pods", "replicasets"})
        assert f"! these credentials may not list {plural}" in suggest("-n", "shop").stdout

    def test_a_policy_that_may_not_be_seen_is_assumed(self, world: World) -> None:
        """The controller may see it."""
        world.add_stateful_set("db")
        world.add_policy()
        world.api.forbidden = {"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
        answer = reported()
        assert named(answer)["db"]["eligible"]
        assert any("is assumed to be there" in one for one in answer["notShown"])

    def test_without_deployments_there_is_nothing(self, world: World) -> None:
        """One sentence, and exit code 1."""
        world.api.forbidden = {"deployments"}
        result = suggest("-A")
        assert result.exit_code == 1
        assert "may not list Deployments in all namespaces; name one with -n" in str(result.exception)

    def test_a_namespace_that_is_not_there(self, world: World) -> None:
        """One sentence, and exit code 1."""
        assert world.api.forbidden == set()
        result = suggest("-n", "nowhere")
        assert result.exit_code == 1
        assert '"nowhere" not found' in str(result.exception)

    def test_no_workload_is_a_sentence(self, world: World) -> None:
        """And an empty list for programs."""
        world.add_deployment("split", labels={"splitter.io/split": "enabled"})
        assert suggest("-n", "shop").stdout == "no workload without the label is here\n"
        assert reported()["workloads"] == []

    def test_a_cluster_without_splitter(self, world: World) -> None:
        """All is shown: this is what one asks before it is installed."""
        world.api.missing.add("splitter.io")
        world.add_deployment("web")
        answer = reported()
        assert answer["notShown"] == [
            "splitter is not installed in this cluster: a label does nothing until it is"
        ]
        assert named(answer)["web"]["eligible"]

    def test_pods_that_are_not_ready_show_no_start(self, world: World) -> None:
        """A question mark, and a cautious base."""
        world.add_deployment("web", start_s=None)
        assert "     ?  " in suggest("-n", "shop").stdout.splitlines()[1]
        result = named(reported())["web"]
        assert (result["startSeconds"], result["wanted"]["onDemand"]) == (None, 1)


class TestWhatTenantsWrite:
    """Names and words of others are shown, and move nothing."""

    def test_is_escaped(self, world: World) -> None:
        """A controller's name may be any text: no escape reaches the terminal, nor a line of its own."""
        owner = {"kind": f"Evil{CLEAR}", "name": "x\nshop/web 4/4", "uid": "1", "controller": True}
        world.add_deployment("web", ownerReferences=[owner])
        out = suggest("-n", "shop").stdout
        assert "\\x1b[2J/x\\nshop/web 4/4 owns this Deployment" in out
        assert "\x1b" not in out
        assert "\x1b" not in suggest("-n", "shop", "-o", "json").stdout

    def test_is_left_out_where_it_cannot_be_read(self, world: World) -> None:
        """One odd object hides no other."""
        world.add_deployment("odd", spec={"replicas": "many"})
        world.add_deployment("web")
        assert list(named(reported())) == ["web"]


class TestTheLists:
    """What the API server is asked."""

    def test_are_read_page_by_page(self, world: World) -> None:
        """No page is larger than 500, and no workload costs a request of its own."""
        for number in range(300):
            world.add_deployment(f"web-{number}", 2)
        assert len(reported()["workloads"]) == 300
        assert world.api.largest_page == 500
        assert len(world.api.asked) < 25

    def test_are_read_only(self, world: World) -> None:
        """The server knows GET alone, and answers anything else with an error."""
        world.add_deployment("web")
        assert suggest("-n", "shop").exit_code == 0


def test_progress_is_shown_on_a_terminal_only(world: World) -> None:
    """On standard error; standard output is the answer alone, as it is without a terminal."""
    world.add_deployment("web")
    command = [sys.executable, "-m", "splitter", "suggest", "-n", "shop"]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    ran = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=theirs, env=environment, check=True, timeout=60
    )
    os.close(theirs)
    shown = os.read(ours, 65536)
    os.close(ours)
    assert b"looking" in shown or b"reading" in shown
    piped = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert (piped.stdout, piped.stderr) == (ran.stdout, b"")

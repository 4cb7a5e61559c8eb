"""`splitter render deploy/web`: what a template set would make of a workload in a cluster, before it does."""

import json
from pathlib import Path

import pytest

from e2e.support.refusals import ASKED, REPLICAS
from e2e.support.template_sets import NO_IMAGE, ON_DEMAND, Running, with_grace
from e2e.support.terminal import Answer, Terminal, reported
from lab.fixtures.shop import JsonObject, Shop

pytestmark = pytest.mark.e2e

DIFFERS = 5


@pytest.fixture
def split(shop: Shop) -> Shop:
    """Return the shop with web split into 1 + 2."""
    shop.deploy(replicas=REPLICAS, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=2)
    return shop


def written(folder: Path, spot: str) -> Path:
    """Return a file with the set `mine`, as its author has it before anybody else."""
    labels, annotations = {"splitter.io/template-set": "enabled"}, {"splitter.io/namespaces": "*"}
    values: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
    values["metadata"] = {"name": "mine", "labels": labels, "annotations": annotations}
    values["data"] = {"deployment.on-demand.yaml.j2": ON_DEMAND, "deployment.spot.yaml.j2": spot}
    file = folder / "mine.yaml"
    file.write_text(json.dumps(values))
    return file


def diff(shop: Shop, admin: Terminal, *options: str) -> Answer:
    """Ask what would change."""
    return admin.splitter("render", "deploy/web", "-n", shop.namespace, "--diff", *options)


def test_of_one_that_is_split(split: Shop, admin: Terminal, viewer: Terminal, tmp_path: Path) -> None:
    """Just what would change about the twins, by the set and policy asked; nothing is written.

    Without `--diff` they are as the controller has rendered them, by the policy in force: the Namespace's
    defaults too. A look is free. Who may not write a Deployment may not have it tried either, and is told so.
    """
    before = Running(split)
    assert reported(diff(split, admin)) == ""  # as they would be rendered
    file = written(tmp_path, with_grace(9))
    answer = diff(split, admin, "--templates", str(file), "--annotation", "template=mine")
    assert answer.returncode == DIFFERS, answer.stderr
    changed = [line for line in answer.stdout.splitlines() if line[0] in "+-"]
    assert changed == [
        "--- live/web-spot",
        "+++ rendered/web-spot",
        "-      terminationGracePeriodSeconds: 5",
        "+      terminationGracePeriodSeconds: 9",
    ]
    answer = diff(split, admin, "--annotation", "spot-affinity=preferred", "--pool", "spot")
    assert answer.returncode == DIFFERS, answer.stderr
    assert "+          preferredDuringSchedulingIgnoredDuringExecution:" in answer.stdout.splitlines()
    file = written(tmp_path, NO_IMAGE)
    answer = diff(split, admin, "--templates", str(file), "--annotation", "template=mine")
    assert answer.returncode == 1
    assert 'as the template set "mine" renders it' in answer.stderr
    assert "spec.template.spec.containers[1].image: Required value" in answer.stderr
    before.verify()
    split.kubectl("annotate", "namespace", split.namespace, "splitter.io/spot-affinity=preferred")
    text = reported(viewer.splitter("render", "deploy/web", "-n", split.namespace, "--pool", "spot"))
    assert text.startswith("# 2 of 3 replicas when all is well; splitter writes the number\n")
    assert "preferredDuringSchedulingIgnoredDuringExecution" in text
    answer = diff(split, viewer)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "cannot patch resource" in answer.stderr

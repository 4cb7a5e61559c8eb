"""`splitter render`: a manifest in, twins out, no cluster."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from splitter.assembly import renderer_of
from splitter.bundled import bundled_path
from splitter.core.labels_annotations.policy import Policy
from splitter.core.replica import Pool
from splitter.core.template_sets import from_config_map
from splitter.plugin.cli import app
from splitter.settings.loading import load_settings

RUN = CliRunner()
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations:
    splitter.io/on-demand-base: "2"
    splitter.io/spot-percent: "80"
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {day: 2026-01-31}}
    spec: {containers: [{name: web, image: web:1}]}
"""


def render(text: str, *arguments: str) -> tuple[int, list[dict[str, dict[str, object]]], str]:
    """Return the exit code, the twins, and what was said on standard error."""
    invoked = RUN.invoke(app, ["render", "-f", "-", *arguments], input=text)
    return invoked.exit_code, list(yaml.safe_load_all(invoked.stdout)), invoked.stderr


class TestTheTwins:
    """What comes out."""

    def test_are_both(self) -> None:
        """On-demand first; each with its share in a comment."""
        code, twins, said = render(DEPLOYMENT)
        assert [twin["metadata"]["name"] for twin in twins] == ["web-on-demand", "web-spot"]
        assert (code, said) == (0, "")
        result = RUN.invoke(app, ["render", "-f", "-"], input=DEPLOYMENT).stdout
        assert result.startswith("# 4 of 10 replicas when all is well; splitter writes the number\n")

    def test_can_be_one(self) -> None:
        """--pool spot; an annotation of the command line wins over the manifest's."""
        _, [twin], _ = render(DEPLOYMENT, "--pool", "spot", "--annotation", "spot-affinity=preferred")
        assert "preferredDuringSchedulingIgnoredDuringExecution" in yaml.safe_dump(twin)

    def test_come_from_a_file_and_settings(self, tmp_path: Path) -> None:
        """Settings choose providers; the file may hold a byte order mark."""
        manifest, settings = tmp_path / "web.yaml", tmp_path / "settings.yaml"
        manifest.write_text("\ufeff" + DEPLOYMENT, encoding="utf-8")
        settings.write_text("provider_presets: [eks]\n", encoding="utf-8")
        invoked = RUN.invoke(app, ["render", "-f", str(manifest), "--settings", str(settings)])
        assert "eks.amazonaws.com/capacityType" in invoked.stdout
        assert "gke" not in invoked.stdout


class TestTemplateSets:
    """Sets of one's own, before a cluster has them."""

    @staticmethod
    def written(folder: Path, spot: str = "spec: {}", **metadata: object) -> Path:
        """Return a file with the set `mine`."""
        head = "apiVersion: apps/v1\nkind: Deployment\n"
        labels, annotations = {"splitter.io/template-set": "enabled"}, {"splitter.io/namespaces": "shop"}
        data = {f"deployment.{pool}.yaml.j2": f"{head}{spot}\n" for pool in ("on-demand", "spot")}
        values = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        values["metadata"] = {"name": "mine", "labels": labels, "annotations": annotations, **metadata}
        file = folder / "mine.yaml"
        file.write_text(f"{SERVICE}---\n{yaml.safe_dump(values)}", encoding="utf-8")
        return file

    def test_come_from_config_maps(self, tmp_path: Path) -> None:
        """A file's ConfigMap is the set that the annotation names; its other documents are nobody's."""
        file = self.written(tmp_path, "spec: {minReadySeconds: 77}")
        code, twins, said = render(DEPLOYMENT, "--templates", str(file), "--annotation", "template=mine")
        assert (code, said) == (0, "")
        assert [twin["spec"]["minReadySeconds"] for twin in twins] == [77, 77]

    def test_are_named(self, tmp_path: Path) -> None:
        """A set in the file that the manifest does not name is not used, and that is said."""
        code, twins, said = render(DEPLOYMENT, "--templates", str(self.written(tmp_path)))
        assert (code, len(twins)) == (0, 2)
        assert said == (
            "standard input, line 1: Deployment web uses the template set default; to try the other,"
            " add --annotation template=mine\n"
        )

    def test_come_from_folders(self, tmp_path: Path) -> None:
        """A folder stands for the one that travels with splitter."""
        folder = tmp_path / "default" / "deployment"
        folder.mkdir(parents=True)
        for pool in ("on-demand", "spot"):
            (folder / f"{pool}.yaml.j2").write_text("apiVersion: apps/v1\nkind: Deployment\n")
        _, twins, _ = render(DEPLOYMENT, "--templates", str(tmp_path))
        assert all("minReadySeconds" not in twin["spec"] for twin in twins)
        assert "containers" not in yaml.safe_dump(twins)

    @pytest.mark.parametrize(
        ("metadata", "sentence"),
        [
            ({"labels": {}}, 'ConfigMap mine: the label splitter.io/template-set is ""; write "enabled"'),
            ({"name": "default"}, "a set of this name travels with splitter and is used instead"),
            (
                {"namespace": "home", "annotations": {"splitter.io/namespaces": "A"}},
                "ConfigMap home/mine: the",
            ),
        ],
    )
    def test_are_checked(self, tmp_path: Path, metadata: dict[str, object], sentence: str) -> None:
        """What the controller would say about the ConfigMap is said here, used or not."""
        file = self.written(tmp_path, "spec: {}", **metadata)
        code, twins, said = render(DEPLOYMENT, "--templates", str(file))
        assert (code, twins) == (1, [])
        assert sentence in said

    def test_are_told_of_a_limit(self, tmp_path: Path) -> None:
        """Before anybody uses the set: a template runs within the controller's limits here too."""
        file = tmp_path / "set.yaml"
        bomb = '{{ "%1000000000d" % 1 }}'
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "bomb",
                "labels": {"splitter.io/template-set": "enabled"},
                "annotations": {"splitter.io/namespaces": "*"},
            },
            "data": {f"deployment.{pool.value}.yaml.j2": bomb for pool in Pool},
        }
        file.write_text(yaml.safe_dump(config_map), encoding="utf-8")
        arguments = ("--templates", str(file), "--annotation", "template=bomb")
        invoked = RUN.invoke(app, ["render", "-f", "-", *arguments], input=DEPLOYMENT)
        assert invoked.stdout == ""
        assert "line 1: rendering it reached the limit of memory, 128 MiB" in str(invoked.exception)

    def test_are_in_the_file(self, tmp_path: Path) -> None:
        """A file without any is named."""
        file = tmp_path / "service.yaml"
        file.write_text(SERVICE, encoding="utf-8")
        code, _, said = render(DEPLOYMENT, "--templates", str(file))
        assert code == 1
        assert "service.yaml holds no template set; one is a ConfigMap with the label" in said

    def test_have_a_worked_example(self) -> None:
        """The templates of the tutorial: half the memory and more time, for the spot twin alone."""
        folder = bundled_path("examples")
        templates = sorted((folder / "template-set").glob("*.j2"))
        made = yaml.safe_load((folder / "template-set" / "kustomization.yaml").read_text())
        (generated,) = made["configMapGenerator"]
        assert generated["files"] == [path.name for path in templates]
        options = generated["options"]
        template_set = from_config_map(
            made["namespace"],
            generated["name"],
            labels=options["labels"],
            annotations=options["annotations"],
            texts={path.name: path.read_text() for path in templates},
        )
        assert template_set.faults == ()
        web = next(yaml.safe_load_all((folder / "shop" / "web.yaml").read_text()))
        web["metadata"]["namespace"] = "shop"
        renderer = renderer_of(load_settings(environment={}), {"lean": template_set})
        on_demand, spot = (
            yaml.safe_load(renderer.render(web, pool, Policy(template_set="lean")).manifest_json)["spec"][
                "template"
            ]["spec"]
            for pool in Pool
        )
        assert on_demand["terminationGracePeriodSeconds"] == 10
        assert spot["terminationGracePeriodSeconds"] == 90
        assert on_demand["containers"][0]["resources"]["requests"] == {"cpu": "200m", "memory": "128Mi"}
        assert spot["containers"][0]["resources"]["requests"] == {"cpu": "200m", "memory": "64Mi"}
        assert spot["containers"][0]["image"] == on_demand["containers"][0]["image"]


class TestUsage:
    """A file or a workload, never both or neither."""

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ((), "name either a workload, such as deploy/web, or a file with -f"),
            (("deploy/web", "-f", "-"), "name either a workload, such as deploy/web, or a file with -f"),
            (("-f", "-", "--diff"), "--diff compares with a cluster: name a workload, such as"),
        ],
    )
    def test_is_told(self, arguments: tuple[str, ...], sentence: str) -> None:
        """Exit code 2."""
        invoked = RUN.invoke(app, ["render", *arguments], env={"COLUMNS": "200", "TERM": "dumb"})
        assert invoked.exit_code == 2
        assert sentence in " ".join(invoked.stderr.replace("│", " ").split())


class TestOtherDocuments:
    """Files hold more than Deployments."""

    def test_are_named_and_skipped(self) -> None:
        """Each with its line; empty documents in silence."""
        code, twins, said = render(f"{SERVICE}---\n# nothing\n---\n{DEPLOYMENT}")
        assert (code, len(twins)) == (0, 2)
        why = "only apps/v1 Deployments and StatefulSets are split"
        assert said == f"standard input, line 1: Service web is skipped; {why}\n"

    def test_stateful_sets_are_split_too(self) -> None:
        """Each twin is a StatefulSet, the spot one numbered far above the other."""
        manifest = Path(__file__).parents[2] / "templates" / "statefulset.input.yaml"
        text = manifest.read_text(encoding="utf-8")
        code, twins, _ = render(text)
        assert code == 0
        assert [twin["metadata"]["name"] for twin in twins] == ["db-on-demand", "db-spot"]
        assert [twin["spec"]["ordinals"] for twin in twins] == [{"start": 0}, {"start": 1000}]

    def test_placed_stateful_sets_have_no_twins(self) -> None:
        """Said with what to do, and skipped; with nothing else in the file that is the end."""
        manifest = Path(__file__).parents[2] / "templates" / "statefulset.input.yaml"
        text = manifest.read_text(encoding="utf-8").replace("    splitter.io/mode: twins\n", "")
        code, twins, said = render(f"{DEPLOYMENT}---\n{text}")
        assert (code, [twin["metadata"]["name"] for twin in twins]) == (0, ["web-on-demand", "web-spot"])
        assert "StatefulSet db is skipped; it is split by placement, which makes no twins" in said
        code, _, said = render(text)
        assert code == 1
        assert said.endswith("splitter render: standard input holds nothing that is split into twins\n")
        code, twins, _ = render(text, "--annotation", "mode=twins")
        assert (code, len(twins)) == (0, 2)

    def test_are_read_as_kubectl_reads_them(self) -> None:
        """A definition of a kind with `- =` beside it; words that look like times, numbers and booleans."""
        other = "kind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {enum: [=, '!=', =~]}\n"
        pods = DEPLOYMENT.replace("image: web:1", "image: web:1, args: [--from, 12:30]")
        pods = pods.replace("{labels: {app: web}", '{labels: {app: web, sha: "81111e1", opted: "y"}')
        invoked = RUN.invoke(app, ["render", "-f", "-", "--pool", "spot"], input=f"{other}---\n{pods}")
        assert invoked.exit_code == 0
        for line in ("sha: '81111e1'", "opted: 'y'", "- '12:30'"):
            assert f" {line}\n" in invoked.stdout

    def test_may_be_a_list(self) -> None:
        """What `kubectl get -o yaml` prints; a twin is not split again."""
        twin = DEPLOYMENT.replace("  name: web\n", "  name: web-spot\n  labels: {splitter.io/split: twin}\n")
        items = [yaml.safe_load(SERVICE), yaml.safe_load(DEPLOYMENT), yaml.safe_load(twin)]
        items[1]["spec"]["template"]["metadata"]["annotations"] = {}
        items[2]["spec"]["template"]["metadata"]["annotations"] = {}
        code, twins, said = render(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
        assert (code, len(twins)) == (0, 2)
        assert "Deployment web-spot is skipped; it is a twin itself" in said


class TestRefusals:
    """Exit code 1, one sentence with the line, no traceback."""

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (DEPLOYMENT.replace('"80"', '"80%"'), "line 7: InvalidAnnotation: splitter.io/spot-percent is"),
            (DEPLOYMENT.replace('"80"', "80"), "line 7: the annotation splitter.io/spot-percent is no text"),
            (DEPLOYMENT.replace("replicas: 10", "replicas: ten"), "line 1: spec.replicas is 'ten'"),
            (DEPLOYMENT.replace("  name: web\n", ""), "line 1: metadata.name is missing"),
            (DEPLOYMENT.replace("spec:\n", "apec:\n"), "line 1: Deployment web has no spec"),
            (DEPLOYMENT + "   x: [\n", "line 14: this is no YAML"),
            ("- a\n", "line 1: this is no manifest"),
            (SERVICE, "holds no Deployment"),
            ("", "holds no Deployment"),
            ("a: \x00", "this is no YAML"),
        ],
    )
    def test_name_the_line(self, text: str, sentence: str) -> None:
        """Where, what, and what to write."""
        code, twins, said = render(text)
        assert (code, twins) == (1, [])
        assert said.splitlines()[-1].startswith("splitter render: standard input")
        assert sentence in said

    @pytest.mark.parametrize(
        ("was", "now", "sentence"),
        [
            (
                "  selector: {matchLabels: {app: web}}\n",
                "",
                "has no spec.selector, which the API server requires",
            ),
            (
                "{containers: [{name: web, image: web:1}]}",
                "{}",
                "has no spec.template.spec.containers, which",
            ),
            (", image: web:1", "", "has no spec.template.spec.containers[0].image, which"),
            (
                "{matchLabels: {app: web}}",
                "{matchLabels: {app: shop}}",
                "selects pods by app=shop, which spec",
            ),
            (
                "{labels: {app: web}",
                "{labels: {app: web, sha: 81111e1}",
                "says 811110 at spec.template.metadata",
            ),
        ],
    )
    def test_name_what_is_missing(self, was: str, now: str, sentence: str) -> None:
        """A patch, or what the API server would not take either: it is no fault of a template."""
        code, twins, said = render(f"{SERVICE}---\n{DEPLOYMENT.replace(was, now)}")
        assert (code, twins) == (1, [])
        assert f"splitter render: standard input, line 5: Deployment web {sentence}" in said
        assert ("Is it a patch?" in said) is sentence.startswith("has no")
        assert "TemplateInvalid" not in said

    def test_name_every_bad_annotation(self) -> None:
        """Two faults, two lines; one on the command line has none."""
        text = DEPLOYMENT.replace('"80"', '"80%"').replace('"2"', '"x"')
        _, _, said = render(text)
        assert "line 6: " in said
        assert "line 7: " in said
        _, _, said = render(DEPLOYMENT, "--annotation", "soak=x")
        assert said.startswith("splitter render: InvalidAnnotation: splitter.io/soak is ")

    def test_name_a_file_that_is_not_there(self) -> None:
        """A path, and why."""
        invoked = RUN.invoke(app, ["render", "-f", "/nowhere/web.yaml"])
        assert invoked.stderr == "splitter render: /nowhere/web.yaml: No such file or directory\n"

    def test_name_the_line_of_a_template(self, tmp_path: Path) -> None:
        """A template that fails: file, line, reason, and no traceback."""
        template = tmp_path / "templates" / "default" / "deployment" / "spot.yaml.j2"
        template.parent.mkdir(parents=True)
        template.write_text("apiVersion: apps/v1\nkind: {{ nothing }}\n", encoding="utf-8")
        (tmp_path / "settings.yaml").write_text(f"templates_dir: {tmp_path}/templates\n", encoding="utf-8")
        ran = subprocess.run(
            [
                sys.executable,
                "-m",
                "splitter",
                *("render", "-f", "-", "--pool", "spot"),
                "--settings",
                "settings.yaml",
            ],
            cwd=tmp_path,
            input=DEPLOYMENT,
            env={"PATH": "", "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.returncode == 1
        assert (
            "TemplateInvalid: default/deployment/spot.yaml.j2, line 2: 'nothing' is undefined" in ran.stderr
        )
        assert "Traceback" not in ran.stderr

"""What `make release` packs without Helm and without kustomize is what these would make of the same files."""

import io
import subprocess
import tarfile
from pathlib import Path

import yaml

from chart.rendered import Objects, objects
from e2e.support.helm import CHART, RELEASE, Helm
from lab.fixtures.shop import DEADLINE_S
from lab.sandbox import build
from release import artifacts
from release.archives import gzipped, tar
from release.scratch import ROOT
from release.versions import current
from splitter.bundled import bundled_path

IMAGE = "registry.example/team/splitter"


def packaged(into: Path, image: str) -> Path:
    """Pack the chart as a release does and return the archive."""
    path = into / "ours.tgz"
    path.write_bytes(gzipped(tar(artifacts.chart(ROOT, image), epoch=0), epoch=0))
    return path


def members(path: Path) -> dict[str, bytes]:
    """Return the files of a packed chart."""
    with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as archive:
        by_name = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in by_name.items() if file is not None}


class TestChart:
    def test_is_what_helm_packs(self, tmp_path: Path) -> None:
        """The same files with the same bytes; of Chart.yaml, which Helm writes anew, the same content."""
        helm = Helm(None, tmp_path)
        helm("package", str(CHART), "--destination", str(tmp_path))
        [theirs] = tmp_path.glob("splitter-*.tgz")
        collected, expected = members(packaged(tmp_path, "splitter")), members(theirs)
        one, other = (files.pop("splitter/Chart.yaml") for files in (collected, expected))
        assert yaml.safe_load(one) == yaml.safe_load(other)
        assert len(collected) > 20
        assert collected == expected

    def test_names_the_image(self, tmp_path: Path) -> None:
        """Helm renders the packed chart; nothing but the image is different from the folder's."""
        helm = Helm(None, tmp_path)
        ours = helm("template", RELEASE, str(packaged(tmp_path, IMAGE)))
        assert ours.replace(f"{IMAGE}:", "splitter:") == helm("template", RELEASE, str(CHART))
        assert f"image: {IMAGE}:{current(ROOT)}" in ours.replace('"', "")


class TestManifests:
    def test_are_what_kustomize_makes(self) -> None:
        """Object by object, but for the image that was asked for."""
        ours = objects(artifacts.manifests(ROOT, current(ROOT), IMAGE))
        answer = subprocess.run(
            [build.programs(print).kubectl, "kustomize", bundled_path("manifests")],
            env={},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        theirs = objects(answer.stdout)
        assert self._image_taken(ours) == f"{IMAGE}:{current(ROOT)}"
        assert self._image_taken(theirs) == f"splitter:{current(ROOT)}"
        assert ours == theirs

    @staticmethod
    def _image_taken(result: Objects) -> str:
        [deployment] = [raw for raw in result.values() if raw["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        image: str = container.pop("image")
        return image

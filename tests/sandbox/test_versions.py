"""Which Kubernetes is run, and how a module for one that is not pinned comes about."""

import json
from pathlib import Path

import pytest

from lab.sandbox import SandboxError
from lab.sandbox.build import module_sources
from lab.sandbox.versions import PINNED, derived_go_mod, kubernetes_version

OWN = {
    "Require": [{"Path": "k8s.io/api", "Version": "v0.0.0"}],
    "Replace": [
        {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
        {"Old": {"Path": "example.org/fork"}, "New": {"Path": "example.org/other", "Version": "v1.0.0"}},
    ],
}


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """Return a Go that knows one version of Kubernetes."""
    script = tmp_path / "go"
    script.write_text(
        "#!/bin/sh\n"
        'case "$2 $4" in\n'
        f"""  "download k8s.io/kubernetes@v1.33.13") echo '{json.dumps({"GoMod": "/own/go.mod"})}' ;;\n"""
        f"""  "edit /own/go.mod") echo '{json.dumps(OWN)}' ;;\n"""
        """  *) echo '{"Error": "https://proxy.corp/x: unknown revision"}'; exit 1 ;;\n"""
        "esac\n"
    )
    script.chmod(0o755)
    return script


class TestTheVersion:
    def test_is_the_pinned_one_by_default(self) -> None:
        """Nothing said, or said with nothing: the version whose checksums lie in the repository."""
        assert kubernetes_version({}) == kubernetes_version({"SPLITTER_KUBERNETES": ""}) == PINNED
        assert f"k8s.io/kubernetes v{PINNED}\n" in module_sources()["go.mod"].decode()

    @pytest.mark.parametrize("said", ["1.33.13", "v1.33.13"])
    def test_is_the_one_that_is_named(self, said: str) -> None:
        """With or without the v."""
        assert kubernetes_version({"SPLITTER_KUBERNETES": said}) == "1.33.13"

    @pytest.mark.parametrize("said", ["1.33", "latest", "2.0.0", "1.33.13-rc.1", "1.33.13\n", "../1.33.13"])
    def test_is_three_numbers(self, said: str) -> None:
        """Anything else is refused with an example."""
        with pytest.raises(SandboxError, match=r"Name all three numbers, for instance 1\.33\.13"):
            kubernetes_version({"SPLITTER_KUBERNETES": said})


class TestTheModule:
    def test_takes_what_lies_in_staging_as_published(self, go: Path, tmp_path: Path) -> None:
        """Kubernetes 1.33.13 is published in parts as 0.33.13; other replacements are not ours to repeat."""
        text = derived_go_mod("1.33.13", str(go), "go 1.26.0", tmp_path)
        assert text.splitlines() == [
            "module splitter.io/sandbox/controlplane",
            "go 1.26.0",
            "require k8s.io/kubernetes v1.33.13",
            "replace k8s.io/api => k8s.io/api v0.33.13",
        ]

    def test_of_a_version_that_is_not(self, go: Path, tmp_path: Path) -> None:
        """The error names the version, what Go says without its hosts, and what to look at."""
        with pytest.raises(SandboxError, match=r"Kubernetes 1\.99\.0 cannot be had") as caught:
            derived_go_mod("1.99.0", str(go), "go 1.26.0", tmp_path)
        assert "https://(host)/x: unknown revision" in str(caught.value)
        assert "unset SPLITTER_KUBERNETES" in str(caught.value)

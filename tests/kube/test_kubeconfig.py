"""What is read out of a kubeconfig before anybody connects."""

import json
import os
from pathlib import Path

import pytest

from splitter.kube.kubeconfig import contexts_of, kubeconfig_path, namespace_of


def written(path: Path, current: str | None, **namespaces: str | None) -> Path:
    """Write a kubeconfig with these contexts and their namespaces."""
    contexts = [
        {"name": name, "context": {"cluster": "c", **({"namespace": namespace} if namespace else {})}}
        for name, namespace in namespaces.items()
    ]
    path.write_text(json.dumps({"current-context": current, "contexts": contexts}), encoding="utf-8")
    return path


class TestThePath:
    def test_is_where_kubectl_looks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """KUBECONFIG, else the file in the home; none where there is none."""
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert kubeconfig_path() is None
        usual = tmp_path / ".kube" / "config"
        usual.parent.mkdir()
        usual.touch()
        assert kubeconfig_path() == usual
        monkeypatch.setenv("KUBECONFIG", "")
        assert kubeconfig_path() == usual

    def test_of_several_files_those_that_there_are(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With none there all are named: who connects says what is missing."""
        one, other, missing = (tmp_path / name for name in ("a", "b", "c"))
        one.touch()
        other.touch()
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (missing, one, other))))
        assert str(kubeconfig_path()) == f"{one}{os.pathsep}{other}"
        monkeypatch.setenv("KUBECONFIG", f"{missing}{os.pathsep}{missing}")
        assert str(kubeconfig_path()) == f"{missing}{os.pathsep}{missing}"


class TestTheNamespace:
    """Where kubectl would look without -n."""

    @pytest.mark.parametrize(
        ("context", "namespace"), [(None, "shop"), ("b", "bank"), ("bare", "default"), ("nowhere", "default")]
    )
    def test_is_that_of_the_context(self, tmp_path: Path, context: str | None, namespace: str) -> None:
        """Of the current one, or of the one that is named; `default` where none is written."""
        file = written(tmp_path / "config", "a", a="shop", b="bank", bare=None)
        assert namespace_of(file, context) == namespace

    def test_comes_from_the_first_file_that_says_it(self, tmp_path: Path) -> None:
        """KUBECONFIG may name several; what cannot be read is somebody else's to say."""
        (tmp_path / "broken").write_text("{", encoding="utf-8")
        (tmp_path / "odd").write_text("a: !!bool maybe", encoding="utf-8")
        first = written(tmp_path / "first", None, a="shop")
        second = written(tmp_path / "second", "a", a="bank", b="bank")
        files = [tmp_path / "missing", tmp_path / "broken", tmp_path / "odd", first, second]
        every = Path(os.pathsep.join(map(str, files)))
        assert namespace_of(every, None) == "shop"
        assert contexts_of(every) == ["a", "a", "b"]

    @pytest.mark.parametrize("text", ["[]", "contexts: 1", "contexts: [1, {name: a, context: x}]", ""])
    def test_survives_what_is_no_kubeconfig(self, tmp_path: Path, text: str) -> None:
        """`default`: whoever connects says what is wrong."""
        (tmp_path / "config").write_text(text, encoding="utf-8")
        assert namespace_of(tmp_path / "config", "a") == "default"

    def test_without_a_kubeconfig_is_default(self) -> None:
        """Outside a pod."""
        assert namespace_of(None, None) == "default"
        assert contexts_of(None) == []

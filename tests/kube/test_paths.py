"""Where objects are: only of checked names, and answered only by what was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.names import Key, is_name
from splitter.kube import paths
from splitter.kube.paths import ResourcePath

# What a tenant may write where a name is expected (the API server checks no owner's name, and no claim's).
FORGED = (
    "../../shop/deployments/web",
    "../../../../../../api/v1/pods",
    "..",
    ".",
    "web/scale",
    "web?limit=100000",
    "web#",
    "web%2F..",
    "web\n",
    "Web",
    "-web",
    "web-",
    "a..b",
    "w" * 254,
    "wéb",
    "\u212aelvin",  # folds to a k
)
PIECES = st.text(st.sampled_from("a.-/%?#\\\n 0A_:@"), max_size=12) | st.sampled_from(FORGED) | st.text()


class TestNames:
    @pytest.mark.parametrize("name", FORGED)
    def test_forged(self, name: str) -> None:
        """What no object is called names nobody."""
        assert not is_name(name)
        for namespace, called in ("shop", name), (name, "web"):
            with pytest.raises(ValueError, match="none that an object can have"):
                Key("Deployment", namespace, called)

    @pytest.mark.parametrize("name", ["web", "a", "0", "web-2.shop", "a.b.c", "w" * 253])
    def test_fine(self, name: str) -> None:
        """All that the API server takes."""
        assert is_name(name)
        assert Key("StatefulSet", "shop", name).name == name


class TestPaths:
    def test_of_each_kind(self) -> None:
        """As the API server knows them."""
        db = Key("StatefulSet", "shop", "db")
        assert str(paths.workload(db)) == "/apis/apps/v1/namespaces/shop/statefulsets/db"
        assert str(paths.workload(Key("Deployment", "shop", "web"), "web-spot")).endswith(
            "/deployments/web-spot"
        )
        assert str(paths.split(db)) == "/apis/splitter.io/v1alpha1/namespaces/shop/splits/db-sts"
        assert (
            str(paths.pods("shop").of("web-1", "eviction")) == "/api/v1/namespaces/shop/pods/web-1/eviction"
        )
        assert str(paths.pods()) == "/api/v1/pods"
        assert str(ResourcePath("/version")) == "/version"

    @pytest.mark.parametrize("kind", ["Pod", "ReplicaSet", "deployment", "../../pod", ""])
    def test_of_no_other_workload(self, kind: str) -> None:
        """An owner's kind is whatever its author writes."""
        with pytest.raises(ValueError, match="asks for no workloads but"):
            paths.workload(Key(kind, "shop", "web"))

    @pytest.mark.parametrize(
        "text",
        [
            "/apis/apps/v1/namespaces/shop/deployments/web/scale",
            "/api/v1/namespaces/shop",
            "/api/v1/nodes/n1",
            "/apis/splitter.io/v1alpha1",
            "/apis/splitter.io",
            "/version",
        ],
    )
    def test_read(self, text: str) -> None:
        """A path as it is written comes back."""
        assert str(ResourcePath.read(text)) == text

    @given(PIECES, PIECES, PIECES)
    def test_nothing_gets_out(self, namespace: str, name: str, part: str) -> None:
        """Whatever the pieces are: there is no path, or it has as many pieces as it was given."""
        try:
            path = paths.pods(namespace).of(name, part)
        except ValueError:
            return
        pieces = ["", "api", "v1", *(("namespaces", namespace) if namespace else ()), "pods", name]
        assert str(path).split("/") == [*pieces, *([part] if part else [])]
        assert not set(str(path)) & set("?#%\\ \n")
        assert ".." not in pieces

    @given(PIECES)
    def test_what_is_read_is_checked(self, text: str) -> None:
        """A path that is read is one that could be built."""
        try:
            path = ResourcePath.read(f"/api/v1/namespaces/shop/pods/{text}")
        except ValueError:
            return
        assert path.namespace == "shop"
        assert path.plural == "pods"

    @pytest.mark.parametrize(
        "pieces",
        [
            {"plural": "", "namespace": "shop"},
            {"plural": "", "name": "web"},
            {"part": "scale"},
            {"plural": "Pods"},
            {"plural": "pods/web"},
            {"api": "/apis/../api/v1"},
            {"api": "https://elsewhere/api/v1"},
            {"api": "/apis/apps"},
        ],
    )
    def test_incomplete(self, pieces: dict[str, str]) -> None:
        """A part of nothing, a name of no kind, an API that is none."""
        with pytest.raises(ValueError, match="makes no path"):
            ResourcePath(**{"api": "/api/v1", "plural": "pods", **pieces})


class TestAnswers:
    WEB = paths.workload(Key("Deployment", "shop", "web"))

    @pytest.mark.parametrize(
        ("path", "answer", "expected"),
        [
            (WEB, {"metadata": {"name": "web", "namespace": "shop"}}, True),
            (WEB, {"metadata": {"name": "db", "namespace": "shop"}}, False),
            (WEB, {"metadata": {"name": "web", "namespace": "evil"}}, False),
            (WEB, {"items": [], "metadata": {"resourceVersion": "9"}}, False),
            (WEB, {"kind": "Status", "metadata": {}}, True),
            (WEB, {}, True),
            (paths.pods("shop"), {"metadata": {"name": "made", "namespace": "shop"}}, True),
            (paths.pods("shop"), {"metadata": {"name": "made", "namespace": "evil"}}, False),
            (paths.pods("shop"), {"metadata": {}, "items": []}, True),
            (paths.NODES.of("n1"), {"metadata": {"name": "n1"}}, True),
        ],
    )
    def test_is_answered(self, path: ResourcePath, answer: dict[str, object], *, expected: bool) -> None:
        """Only by an object of that name and namespace; a list is no object."""
        assert path.is_answered_by(answer) is expected

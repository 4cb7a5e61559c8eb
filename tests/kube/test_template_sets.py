"""Template sets in ConfigMaps: who is woken, who is told, what the renderer sees."""

from kube.raw import Raw, deployment, metadata
from kube.server import Script, connected, page, refusal
from splitter.core.names import Key
from splitter.core.nodes.signals import assess
from splitter.kube.cache import Cache
from splitter.kube.records import TemplateSetRecord
from splitter.kube.template_sets import TemplateSets

WEB = Key("Deployment", "shop", "web")


def config_map(name: str = "small", *, version: int = 10, spot: str = "b", **fields: object) -> Raw:
    """Return a ConfigMap that holds a set."""
    labels = {"splitter.io/template-set": "enabled"}
    annotations = {"splitter.io/namespaces": "shop"}
    result = metadata(name, version=version, namespace="home", labels=labels, annotations=annotations)
    data = {"deployment.on-demand.yaml.j2": "a", "deployment.spot.yaml.j2": spot}
    return {"metadata": result, "data": data, **fields}


def source(name: str, template: str | None = None, *, namespace: str = "shop") -> Raw:
    """Return a labelled Deployment that names a set, or none."""
    annotations = {} if template is None else {"splitter.io/template": template}
    return deployment(
        name,
        uid=f"uid-{namespace}-{name}",
        namespace=namespace,
        labels={"splitter.io/split": "enabled"},
        annotations=annotations,
    )


class Woken:
    """A cache with some sources; who was woken, and which sets were announced."""

    def __init__(self, *sources: Raw) -> None:
        self.keys: set[Key] = set()
        self.announced = list[TemplateSetRecord]()
        self.cache = Cache(assess, self._enqueue, own_namespace="home")
        self.cache.template_sets.announce_to(self.announced.append)
        for raw in sources:
            self.cache.sources.upsert(raw)
        self.keys.clear()
        self.store = self.cache.template_sets.store

    def _enqueue(self, key: Key, *, urgent: bool) -> None:
        assert not urgent
        self.keys.add(key)


class TestWaking:
    def test_those_that_name_it(self) -> None:
        """A set that comes, changes or goes wakes the workloads that name it, and no others."""
        woken = Woken(source("web", "small"), source("cart", "large"), source("api"))
        woken.store.upsert(config_map())
        assert woken.keys == {WEB}
        woken.keys.clear()
        woken.store.upsert(config_map(version=11, spot="c"))
        assert woken.keys == {WEB}
        woken.keys.clear()
        woken.store.remove(config_map(version=12))
        assert woken.keys == {WEB}

    def test_by_their_namespace(self) -> None:
        """A set that the Namespace names is that of its workloads."""
        woken = Woken(source("web"), source("web", namespace="other"))
        annotated = metadata("shop", namespace="", annotations={"splitter.io/template": "small"})
        woken.cache.namespaces.upsert({"metadata": annotated})
        woken.keys.clear()
        woken.store.upsert(config_map())
        assert woken.keys == {WEB}

    def test_by_their_last_good_policy(self) -> None:
        """What is written now cannot be read; the set that was good last is still in force."""
        woken = Woken(source("web", "Not A Name"))
        split = {
            "metadata": metadata("web", uid="uid-split"),
            "spec": {"source": {"kind": "Deployment", "name": "web"}},
            "status": {"memory": {"policyAnnotations": {"splitter.io/template": "small"}}},
        }
        woken.cache.splits.upsert(split)
        woken.keys.clear()
        woken.store.upsert(config_map())
        assert woken.keys == {WEB}

    def test_nothing_new(self) -> None:
        """Another annotation of somebody's on the ConfigMap wakes and tells nobody."""
        woken = Woken(source("web", "small"))
        woken.store.upsert(config_map())
        woken.keys.clear()
        again = config_map(version=11)
        again["metadata"]["annotations"]["note"] = "mine"
        woken.store.upsert(again)
        assert woken.keys == set()
        assert len(woken.announced) == 1


class TestRights:
    async def test_missing(self) -> None:
        """Who may not list the sets knows that, and does not take all of them for deleted."""
        sets = TemplateSets("home", lambda _: None)
        script = Script().then(refusal(403, "Forbidden", "may not list"), page(config_map(), version=20))
        async with connected(script) as client:
            (reflector,) = sets.reflectors(client)
            assert sets.unread == ""
            await reflector.list_once()
            assert "may not list" in sets.unread
            await reflector.list_once()
            assert sets.unread == ""
            assert set(sets.by_name) == {"small"}
        assert script.asked[0].query["labelSelector"] == "splitter.io/template-set"
        assert script.asked[0].path == "/api/v1/namespaces/home/configmaps"

    async def test_no_namespace(self) -> None:
        """Without a namespace of its own splitter follows none."""
        async with connected(Script().then(page(version=1))) as client:
            assert TemplateSets("", lambda _: None).reflectors(client) == []


class TestByName:
    def test_what_is_there_now(self) -> None:
        """The renderer sees a set as it is, and none once it is deleted."""
        woken = Woken()
        woken.store.upsert(config_map())
        assert woken.cache.template_sets.by_name["small"].files["deployment/spot.yaml.j2"] == "b"
        woken.store.upsert(config_map(version=11, spot="c"))
        assert woken.cache.template_sets.by_name["small"].files["deployment/spot.yaml.j2"] == "c"
        woken.store.remove(config_map(version=12))
        assert woken.cache.template_sets.by_name == {}

    def test_created_anew(self) -> None:
        """Deleted and written again under its name: the end of the old one does not take the new one."""
        woken = Woken()
        woken.store.upsert(config_map())
        anew = config_map(version=12)
        anew["metadata"]["uid"] = "uid-anew"
        woken.store.upsert(anew)
        woken.store.remove(config_map(version=11))
        assert set(woken.cache.template_sets.by_name) == {"small"}

    def test_binary_data(self) -> None:
        """What is no text is a fault of the set, and no end of the watch."""
        woken = Woken()
        woken.store.upsert(config_map(data=None, binaryData={"deployment.spot.yaml.j2": "/w=="}))
        faults = woken.cache.template_sets.by_name["small"].faults
        assert any("binary data" in fault for fault in faults)

"""StatefulSets that are refused, that others write to, and that an autoscaler scales by their Split."""

from e2e.support.statefulset_hands import autoscaler
from lab.fixtures.database import BY_TWINS, Database, manifest
from lab.fixtures.shop import JsonObject
from lab.sandbox.api import PatchKind

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def refused(database: Database, reason: str) -> str:
    """Label it, and return what is said about the refusal once it is certain that nothing was written."""
    database.label()
    before = database.source()
    status = database.says(reason)
    message = str(status["message"])
    assert status["state"] == "Refused"
    database.reported(reason, message)
    database.shop.wait_posted()
    assert database.events(reason) == [message]
    after = database.source()
    assert after["spec"] == before["spec"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert database.names() == {"db"}
    return message


class TestRefused:
    """Each names the field or who, and the remedy; with the remedy it is split."""

    def test_unasked(self, database: Database) -> None:
        """Twins give pods other names: without the annotation nothing is touched."""
        database.deploy(3, annotations={})
        assert "annotate splitter.io/mode=twins" in refused(database, "PlacementUnsupported")
        database.annotate(mode="twins")
        database.wait_split(on_demand=2, spot=1)

    def test_on_delete(self, database: Database) -> None:
        """The strategy leaves it to a person when a pod gets a new template."""
        database.deploy(2, updateStrategy={"type": "OnDelete"}, waits=False)
        assert "RollingUpdate" in refused(database, "StrategyOnDelete")

    def test_volumes(self, database: Database) -> None:
        """Claims are not shared, and a scale-down that deletes them is refused whatever is declared."""
        database.deploy(0, volumeClaimTemplates=[CLAIM])
        assert "volumeClaimTemplates (data)" in refused(database, "VolumesNotShared")
        database.patch('{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}}}')
        database.annotate(volumes="disposable")
        database.says("VolumesDeletedWhenScaled")
        database.patch('{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Retain"}}}')
        database.wait_split(on_demand=0, spot=0)

    def test_a_claim_of_somebody_else(self, database: Database) -> None:
        """A twin would mount it and delete it. Those that a twin makes are known by its labels."""
        database.deploy(
            1,
            annotations={**BY_TWINS, "splitter.io/volumes": "disposable"},
            waits=False,
            volumeClaimTemplates=[CLAIM],
        )
        name = "data-db-on-demand-0"
        database.shop.apply(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **CLAIM, "metadata": {"name": name}}
        )
        assert name in refused(database, "ClaimNameTaken")
        database.shop.kubectl("delete", "pvc", name)
        database.patch('{"spec":{"replicas":0}}')
        database.wait_split(on_demand=0, spot=0)
        database.patch('{"spec":{"replicas":1}}')
        path = f"/api/v1/namespaces/{database.shop.namespace}/persistentvolumeclaims/{name}"
        find = database.shop.sandbox.api.find
        database.shop.until(lambda: find(path) is not None, "the twin's own claim")
        assert (find(path) or {})["metadata"]["labels"]["splitter.io/pool"] == "on-demand"

    def test_an_autoscaler_at_the_source(self, database: Database) -> None:
        """At 0 it would stop: it is named, and told where to aim."""
        database.deploy(2)
        database.shop.apply(autoscaler("apps/v1", "StatefulSet", "db"))
        message = refused(database, "AutoscalerOnSource")
        assert message.startswith("HorizontalPodAutoscaler/db is aimed at this StatefulSet")
        assert "kind Split, name db-sts" in message

    def test_replicas_in_git(self, database: Database) -> None:
        """A GitOps manager that applies spec.replicas is named; without that line, leaving 1, it is split."""
        apply_as(database, "argocd-controller", manifest(3))
        database.wait_rolled_out()
        assert "argocd-controller" in refused(database, "ReplicasInGit")
        apply_as(database, "argocd-controller", manifest(None))
        database.wait_split(on_demand=1, spot=0)
        database.shop.kubectl("scale", "split/db-sts", "--replicas=3")
        database.wait_split(on_demand=2, spot=1)


def apply_as(database: Database, manager: str, what: JsonObject) -> None:
    """Apply server-side, once, as a tool that signs with its own name.

    Not by kubectl, which applies a second time where it has moved somebody's client-side apply.
    """
    shop = database.shop
    path = f"/apis/apps/v1/namespaces/{shop.namespace}/statefulsets/{what['metadata']['name']}"
    shop.sandbox.api.patch(path, what, kind=PatchKind.APPLY, field_manager=manager)


def replace(database: Database, what: JsonObject) -> None:
    """Replace the whole object, as `kubectl replace` does.

    Not by kubectl, which reads its version first, and is refused where its controller has written since.
    """
    path = f"/apis/apps/v1/namespaces/{database.shop.namespace}/statefulsets/{what['metadata']['name']}"
    query = {"fieldManager": "kubectl-replace"}
    database.shop.sandbox.api.request("PUT", path, query=query, body=what)


def write_conflicts(database: Database) -> int:
    """Count the write conflicts that the Split remembers."""
    return len(database.status().get("writeConflicts", ()))


def is_its_users(database: Database) -> bool:
    """Whether it has neither twins nor a saved count any more."""
    annotations = database.source()["metadata"].get("annotations", {})
    return database.names() == {"db"} and "splitter.io/replicas" not in annotations


class TestWriteConflicts:
    def test_git_is_named_and_given_way_to(self, database: Database) -> None:
        """Somebody sets the saved count back, again and again: the third time it is given back, by name."""
        database.deploy(3)
        database.label()
        database.wait_split(on_demand=2, spot=1)
        with database.watch() as watched:
            for count in (1, 2, 3):
                database.shop.until(lambda: database.source()["spec"]["replicas"] == 0, "the source at 0")
                apply_as(database, "ci-pipeline", manifest(3))
                database.shop.until(lambda: write_conflicts(database) >= count, f"conflict {count}")  # noqa: B023 (at once)
            database.shop.until(lambda: database.status().get("state") == "Conflict", "the Conflict")
            database.shop.until(lambda: is_its_users(database), "all but the Split to be given back")
            assert watched.lowest() >= 3
        assert "with ci-pipeline" in database.status()["message"]
        assert database.source()["spec"]["replicas"] == 3

    def test_replace_drops_label_and_marks(self, database: Database) -> None:
        """`kubectl replace` with a manifest that knows nothing: given back with the manifest's count."""
        database.deploy(3)
        database.label()
        database.wait_split(on_demand=2, spot=1)
        with database.watch() as watched:
            replace(database, manifest(4))
            database.wait_given_back()
            assert watched.lowest() >= 3
        assert database.source()["spec"]["replicas"] == 4

"""`splitter wait` in a life: it never ends on what was so before the change that it waits for."""

import pytest

from argocd import health
from e2e.support.refusals import ASKED, REPLICAS
from e2e.support.terminal import Answer, reported
from kstatus import advised, kapp, kstatus
from lab.fixtures.database import Database
from lab.fixtures.shop import JsonObject, Shop
from lives.terminal import Terminal
from world.sandbox import Process


@pytest.fixture
def web(shop: Shop) -> Shop:
    """Return a namespace whose `web` is split 1 + 2."""
    shop.deploy(replicas=REPLICAS, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=2)
    shop.wait_steady()
    return shop


def waits(admin: Terminal, shop: Shop, *options: str, target: str = "deploy/web") -> Answer:
    """Wait with the verb."""
    return admin.splitter("wait", target, "-n", shop.namespace, *options)


def condition(status: dict[str, list[dict[str, str]]], kind: str) -> str:
    """Return the status of a condition of a Split."""
    return next(one["status"] for one in status["conditions"] if one["type"] == kind)


def judged(shop: Shop) -> tuple[str, str, str]:
    """Return what kstatus, kapp and Argo CD say of the Split."""
    raw: JsonObject | None = shop.split()
    assert raw is not None
    return kstatus(raw), kapp(raw, advised()), health(raw)[0]


def test_others_see_a_roll_and_its_end(web: Shop) -> None:
    """Nothing is done for them between the first look at a new image and the last old pod."""
    assert judged(web) == ("Current", "succeeds", "Healthy")
    web.set_image("web:2")
    generation = web.deployment()["metadata"]["generation"]
    seen = []

    def is_over() -> bool:
        if web.status()["sourceGeneration"] < generation:
            return False
        # The pods last: those that are there now were there when the status was written, or are newer.
        now = judged(web)
        seen.append((now, web.images() == {"web:2": REPLICAS}))
        return now == ("Current", "succeeds", "Healthy")

    web.until(is_over, "the end of the roll")
    assert len(seen) > 2
    assert {now for now, _ in seen[:-1]} <= {
        ("InProgress", "waits", "Progressing"),
        ("Current", "succeeds", "Progressing"),  # it is rolled out, and a pod beside them is to go
    }
    assert seen[0][0] == ("InProgress", "waits", "Progressing")
    assert all(done for now, done in seen if now[0] == "Current")


@pytest.mark.parametrize("until", ["updated", "steady"])
def test_a_new_image(web: Shop, admin: Terminal, until: str) -> None:
    """The Split is steady and updated still, of the generation before; the verb waits for the new one."""
    for number in range(3):
        image = f"web:{until}-{number}"
        web.set_image(image)
        generation = web.deployment()["metadata"]["generation"]
        before = web.status()
        assert (before["state"], condition(before, "Updated")) == ("Steady", "True")
        assert before["sourceGeneration"] < generation
        text = reported(waits(admin, web, "--for", until))
        assert web.images() == {image: REPLICAS}
        assert f"and not {generation} yet" in text.splitlines()[0]
        assert "replicas have the template of generation" in text.splitlines()[1]
        assert text.splitlines()[-1].startswith(f"deployment {web.namespace}/web is rolled out: 3 of 3")
        assert web.status()["sourceGeneration"] >= generation


def test_another_count(web: Shop, admin: Terminal) -> None:
    """Is waited for as an image is."""
    web.scale(REPLICAS + 3)
    reported(waits(admin, web))
    assert sum(web.images().values()) == REPLICAS + 3


def test_what_is_rolled_out_already(web: Shop, admin: Terminal) -> None:
    """Ends at once, with one line."""
    assert len(reported(waits(admin, web)).splitlines()) == 1


def test_a_restart(web: Shop, admin: Terminal) -> None:
    """`--wait` ends when every pod is another."""
    before = web.pod_uids()
    reported(admin.splitter("restart", "deploy/web", "-n", web.namespace, "--wait", "--timeout", "5m"))
    assert len(web.pod_uids()) == REPLICAS
    assert not before & web.pod_uids()


def test_a_restart_of_a_statefulset(database: Database, admin: Terminal) -> None:
    """Its annotations raise no generation: that it is restarted is seen by what is in force."""
    database.deploy(5)
    database.label()
    database.wait_split(on_demand=3, spot=2)
    database.wait_steady()
    before = {pod["metadata"]["uid"] for pod in database.shop.pods("db")}
    where = ("-n", database.shop.namespace)
    text = reported(admin.splitter("restart", "sts/db", *where, "--wait"))
    assert "splitter.io/restarted-at is not in force yet" in text
    after = {pod["metadata"]["uid"] for pod in database.shop.pods("db")}
    assert len(after) == 5
    assert not before & after


def test_a_roll_that_stalls(web: Shop, admin: Terminal) -> None:
    """Ends the wait when its progress deadline is over, as that of a Deployment does, with the reason."""
    web.kubectl("patch", "deployment", "web", "--patch", '{"spec": {"progressDeadlineSeconds": 5}}')
    web.set_image("web:bad")
    answer = waits(admin, web, "--timeout", "1h")
    assert answer.returncode == 1
    assert f"deployment {web.namespace}/web cannot be rolled out: RolloutStalled" in answer.stderr
    assert judged(web) == ("Failed", "fails", "Degraded")
    web.set_image("web:good")
    reported(waits(admin, web))
    assert web.images() == {"web:good": REPLICAS}


def test_without_a_controller(web: Shop, admin: Terminal, controller: Process) -> None:
    """Nothing comes of it: the time is over, and it is asked whether splitter runs."""
    controller.stop()
    web.set_image("web:2")
    answer = waits(admin, web, "--timeout", "3s")
    assert answer.returncode == 1
    assert "Is splitter running" in answer.stderr
    assert answer.stderr.startswith(
        f"timed out waiting for deployment {web.namespace}/web: splitter has seen"
    )


def test_of_one_that_is_refused(shop: Shop, admin: Terminal) -> None:
    """It is not split, and rolls by itself."""
    shop.deploy(replicas=REPLICAS, strategy={"type": "Recreate"})
    shop.label()
    shop.says("StrategyRecreate")
    answer = waits(admin, shop)
    assert answer.returncode == 3
    assert "kubectl rollout status deployment/web" in answer.stderr
    assert judged(shop) == ("Failed", "fails", "Degraded")


def test_several(web: Shop, admin: Terminal) -> None:
    """Each is waited for; one that is not split is a failure, and keeps none of the others from it."""
    web.deploy(name="cart", replicas=REPLICAS)
    web.set_image("web:2")
    answer = admin.splitter("wait", "cart", "web", "-n", web.namespace)
    assert answer.returncode == 3
    assert "cart is not split" in answer.stderr
    assert "web is rolled out" in answer.stdout
    assert web.images() == {"web:2": REPLICAS}
    every = admin.splitter("wait", "-l", "splitter.io/split", "-n", web.namespace)
    assert (every.returncode, "cart" in every.stdout) == (0, False)
    none = admin.splitter("wait", "-l", "team=none", "-n", web.namespace)
    assert none.stderr == "no split workload was chosen: there is nothing to wait for\n"
    assert admin.splitter("wait", "-n", web.namespace).returncode == 2

"""The verbs about a StatefulSet: what a person types, and reads."""

import sys

from e2e.support.terminal import Answer
from lab.fixtures.database import Database
from lives.terminal import Terminal


def reported(answer: Answer, code: int = 0) -> str:
    """Return what a verb said; it ended as it should."""
    text = answer.stdout + answer.stderr
    sys.stdout.write(f"\n{text}")
    assert answer.returncode == code, text
    return text


def test_of_a_life(database: Database, admin: Terminal) -> None:
    """plan, status, explain, render, freeze, restart and uninstall take `sts/db`."""
    where = ("-n", database.shop.namespace)
    database.deploy(5)
    assert "is not split" in reported(admin.splitter("status", "sts/db", *where), 3)
    database.label()
    database.wait_split(on_demand=3, spot=2)
    database.wait_steady()
    assert "statefulset/db" in reported(admin.splitter("status", *where))
    assert "would write nothing" in reported(admin.splitter("plan", "sts/db", *where))
    assert "majority" in reported(admin.splitter("explain", "sts/db", *where))
    twins = admin.splitter("render", "sts/db", *where)
    assert twins.returncode == 0
    assert "kind: StatefulSet" in twins.stdout
    assert "start: 1000" in twins.stdout
    assert admin.splitter("render", "sts/db", "--diff", *where).returncode == 0
    reported(admin.splitter("freeze", "sts/db", *where))
    database.shop.until(lambda: database.status()["policy"]["freeze"], "the freeze")
    reported(admin.splitter("unfreeze", "sts/db", *where))
    before = {pod["metadata"]["uid"] for pod in database.shop.pods("db")}
    with database.watch() as watched:
        assert "statefulset" in reported(admin.splitter("restart", "sts/db", *where))
        database.shop.until(lambda: not before & _uids(database), "every pod to be a new one")
        database.wait_split(on_demand=3, spot=2)
        assert watched.lowest() >= 4
    reported(admin.splitter("uninstall", *where))
    database.wait_given_back()


def _uids(database: Database) -> set[str]:
    return {pod["metadata"]["uid"] for pod in database.shop.pods("db")}

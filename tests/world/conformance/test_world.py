"""The world does in each script what a real control plane did."""

from collections.abc import Iterator

import pytest

from world.conformance.memory import Memory
from world.conformance.recorded import recorded
from world.conformance.scene import play
from world.conformance.scripts import SCRIPTS

# What the world does not do yet, and why. A script that passes has to leave this table.
NOT_YET: dict[str, str] = {
    "json_patch_with_test": "no JSON patch: splitter sends none",
    "policy_refuses": "a rule about Deployments sees writes of their scale",
    "unknown_fields_are_dropped": "no fieldValidation: splitter asks for none",
    "quota_refuses_the_pods_of_a_deployment": "the conditions name no quota",
    "silent_node_of_a_statefulset": "there is no StatefulSet controller",
    "required_anti_affinity": "the scheduler knows no affinity between pods",
    "preemption": "the scheduler ends no pod for another",
    "replicaset_in_deletion_makes_no_pods": "a ReplicaSet in deletion still makes pods",
    "deletion_of_what_has_no_node_first": "a ReplicaSet ends a bound pod before one without",
    "adoption_beside_another_owner": "the garbage collector takes an owner that is a ConfigMap for absent",
    "daemonset_adopts_what_it_selects": "there is no DaemonSet controller",
    "ordered_members_come_in_order": "there is no StatefulSet controller",
    "ordered_members_go_in_order": "there is no StatefulSet controller",
    "parallel_members": "there is no StatefulSet controller",
    "members_are_updated_in_reverse": "there is no StatefulSet controller",
    "partition_keeps_lower_members": "there is no StatefulSet controller",
    "members_are_updated_by_max_unavailable": "there is no StatefulSet controller",
    "update_on_delete": "there is no StatefulSet controller",
    "deleted_member_comes_back": "there is no StatefulSet controller",
    "ordered_waits_for_a_member_that_is_not_ready": "there is no StatefulSet controller",
    "ordered_makes_a_lower_member": "there is no StatefulSet controller",
    "ordered_scale_down_waits": "there is no StatefulSet controller",
    "parallel_does_not_wait": "there is no StatefulSet controller",
    "parallel_updates_one_by_one": "there is no StatefulSet controller",
    "broken_update_is_not_mended_by_itself": "there is no StatefulSet controller",
    "members_are_adopted": "there is no StatefulSet controller",
    "ordinals_begin_later": "there is no StatefulSet controller",
    "pending_member_holds_up": "there is no StatefulSet controller",
    "failed_member_is_made_again": "there is no StatefulSet controller",
    "member_is_made_after_the_end_of_the_former": "there is no StatefulSet controller",
    "statefulset_is_mostly_immutable": "there is no StatefulSet controller",
}


@pytest.fixture
def one_clock() -> None:
    """Leave the clock of the test alone: each world here has a loop of its own, and splitter is not there."""


@pytest.fixture
def ground() -> Iterator[Memory]:
    """Yield a world."""
    world = Memory()
    yield world
    world.close()


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in NOT_YET])
def test_the_world_does_what_kubernetes_did(ground: Memory, name: str) -> None:
    """Notes, the lives of pods and the end are those that are recorded of a real control plane."""
    assert play(SCRIPTS[name], ground) == recorded()[name]


@pytest.mark.parametrize("name", NOT_YET)
def test_what_the_world_cannot_do_yet_is_listed_truly(ground: Memory, name: str) -> None:
    """A script in NOT_YET fails."""
    try:
        seen = play(SCRIPTS[name], ground)
    except Exception:  # noqa: BLE001 - it may fail in any way
        return
    assert seen != recorded()[name], f"{name} passes: take it out of NOT_YET"


def test_all_scripts_are_recorded() -> None:
    """Each script has a record, and each record a script."""
    assert recorded().keys() == SCRIPTS.keys()
    assert NOT_YET.keys() <= SCRIPTS.keys()

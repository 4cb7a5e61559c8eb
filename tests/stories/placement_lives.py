"""Random lives of a StatefulSet in placement mode: whatever happens to it, in any order and at any pace.

Each write is judged by the story as it is made: no eviction takes the majority or a member that could not be
made again, and no member is ended more than four times within an hour. At the end all that was wrong is
mended: then every member comes to stand, ready, where the policy wants it, and nobody is restarted any more.
"""

from collections.abc import Iterator
from random import Random

from splitter.core.placeable import FEWEST
from stories.placement import Node, PlacementStory

HOUR_S = 3600
EVENTS = (
    *("doom", "silent", "gone", "up", "new", "scale", "room", "base", "block", "calm", "freeze"),
    *("policy-gone", "policy-known-gone", "policy-back", "registers-anew", "machine-anew", "uncordoned"),
    *("room-lies", "placeholder-fails", "quota", "unready", "ends", "replace", "label-back"),
    *("budget", "silence", "forgets", "update", "cordon", "spot-lies", "kubelets"),
    *("notice", "withdrawn", "spot-cordon", "upgrade", "drain", "rival", "rivals-go", "min-ready", "scale-0"),
)
PAUSES_S = (1, 3, 20, 60, 200, 700)


def live(seed: int, events: int = 14) -> PlacementStory:
    """Play one life; raises AssertionError with its last lines."""
    dice = Random(seed)
    story = PlacementStory(replicas=dice.choice([1, 2, 3, 4, 5, 7]), ordered=dice.random() < 0.6)
    story.end_s, story.start_s = dice.choice([3, 3, 30, 120]), dice.choice([20, 20, 90])
    story.spot_headroom = dice.choice([1, 2, 3, 99])
    happened = [
        f"ordered={story.ordered} ends={story.end_s} starts={story.start_s} spot={story.spot_headroom}"
    ]
    try:
        for _ in range(events):
            happened.append(_happens(story, dice))
            story.wait(dice.choice(PAUSES_S))
        _heals(story)
        _comes_to_rest(story)
    except AssertionError as error:
        last = "\n".join(story.lines[-14:])
        raise AssertionError(f"seed {seed} {happened}\n{last}\n{error}") from error
    return story


def _happens(story: PlacementStory, dice: Random) -> str:  # noqa: C901, PLR0912, PLR0915 - a line or two an event
    event = dice.choice(EVENTS)
    spot = [name for name, node in story.nodes.items() if node.spot]
    node = dice.choice(spot)
    state = story.nodes[node].state
    live_ones = [name for name in spot if story.nodes[name].state == "up"]
    member = story.members.get(dice.randrange(story.replicas))
    match event:
        case "doom" | "silent" | "gone" if state != "gone":
            story.nodes_are({"doom": "doomed"}.get(event, event), node)
        case "notice" if state in {"up", "cordoned"}:
            story.notice(dice.choice([30, 120, 900]), *(dice.choice([[node], live_ones]) or [node]))
        case "spot-cordon" if state == "up":
            story.nodes_are("cordoned", node)
        case "upgrade" if live_ones:  # blue-green: all of the pool are cordoned, and there is another one
            story.nodes_are("cordoned", *live_ones)
            story.nodes[f"spot-{len(story.nodes)}"] = Node(spot=True)
        case "drain" if state == "cordoned":
            for one in story.members.values():
                if one.node == node and one.ends_at is None:
                    one.ends_at = story.now_s + story.end_s
        case "rival":
            story.rivals_waiting = dice.choice([1, 3])
            story.on_demand_headroom = dice.choice([story.on_demand_headroom, story.replicas])
        case "rivals-go":
            story.rivals, story.rivals_waiting = {}, 0
        case "min-ready":
            story.min_ready_s = dice.choice([0, 30, 300])
        case "scale-0":
            story.scale(0)
            story.wait(dice.choice([1, 30]))
            story.scale(dice.choice([1, 3, 5]))
        case "up" | "withdrawn" if state in {"doomed", "silent", "cordoned"}:
            story.nodes_are("up", node)
        case "registers-anew" if state == "gone":
            story.nodes_are("up", node)
        case "machine-anew" if state == "gone":
            story.registers_anew(node)
        case "new":
            story.nodes[f"spot-{len(story.nodes)}"] = Node(spot=True)
        case "scale":
            story.scale(dice.choice([1, 2, 3, 4, 5, 6, 7]))
        case "room":
            story.on_demand_headroom = dice.choice([0, 1, 2, 3, 99])
        case "base" | "freeze":
            base, frozen = (
                dice.choice(["majority", "0", "1", "2", "4"]),
                event == "freeze" and dice.random() < 0.5,
            )
            freeze = {"splitter.io/freeze": "true"} if frozen else {}
            story.annotations = {"splitter.io/on-demand-base": base, **freeze}
        case "block" | "calm":
            story.refused("no machine" if event == "block" else "")
        case "policy-gone":
            story.policy_acts = False
        case "policy-known-gone":
            story.policy_acts, story.unplaceable = False, "the policy is not there"
        case "policy-back":
            story.policy_acts, story.unplaceable = True, ""
        case "cordon":
            story.nodes_are("up" if story.nodes["od"].state == "cordoned" else "cordoned", "od")
        case (
            "uncordoned" | "room-lies" | "quota" | "budget" | "silence" | "forgets" | "spot-lies" | "kubelets"
        ):
            switch = {
                "uncordoned": "cordoned",
                "spot-lies": "spot_lies",
                "kubelets": "placeholders_fail",
                "room-lies": "headroom_lies",
                "silence": "answers",
                "forgets": "remembers",
            }.get(event, event)
            setattr(story, switch, not getattr(story, switch))
        case "placeholder-fails" if story.held is not None:
            story.held[1].failed = True
        case "unready" if member is not None:
            member.unready_until = story.now_s + dice.choice([10, 100, 10_000])
        case "ends" if member is not None and member.ends_at is None:
            member.ends_at = story.now_s + story.end_s
        case "update":
            story.updated_s = story.now_s
        case "replace" | "label-back":
            story.labelled = event == "label-back"
        case _:
            return f"no {event}"
    story.tell(event)
    return event


def _heals(story: PlacementStory) -> None:
    story.refused("")
    story.annotations, story.on_demand_headroom = {}, 99
    story.policy_acts = story.cordoned = story.budget = story.answers = story.remembers = story.labelled = (
        True
    )
    story.rivals, story.rivals_waiting, story.spot_headroom, story.min_ready_s = {}, 0, 99, 0
    story.unplaceable, story.headroom_lies, story.quota = "", False, False
    story.spot_lies = story.placeholders_fail = False
    if story.nodes["od"].state == "cordoned":
        story.nodes_are("up", "od")
    for member in story.members.values():
        member.unready_until = 0
    story.end_s = 3
    for name, node in story.nodes.items():
        if node.spot and node.state != "up":
            story.nodes_are("gone", name)
    story.nodes["spot-z"] = Node(spot=True)


def _comes_to_rest(story: PlacementStory) -> None:
    for _ in range(26):  # the longest rest before spot is tried again is a day
        story.wait(HOUR_S)
        if not list(_wrong(story)):
            break
    ended = len(story.ends)
    story.wait(2 * HOUR_S)
    wrong = list(_wrong(story))
    assert not wrong, "; ".join(wrong)
    assert len(story.ends) == ended, "somebody is restarted although all is as wanted"


def _wrong(story: PlacementStory) -> Iterator[str]:
    base = story.replicas // 2 + 1
    if story.serving != story.replicas:
        yield f"{story.serving} of {story.replicas} are ready"
    if set(story.ordinals or ()) != set(range(base)):
        yield f"{story.ordinals} in force"
    if story.replicas >= FEWEST:
        spot = {name for name, node in story.nodes.items() if node.spot}
        stands = {k: one.node in spot for k, one in story.members.items()}
        if stands != {k: k >= base for k in range(story.replicas)}:
            yield f"{stands} on spot"
        if story.held is not None:
            yield "room is held for nobody"

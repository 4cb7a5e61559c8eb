"""What drains cost: `python -m lab.bench.drains` plays 20 rounds of each scene (docs/how-to/evictions.md).

A round is one node that `kubectl drain` empties, or with `--karpenter` the interruption of all spot machines.
Of each the recorder tells how many replicas were left, and for how long some were missing. Nothing is
asserted; the tests do that (`tests/e2e/test_guard.py`, `tests/e2e/test_karpenter.py`).
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.bench.crowd import must_be_loopback
from lab.bench.figures import machine, write
from lab.checkout import BENCHMARKS
from lab.fixtures.controller import SHORT, Controller, install
from lab.fixtures.namespaces import open_shop
from lab.fixtures.shop import Shop, Watched, manifest
from lab.sandbox import Between, Instant, Sandbox

MODES = ("one-at-a-time", "surge-first")
DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")
MACHINES = 4
KARPENTERS_N, ITS_BASE = 4, 1


@dataclass(frozen=True, slots=True)
class Round:
    """What was seen in one."""

    lowest: int
    """The fewest replicas that were available."""
    short_s: float
    """For how long fewer than N were."""
    took_s: float
    """Until the drain had ended, or the machines had gone."""


def seen(watched: Watched, replicas: int, began: Instant, ended: Instant) -> Round:
    """Return a round, when everything has settled."""
    short_s = watched.timeline.seconds_below(replicas, Between(began, Instant.now()))
    return Round(watched.lowest(began), round(short_s, 2), round(ended.monotonic_s - began.monotonic_s, 2))


def drained(shop: Shop, replicas: int, rounds: int, settled: Callable[[], None]) -> Iterator[Round]:
    """Drain one node under a workload after the other."""
    for number in range(rounds):
        nodes = sorted(set(shop.nodes()))
        node = nodes[number % len(nodes)]
        with shop.watch() as watched:
            began = Instant.now()
            shop.sandbox.kubectl("drain", node, *DRAIN)
            ended = Instant.now()
            shop.sandbox.kubectl("uncordon", node)
            settled()
            yield seen(watched, replicas, began, ended)


def split(shop: Shop, replicas: int, base: int, evictions: str, cpu: str = "100m") -> None:
    """Have a workload split and guarded."""
    asked = {"splitter.io/on-demand-base": str(base), "splitter.io/evictions": evictions}
    app = manifest("web", replicas, annotations=asked)
    app["metadata"]["labels"]["splitter.io/split"] = "enabled"
    app["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu}
    shop.apply(app)
    shop.wait_split(base, replicas - base)
    shop.until(lambda: "web-guard keeps" in shop.status().get("guard", ""), "the guard")


def by_hand(sandbox: Sandbox, controller: Controller, rounds: int) -> Iterator[tuple[str, list[Round]]]:
    """Play `kubectl drain` of a node for each count and mode, and with splitter killed before."""
    sandbox.fleet.add("on-demand", MACHINES)
    sandbox.fleet.add("spot", MACHINES)
    for replicas in (1, 2, 4, 20):
        for evictions in MODES:
            base = replicas // 2
            with contextmanager(open_shop)(sandbox, controller) as shop:
                split(shop, replicas, base, evictions)

                def settled(shop: Shop = shop, base: int = base, replicas: int = replicas) -> None:
                    shop.wait_split(base, replicas - base)

                title = f"drain of a node, N = {replicas}, {evictions}"
                yield title, list(drained(shop, replicas, rounds, settled))
    with contextmanager(open_shop)(sandbox, controller) as shop:
        replicas = 4
        split(shop, replicas, replicas // 2, MODES[0])
        controller.kill()

        def all_back() -> None:
            shop.until(lambda: shop.shape().total == replicas == ready(shop), "all replicas")

        yield (
            f"drain of a node, N = {replicas}, splitter killed",
            list(drained(shop, replicas, rounds, all_back)),
        )
        controller.start()


def ready(shop: Shop) -> int:
    """Count the pods that are ready."""
    shape = shop.shape()
    return shape.on_demand + shape.spot


def interrupted(sandbox: Sandbox, controller: Controller, rounds: int) -> Iterator[tuple[str, list[Round]]]:
    """Have Karpenter lose all its spot machines, again and again."""
    for evictions in MODES:
        with contextmanager(open_shop)(sandbox, controller) as shop:
            sandbox.karpenter.offer("on-demand")
            sandbox.karpenter.offer("spot")
            # Three replicas fit on a machine of 4 CPUs, 100m of which are its own.
            split(shop, KARPENTERS_N, ITS_BASE, evictions, cpu="1")
            title = f"Karpenter loses all spot machines, N = {KARPENTERS_N}, {evictions}"
            yield title, [_interruption(shop) for _ in range(rounds)]


def _interruption(shop: Shop) -> Round:
    karpenter = shop.sandbox.karpenter
    karpenter.offer("spot")
    shop.wait_split(ITS_BASE, KARPENTERS_N - ITS_BASE)
    karpenter.offer("spot", machines=0)
    with shop.watch() as watched:
        taken = karpenter.claims("spot")
        began = karpenter.interrupt(taken)
        shop.until(lambda: not taken.keys() & karpenter.claims("spot").keys(), "the spot machines to go")
        ended = Instant.now()
        shop.until(lambda: shop.shape().on_demand == KARPENTERS_N, "all replicas on on-demand")
        return seen(watched, KARPENTERS_N, began, ended)


def published(title: str, rounds: Sequence[Round]) -> str:
    """Return a row of the table of the docs."""
    replicas = int(title.partition("N = ")[2].partition(",")[0])
    under = [one for one in rounds if one.lowest < replicas]
    lowest, longest_s = min(one.lowest for one in rounds), max(one.short_s for one in rounds)
    took = sorted(one.took_s for one in rounds)
    return (
        f"| {title} | {len(under)} of {len(rounds)} | {lowest} of {replicas} | {longest_s:.1f} s |"
        f" {took[len(took) // 2]:.1f} s, {took[-1]:.1f} s |\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the scenes, print a row each, and write all rounds down; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="lab.bench.drains", description="What drains cost a split workload."
    )
    parser.add_argument("--karpenter", action="store_true", help="its interruptions instead of kubectl drain")
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args(arguments)
    play = interrupted if chosen.karpenter else by_hand
    sys.stdout.write(
        "| scene | rounds under N | fewest | longest under N | took: half, all |\n|---|---|---|---|---|\n"
    )
    values: dict[str, list[dict[str, float]]] = {}
    with TemporaryDirectory() as home, Sandbox.start(karpenter=chosen.karpenter) as sandbox:
        must_be_loopback(sandbox.url)
        controller = Controller(install(sandbox), Path(home), SHORT)
        try:
            controller.start()
            for title, rounds in play(sandbox, controller, chosen.rounds):
                values[title] = [asdict(one) for one in rounds]
                sys.stdout.write(published(title, rounds))
                sys.stdout.flush()
        finally:
            controller.end()
    name = "drains-karpenter.json" if chosen.karpenter else "drains.json"
    write(BENCHMARKS / name, {"machine": machine(), "rounds": values})
    return 0


if __name__ == "__main__":
    sys.exit(main())

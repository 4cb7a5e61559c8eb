"""How N replicas are divided between on-demand and spot while nothing is wrong.

`rebalance.decide` calls `base_replicas` in every reconcile, the hand-over asks it for the wanted counts,
and `eligibility` asks `caps_conflict` before a workload is taken over. It knows nothing about
nodes, losses or time: what spot loses is `rebalance`'s subject. It must stay monotone (one more
replica never lowers a twin), or scaling up would delete pods.
"""

from splitter.core.labels_annotations.policy import Policy


def base_replicas(n: int, policy: Policy) -> int:
    """Return base(N), the replicas wanted on on-demand; spot gets the other `n - base(N)`.

    The part above `on_demand_base` is divided by Webster's method (for two parties: rounding to the
    nearest, ties to on-demand), and at least one replica is on on-demand when less than 100 % spot
    is asked for and n >= 2. Then the caps: when both cannot hold, `spot_max` yields.
    Source: R15, R16, R17. Never raises; a negative n counts as 0.

    >>> base_replicas(20, Policy(on_demand_base=2, spot_percent=80))
    6
    >>> base_replicas(3, Policy(on_demand_base="majority"))
    2
    """
    n = max(0, n)
    fixed = min(n, n // 2 + 1 if policy.on_demand_base == "majority" else policy.on_demand_base)
    above = n - fixed
    # floor(above * percent / 100 + 1/2), in integers: floats would make ties depend on the platform.
    share = fixed + (2 * above * (100 - policy.spot_percent) + 100) // 200
    if policy.spot_percent < 100 and n >= 2:  # noqa: PLR2004 - percent, and "more than one replica"
        share = max(share, 1)
    if policy.spot_max is not None:
        share = max(share, n - policy.spot_max)
    if policy.on_demand_max is not None:
        share = min(share, policy.on_demand_max)
    return min(n, share)


def caps_conflict(n: int, policy: Policy) -> bool:
    """Say whether `on_demand_max` and `spot_max` together leave some of `n` replicas no place (R18).

    True is refused as `InvalidPolicy` when it is known before a workload is taken over; when N grows
    into it later, `base_replicas` lets `spot_max` yield, since a replica too many on spot is better
    than a replica too few.

    >>> caps_conflict(10, Policy(on_demand_max=3, spot_max=6))
    True
    >>> caps_conflict(9, Policy(on_demand_max=3, spot_max=6))
    False
    """
    if policy.on_demand_max is None or policy.spot_max is None:
        return False
    return policy.on_demand_max + policy.spot_max < n

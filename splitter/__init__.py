"""splitter: run a workload mostly on spot nodes without ever letting the service go down.

The journey of one reconcile: watch events become keys (`operator`, `kube.watch`), a key is observed
(`kube.observe`), planned (`core.planner`, pure), applied (`kube.apply`, the only writer) and
reported (`report`). `docs/architecture.md` has the map.
"""

__version__ = "0.1.0"

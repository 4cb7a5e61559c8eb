"""A real Karmada on loopback with two sandboxes as its members, each with splitter and its estimator.

Karmada's programs are not built here: `assets` says which files are needed, and where they are. `hub` is its
control plane on etcd and kube-apiserver of the sandbox, `members` joins two sandboxes, `ledger` counts lost
replica-seconds, and `watch` looks at hub and members for it. The scenarios are in tests/e2e/test_karmada.py.
"""

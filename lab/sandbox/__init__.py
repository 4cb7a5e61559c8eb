"""A real Kubernetes control plane on loopback, for the demo and the end-to-end tests.

`Sandbox` starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and KWOK in the place of
the kubelets; `Fleet` is its machines, `Karpenter` buys and takes back others, `Recorder` sees what happens,
`Timeline` answers questions about it.
It knows nothing of splitter and imports nothing from it.
"""

from lab.sandbox.api import Api, PatchKind
from lab.sandbox.controlplane import Sandbox
from lab.sandbox.errors import ApiError, SandboxError
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant
from lab.sandbox.karpenter import Karpenter
from lab.sandbox.machines import Notice
from lab.sandbox.recorder import Recorder
from lab.sandbox.timeline import Between, Steps, Timeline

__all__ = [
    "Api",
    "ApiError",
    "Between",
    "Fleet",
    "Instant",
    "Karpenter",
    "Notice",
    "PatchKind",
    "Recorder",
    "Sandbox",
    "SandboxError",
    "Steps",
    "Timeline",
]

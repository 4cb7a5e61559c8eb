"""A real Kubernetes control plane on loopback, for the demo and the end-to-end tests.

`Sandbox` starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and KWOK in the place of
the kubelets; `Fleet` is its machines, `Karpenter` buys and takes back others, `Recorder` sees what happens,
`Timeline` answers questions about it.
It knows nothing of splitter and imports nothing from it.
"""

from splitter.sandbox.api import Api, PatchKind
from splitter.sandbox.controlplane import Sandbox
from splitter.sandbox.errors import ApiError, SandboxError
from splitter.sandbox.fleet import Fleet
from splitter.sandbox.instants import Instant
from splitter.sandbox.karpenter import Karpenter
from splitter.sandbox.machines import Notice
from splitter.sandbox.recorder import Recorder
from splitter.sandbox.timeline import Between, Steps, Timeline

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

"""The files of one real machine: what its kubelet, kube-proxy and containerd are told.

Pure: `fleet` writes them. They lie in the machine's own folder, which is /run/machine inside it; the programs
are in /run/programs (`machine.sh`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lab.sandbox.machines import JsonObject
from lab.sandbox.real import images
from lab.sandbox.real.world import GATEWAY, PODS, PREFIX

MOST = 200  # machines of one sandbox: what the addresses allow

_FIRST_ADDRESS = 10
_SOCKET = "/run/containerd/containerd.sock"
# A kubelet renews its lease after a quarter of this. With Kubernetes' own 40 s nobody could tell within
# seconds that a machine is gone, and tests would wait most of their time.
_LEASE_S = 4
_CONTAINERD = """version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.differ.v1.erofs",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  disable_hugetlb_controller = true
  # Without CAP_SYS_RESOURCE runc would end with "can't get final child's PID".
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/run/programs/cni"]
    conf_dir = "/run/machine/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    snapshotter = "native"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "/run/programs/runtime"
      SystemdCgroup = false
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: its number in the sandbox, from 1, and what its kubelet says of it when it registers."""

    number: int
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[JsonObject] = ()
    full: bool = False  # its kubelet takes its disk for full (100 % would be no threshold to it), and evicts

    @property
    def address(self) -> str:
        """Its address in the world."""
        return f"{GATEWAY.rpartition('.')[0]}.{_FIRST_ADDRESS + self.number}"

    @property
    def pods(self) -> str:
        """The addresses of its pods."""
        return f"{PODS.rsplit('.', 2)[0]}.{self.number}.0/24"

    def arguments(self) -> list[str]:
        """Return what `machine.sh` has to know, after the folders."""
        return [self.name, self.address, str(PREFIX), GATEWAY, self.pods]

    def files(self) -> dict[str, str]:
        """Return the content of each of its files by path, except the kubeconfigs, which hold a secret."""
        return {
            "labels": ",".join(f"{key}={value}" for key, value in self.labels.items()),
            "containerd.toml": _CONTAINERD.format(socket=_SOCKET, pause=images.PAUSE),
            "kubelet.yaml": _text(self._kubelet()),
            "kube-proxy.yaml": _text(self._kube_proxy()),
            "cni/10-pods.conflist": _text(self._network()),
        }

    def _kubelet(self) -> JsonObject:
        never = ("memory.available", "nodefs.available", "nodefs.inodesFree")
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "containerRuntimeEndpoint": f"unix://{_SOCKET}",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},  # nobody but the world can reach it
            "registerWithTaints": list(self.taints),
            # In a user namespace there are no control groups to manage.
            "featureGates": {"KubeletInUserNamespace": True},
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "resolvConf": "",  # there is no name server
            "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "30s",
            "nodeLeaseDurationSeconds": _LEASE_S,
            # All machines share this one's disk and memory; it is not theirs to judge.
            "evictionHard": {
                **dict.fromkeys(never, "0%"),
                **({"nodefs.available": "99%"} if self.full else {}),
                "imagefs.available": "0%",
                "imagefs.inodesFree": "0%",
            },
            "evictionPressureTransitionPeriod": "1s",
            # As on GKE: pods have 15 s to end when the machine is shut down, and what is critical 5 s more.
            "shutdownGracePeriod": "20s",
            "shutdownGracePeriodCriticalPods": "5s",
            "imageGCHighThresholdPercent": 100,
            "volumePluginDir": "/var/lib/kubelet/volumeplugins",
            # Kubernetes' own 5 a second would be most of the time that ten pods take to start.
            "kubeAPIQPS": 100,
            "kubeAPIBurst": 200,
            "serializeImagePulls": False,
        }

    def _kube_proxy(self) -> JsonObject:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "hostnameOverride": self.name,
            "clientConnection": {"kubeconfig": "kube-proxy.kubeconfig"},
            "clusterCIDR": PODS,
            # The kernel's limits are this machine's, and not ours to change.
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
            "nftables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
            "nodePortAddresses": ["primary"],
        }

    def _network(self) -> JsonObject:
        addresses = {
            "type": "host-local",
            "dataDir": "/var/lib/cni",
            "ranges": [[{"subnet": self.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        return {
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [{"type": "ptp", "ipMasq": False, "mtu": 1500, "ipam": addresses}],
        }


def _text(content: JsonObject) -> str:
    return json.dumps(content, indent=1)  # which is YAML too

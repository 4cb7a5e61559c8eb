"""The command lines of the sandbox's processes.

`controlplane` starts them in this order: etcd, kube-apiserver, then controller manager, scheduler and KWOK,
and at last Karpenter and metrics-server, where they are asked for.
Pure: paths and ports in, words out. The flags are upstream's; a comment stands where one is not obvious.
"""

from dataclasses import dataclass
from pathlib import Path

from lab.sandbox.build import Programs
from lab.sandbox.ports import LOOPBACK

# Far above what tests ask for: the client-side throttle of 20 a second would be all that a test measures.
_CLIENT_RATE = ("--kube-api-qps=500", "--kube-api-burst=1000")
# The kubelet's own lease duration; KWOK renews after a quarter of it. Where silence is never noticed nobody
# looks at leases, and to renew those of 8 machines is a fifth of what an idle control plane costs.
_NODE_LEASE_S, _UNWATCHED_LEASE_S = 40, 4000
# KWOK 0.8.0 was seen to forget the leases of machines that come back under their names on a busy machine;
# after Kubernetes' own 50 s they would all be lost, and nobody had taken them.
_NEVER_S = 24 * 3600
# Kubernetes' own 15 s would be most of the time that a test of an autoscaler takes.
_AUTOSCALER_SYNC_S = 1
# How often metrics-server scrapes; its own default is 15 s, and it takes no less than this.
RESOLUTION_S = 10
KUBELET_LABEL = "sandbox.splitter.io/kubelet"
KUBELET_RUNNING = "running"
KUBELET_STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of one sandbox lie and on which ports of 127.0.0.1 its processes listen."""

    home: Path
    etcd_port: int
    etcd_peer_port: int
    apiserver_port: int
    controller_manager_port: int
    scheduler_port: int

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://{LOOPBACK}:{self.apiserver_port}"

    @property
    def etcd_url(self) -> str:
        """The address on which etcd serves clients."""
        return f"http://{LOOPBACK}:{self.etcd_port}"

    @property
    def scheduler_url(self) -> str:
        """The address on which the scheduler says whether it is ready."""
        return f"https://{LOOPBACK}:{self.scheduler_port}"

    @property
    def scheduler_ca_file(self) -> Path:
        """The certificate that vouches for the scheduler."""
        return self.home / "kube-scheduler" / "kube-scheduler.crt"

    @property
    def certificates(self) -> Path:
        """Where the API server keeps the certificate that it makes for itself."""
        return self.home / "certificates"

    @property
    def ca_file(self) -> Path:
        """The certificate that vouches for the API server."""
        return self.certificates / "apiserver.crt"

    @property
    def signing_key(self) -> Path:
        """The private key that signs service-account tokens.

        It is the key of the serving certificate, which the API server makes itself before it reads this
        flag: one key pair without openssl and without a dependency. Good enough on loopback.
        """
        return self.certificates / "apiserver.key"

    @property
    def token_file(self) -> Path:
        """The static tokens of the sandbox's own users."""
        return self.home / "tokens.csv"

    @property
    def logs(self) -> Path:
        """One log a process."""
        return self.home / "logs"

    def kubeconfig(self, user: str) -> Path:
        """Return the kubeconfig of one of the sandbox's own users."""
        return self.home / f"{user.removeprefix('system:')}.kubeconfig"


def etcd(programs: Programs, layout: Layout) -> list[str]:
    """Return etcd's command line."""
    peer = f"http://{LOOPBACK}:{layout.etcd_peer_port}"
    return [
        str(programs.etcd),
        f"--data-dir={layout.home / 'etcd'}",
        f"--listen-client-urls={layout.etcd_url}",
        f"--advertise-client-urls={layout.etcd_url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--socket-reuse-port=true",
        "--unsafe-no-fsync=true",  # nobody needs the data after a power cut
        # There is no follower to hear it, and each beat wakes a process that has nothing to do.
        "--heartbeat-interval=1000",
        "--election-timeout=10000",
        f"--quota-backend-bytes={8 * 1024**3}",  # a bench of 10,000 pods outgrows the default of 2 GiB
        "--log-level=warn",
    ]


def kube_apiserver(programs: Programs, layout: Layout, at_once: int | None = None) -> list[str]:
    """Return the API server's command line.

    `at_once`: how many requests it serves at the same time, a third of them writes; left out, more than any
    test sends. Kubernetes' own default is 600.
    """
    reading, writing = (2000, 1000) if at_once is None else (at_once - at_once // 3, at_once // 3)
    return [
        str(programs.kube_apiserver),
        f"--etcd-servers={layout.etcd_url}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={layout.apiserver_port}",
        "--permit-port-sharing=true",
        f"--cert-dir={layout.certificates}",
        f"--token-auth-file={layout.token_file}",
        # As in real clusters: the authorizer lets a kubelet patch every Node, the plugin keeps it to its own.
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.signing_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--endpoint-reconciler-type=none",  # it refuses loopback addresses, with an error every 10 s
        f"--max-requests-inflight={reading}",
        f"--max-mutating-requests-inflight={writing}",
        "--profiling=false",
    ]


def kube_controller_manager(
    programs: Programs, layout: Layout, node_monitor_grace_s: float | None
) -> list[str]:
    """Return the controller manager's command line; no grace given means that silence is never noticed."""
    kubeconfig = layout.kubeconfig("system:kube-controller-manager")
    grace_s = _NEVER_S if node_monitor_grace_s is None else node_monitor_grace_s
    return [
        str(programs.kube_controller_manager),
        f"--kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={layout.controller_manager_port}",
        "--permit-port-sharing=true",
        f"--cert-dir={layout.home / 'kube-controller-manager'}",
        f"--service-account-private-key-file={layout.signing_key}",
        f"--root-ca-file={layout.ca_file}",
        # Each controller with a service account and rights of its own, as in a real cluster.
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        f"--horizontal-pod-autoscaler-sync-period={_AUTOSCALER_SYNC_S}s",
        f"--node-monitor-grace-period={grace_s:g}s",
        *_CLIENT_RATE,
    ]


def kube_scheduler(programs: Programs, layout: Layout) -> list[str]:
    """Return the scheduler's command line."""
    kubeconfig = layout.kubeconfig("system:kube-scheduler")
    return [
        str(programs.kube_scheduler),
        f"--kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={layout.scheduler_port}",
        "--permit-port-sharing=true",
        f"--cert-dir={layout.home / 'kube-scheduler'}",
        "--leader-elect=false",
        *_CLIENT_RATE,
    ]


def kwok(programs: Programs, layout: Layout, stages: Path, node_monitor_grace_s: float | None) -> list[str]:
    """Return KWOK's command line; it listens on no port. Without a grace its heartbeats are rare."""
    lease_s = _UNWATCHED_LEASE_S if node_monitor_grace_s is None else _NODE_LEASE_S
    return [
        str(programs.kwok),
        f"--kubeconfig={layout.kubeconfig('kwok')}",
        f"--config={stages}",
        # A label, not an annotation: see stages.yaml.
        f"--manage-nodes-with-label-selector={KUBELET_LABEL}={KUBELET_RUNNING}",
        f"--node-lease-duration-seconds={lease_s}",
        "--cidr=10.128.0.0/9",
    ]


def kwok_telling(usage: Path, port: int) -> list[str]:
    """Return what KWOK's command line has more where it tells at a port what is used."""
    return [f"--config={usage}", f"--server-address={LOOPBACK}:{port}"]


def metrics_server(program: Path, files: Path, port: int, kubelets_port: int) -> list[str]:
    """Return metrics-server's command line: it serves at `port`, and scrapes each machine at the other."""
    kubeconfig = files.with_suffix(".kubeconfig")
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-skip-lookup",  # the API server has no certificate to show (`metrics_server`)
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        f"--cert-dir={files}",
        "--kubelet-preferred-address-types=ExternalIP",  # `metrics_server.MetricsServer.measure`
        f"--kubelet-port={kubelets_port}",
        "--deprecated-kubelet-completely-insecure=true",
        f"--metric-resolution={RESOLUTION_S}s",
        f"--kubelet-request-timeout={RESOLUTION_S // 2}s",  # which has to be less
    ]


def karpenter(program: Path) -> list[str]:
    """Return Karpenter's command line; its kubeconfig stands in KUBECONFIG, it has no flag for it."""
    return [
        str(program),
        "--disable-leader-election=true",
        # 0: any free port, since nobody asks there. It can be told a port and no address, so these two are
        # the only ones of the sandbox that are open on every interface.
        "--metrics-port=0",
        "--health-probe-port=0",
        "--log-level=debug",
    ]

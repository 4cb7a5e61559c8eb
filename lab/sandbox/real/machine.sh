# A machine: what runs in it ends with its first process. Started by real/fleet.py in the world's namespaces.
#   machine.sh PROGRAMS HOME NAME ADDRESS PREFIX GATEWAY PODS
# In its namespaces PROGRAMS is /run/programs and HOME is /run/machine: short paths, since those of sockets
# may have 108 letters.
set -eu
programs=$1 home=$2 name=$3 address=$4 prefix=$5 gateway=$6 pods=$7

if [ "${8:-}" != inside ]; then
  exec 9</proc/self/ns/net # the world's, to which the machine's cable leads
  exec unshare --net --mount --pid --uts --ipc --fork --mount-proc --kill-child sh "$0" "$@" inside
fi

hostname "$name"
cd "$home"
mkdir -p var/lib var/log
mount -n -t tmpfs tmpfs /mnt
mkdir /mnt/programs /mnt/machine
mount -n --bind "$programs" /mnt/programs
mount -n --bind "$home" /mnt/machine
mount -n --move /mnt /run # at last, since /run may hide both
mount -n --bind /run/machine/var/lib /var/lib
mount -n --bind /run/machine/var/log /var/log
mount -n --make-rshared /
cd /run/machine
export PATH=/run/programs:/usr/sbin:/usr/bin:/sbin:/bin

ip link set lo up
cable="m${address##*.}"
ip link add eth0 type veth peer name "$cable" netns /proc/self/fd/9
nsenter --net=/proc/self/fd/9 sh -ec "
  ip link set $cable master world up
  ip route replace $pods via $address"
exec 9<&-
ip address add "$address/$prefix" dev eth0
ip link set eth0 up
ip route add default via "$gateway"
echo 1 >/proc/sys/net/ipv4/ip_forward
# A SYN to a machine that is gone leaves an entry in the NAT table, 120 s by default. The client's next
# connection from the same port goes the same way and fails, long after the Service is whole again.
echo 3 >/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent
echo 1024 65535 >/proc/sys/net/ipv4/ip_local_port_range

containerd --config containerd.toml >containerd.log 2>&1 &
socket=/run/containerd/containerd.sock
until ctr --address $socket version >/dev/null 2>&1; do sleep 0.05; done
ctr --address $socket --namespace k8s.io images import --local /run/programs/images.tar >images.log 2>&1
logind -bus bus >logind.log 2>&1 &
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/machine/bus
until [ -S bus ]; do sleep 0.05; done
while :; do # as systemd does; its file may have changed meanwhile
  kubelet --config kubelet.yaml --kubeconfig kubelet.kubeconfig --hostname-override "$name" --node-ip "$address" \
    --node-labels "$(cat labels)" --root-dir /var/lib/kubelet --cert-dir /var/lib/kubelet/pki || sleep 0.2
done >kubelet.log 2>&1 &
kube-proxy --config kube-proxy.yaml >kube-proxy.log 2>&1 &
exec pause

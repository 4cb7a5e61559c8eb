# The world of real machines: a bridge and a gateway in namespaces of its own. Started by real/world.py.
#   world.sh PROGRAMS READY ADDRESS PREFIX
set -eu
PATH=$PATH:/usr/sbin:/sbin
# As root runc could make control groups, which would stay when a machine is killed. It goes on without.
while read -r _ where kind _; do
  case $kind in cgroup | cgroup2) mount -n -o remount,bind,ro,nosuid,nodev,noexec "$where" ;; esac
done </proc/self/mounts
ip link set lo up
# An address of its own. It would take the lowest of its ports, and change it with each machine that comes or
# goes; what others send to the former one is lost, for a second or for longer.
ip link add world address 02:00:00:00:00:01 type bridge
ip address add "$3/$4" dev world
ip link set world up
echo 1 >/proc/sys/net/ipv4/ip_forward
touch "$2"
exec "$1/pause"

# The world of real machines: a bridge and a gateway in namespaces of its own. Started by real/world.py.
#   world.sh PROGRAMS READY ADDRESS PREFIX SERVICES
set -eu
PATH=$PATH:/usr/sbin:/sbin
ip link set lo up
ip link add world type bridge
ip address add "$3/$4" dev world
ip link set world up
echo 1 >/proc/sys/net/ipv4/ip_forward
touch "$2"
exec "$1/pause"

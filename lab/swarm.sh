#!/bin/sh
# The first process of a host in user-mode Linux: Docker's engine, and nothing else. NAME and ADDRESS come from the kernel's
# command line, as all words with = that the kernel does not know.
PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
export PATH HOME
mount -t proc proc /proc
mount -t sysfs sysfs /sys
for folder in /run /dev/shm /tmp; do
    mkdir -p "$folder" && mount -t tmpfs tmpfs "$folder"
done
mkdir -p /dev/pts && mount -t devpts devpts /dev/pts
mount -t cgroup2 none /sys/fs/cgroup
hostname "$NAME"
echo "127.0.0.1 localhost $NAME" >/etc/hosts
ip link set lo up
ip address add "$ADDRESS/24" dev vec0
ip link set vec0 up
ip route add default via "$GATEWAY"
for module in overlay veth bridge br_netfilter vxlan ip_vs ip_vs_rr nf_nat xt_ipvs iptable_nat xt_addrtype xt_conntrack \
    xt_MASQUERADE xt_REDIRECT xt_mark; do
    modprobe "$module"
done
# Containers get addresses of the lab's own network too.
dockerd --host unix:///run/docker.sock --host "tcp://$ADDRESS:2375" --tls=false --bip 198.18.210.1/24 \
    --default-address-pool base=198.18.212.0/22,size=26 --log-level warn
poweroff -f

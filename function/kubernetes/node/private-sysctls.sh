#!/bin/bash
# Begins a node whose settings of the kernel are its own where they would be the whole machine's: systemd and the
# kubelet find nothing to change. Usage: private-sysctls.sh PROGRAM ARGUMENT...
set -o errexit -o nounset -o pipefail

readonly FILES=/run/private-sysctls

# What the kubelet wants to have; it reads a file that says so.
wanted() {
    local name=$1 value=$2 file
    file=$FILES/${name//\//.}
    printf '%s\n' "$value" >"$file"
    mount --bind "$file" "/proc/sys/$name"
}

main() {
    mount --bind /proc/sys /proc/sys
    # A network namespace has settings of its own.
    mount --bind /proc/sys/net /proc/sys/net
    mount --options remount,bind,ro /proc/sys
    mkdir -p "$FILES"
    wanted vm/overcommit_memory 1
    wanted vm/panic_on_oom 0
    wanted kernel/panic 10
    wanted kernel/panic_on_oops 1
    wanted kernel/keys/root_maxkeys 1000000
    wanted kernel/keys/root_maxbytes 25000000
    exec "$@"
}

main "$@"

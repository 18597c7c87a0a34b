#!/bin/sh
# Keeps one host running until it powers off: usage: launch.sh NAME FOLDER LAYERS
# Runs in the lab's network namespace and in a mount namespace of its own, so the host's disk is unmounted when it ends.
set -o errexit -o nounset

readonly reboot_asked=133 # systemd-nspawn's exit status when the host inside has rebooted

main() {
    name=$1 folder=$2 layers=$3
    mount -t overlay overlay -o "lowerdir=$layers,upperdir=$folder/disk,workdir=$folder/work" "$folder/root"
    while true; do
        status=0
        systemd-nspawn --quiet --directory="$folder/root" --machine="$name" --hostname="$name" --boot --register=no \
            --keep-unit --network-bridge=br0 --resolv-conf=off --link-journal=no --timezone=off --console=pipe ||
            status=$?
        if [ "$status" -ne "$reboot_asked" ]; then
            exit "$status"
        fi
    done
}

main "$@"

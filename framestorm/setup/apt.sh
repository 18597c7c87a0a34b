#!/usr/bin/env bash
# Installs Debian packages as root, without starting the services they bring: apt.sh PACKAGE ...
# What apt prints goes to stdout; what the user should know goes to stderr. Waits for any other apt or dpkg.
# Used by run.sh before there is a Python, and by packages.py.
set -o errexit -o nounset -o pipefail

# DPKG_ROOT is dpkg's own variable for a system below another directory; the tests use it.
POLICY="${DPKG_ROOT:-}/usr/sbin/policy-rc.d"
LOCK="${DPKG_ROOT:-}/run/framestorm-packages.lock"
MARK='# framestorm: while packages are installed'
# What apt and dpkg print when another process has a lock.
LOCKED='Could not get lock|[Uu]nable to (lock|acquire)|lock was locked'
NEW=()
OWNS_POLICY=
DEADLINE_S=$((SECONDS + ${APT_WAIT_S:-1800}))
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

say() {
    printf 'framestorm: %s\n' "$*" >&2
}

# One installation by this kit at a time on a machine: the next one would otherwise take away the policy of the first.
lock() {
    exec 9>"$LOCK"
    flock --nonblock 9 && return
    say "waiting for another set-up on this machine to install its packages ($LOCK)"
    flock --timeout $((DEADLINE_S - SECONDS)) 9 || {
        say "gave up waiting for $LOCK"
        exit 1
    }
}

# Runs apt-get until it gets apt's and dpkg's locks. The lock of the package lists has no timeout of its own.
apt() {
    local output status holder told='' timeout_s=0
    output=$(mktemp)
    while true; do
        status=0
        apt-get -q -o DPkg::Lock::Timeout="$timeout_s" "$@" >"$output" 2>&1 || status=$?
        cat "$output"
        if ((status == 0 || SECONDS >= DEADLINE_S)) || ! grep -qE "$LOCKED" "$output"; then
            break
        fi
        holder=$(grep -oE 'held by process [0-9]+ \([^)]*\)' "$output" | head -n 1 || true)
        [[ -n "$told" ]] || say "waiting for another package installation to finish${holder:+: its lock is $holder}"
        told=yes timeout_s=30
        sleep 1
    done
    rm -f -- "$output"
    return "$status"
}

# Debian asks this program before a package may start its service (invoke-rc.d(8)). It forbids that to the packages of
# this installation alone, which FRAMESTORM_APT marks: what somebody else installs meanwhile starts as ever, and left
# behind by a kill the program forbids nothing. A policy that somebody else put there stays.
forbid_services() {
    if [[ -e "$POLICY" ]] && ! grep -qsF "$MARK" "$POLICY"; then
        return
    fi
    OWNS_POLICY=yes
    # shellcheck disable=SC2016 # the policy expands it
    printf '#!/bin/sh\n%s\n[ -z "${FRAMESTORM_APT:-}" ] || exit 101\n' "$MARK" >"$POLICY"
    chmod 755 "$POLICY"
}

# Prints the packages that an installation of these would bring; what apt says against it, the installation says again.
brought() {
    apt-get -q --simulate install --no-upgrade "$@" 2>/dev/null | sed -nE 's/^Inst ([^ ]+) \(.*/\1/p'
}

# Keeps the services of new packages from starting at the next boot: only their programs are wanted. Some have no unit
# but a script in /etc/init.d, which systemd starts as one. One by one: some systemd refuses all if one is masked.
disable_services() {
    local unit
    local -a units
    command -v systemctl >/dev/null || return 0
    mapfile -t units < <(dpkg-query --listfiles "$@" 2>/dev/null | sed -nE \
        -e 's,^(/usr)?/lib/systemd/system/([^/@]+\.(service|socket|timer|path))$,\2,p' \
        -e 's,^/etc/init\.d/([^/]+)$,\1.service,p' | sort -u)
    for unit in "${units[@]}"; do
        systemctl disable --quiet "$unit" 2>&1 || true
    done
}

# Also after an installation that failed or was interrupted: what it has brought by then is there to stay.
finish() {
    ((${#NEW[@]} == 0)) || disable_services "${NEW[@]}"
    [[ -z "$OWNS_POLICY" ]] || rm -f -- "$POLICY"
}

main() {
    lock
    trap finish EXIT
    forbid_services
    # One archive out of reach does not matter if the packages come from another.
    apt update || say "apt-get update failed; trying with the package lists that are here"
    mapfile -t NEW < <(brought "$@")
    FRAMESTORM_APT=1 apt install --yes --no-upgrade "$@"
}

main "$@"

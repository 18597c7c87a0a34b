#!/usr/bin/env bash
# The one entry of Framestorm: makes the conductor's Python environment once, then hands over to framestorm/.
# Everything it makes lies in .local/ beside this file, but for OS packages; `rm -r .local` takes it back.
set -o errexit -o nounset -o pipefail

ROOT=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")") # also where it is called by a link
LOCAL="$ROOT/.local"
VENV="$LOCAL/venv"
LOCK="$ROOT/framestorm/requirements.txt"
STAMP="$LOCAL/stamps/venv"

fail() {
    printf 'framestorm: %s\n' "$*" >&2
    exit 1
}

# Prints the first Python that is new enough. The lock files are resolved for 3.11 and later.
find_python() {
    local python
    for python in python3 python3.13 python3.12 python3.11; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$python"
            return
        fi
    done
    return 1
}

# Installs OS packages by apt as root or through sudo; elsewhere says what to install.
install_packages() {
    local -a as_root=()
    command -v apt-get >/dev/null || fail "please install: $*"
    if ((EUID != 0)); then
        sudo -n true 2>/dev/null || [[ -t 0 ]] || fail "please run: sudo apt-get install $*"
        as_root=(sudo)
    fi
    printf 'framestorm: installing %s\n' "$*" >&2
    "${as_root[@]}" bash "$ROOT/framestorm/setup/apt.sh" "$@" >>"$LOCAL/apt.log" ||
        fail "apt-get install $* failed; its output is in .local/apt.log"
}

venv_is_made() {
    local python
    # After an upgrade of the system's Python, the packages are those of the one before.
    python=$(readlink -f -- "$VENV/bin/python")
    python=${python##*/}
    [[ $python != python3.* || -d "$VENV/lib/$python" ]] || return 1
    [[ -x "$VENV/bin/python" && -f "$STAMP" && "$(sha256sum <"$LOCK")" == "$(<"$STAMP")" ]]
}

# Whether this user may make what is missing: a start by sudo leaves files of root.
may_make_venv() {
    local path
    mkdir -p -- "$LOCAL/stamps" 2>/dev/null || return 1
    for path in "$LOCAL" "$LOCAL/lock" "$LOCAL/stamps" "$STAMP" "$VENV"; do
        [[ ! -e "$path" || -w "$path" ]] || return 1
    done
}

refuse() {
    local -r what="$LOCAL cannot be written to, and nothing in it is set up for $(id -un)"
    [[ -O "$ROOT" && -d "$LOCAL" ]] || fail "$what: clone the project into a folder of yours"
    fail "$what: if a start by sudo has made it, start by sudo again, or remove it by \`sudo rm -r $LOCAL\`"
}

make_venv() {
    local python
    python=$(find_python) || install_packages python3
    python=$(find_python) || fail "Python 3.11 or later is needed, $(python3 --version 2>&1 || true) was found"
    # Of that very Python: python3-venv is that of the system's, which may be too old.
    "$python" -P -c 'import ensurepip, venv' 2>/dev/null || install_packages "${python##*/}-venv"
    printf 'framestorm: making the Python environment of the conductor (first use only)\n' >&2
    rm -rf -- "$VENV"
    # -I: a package that PYTHONPATH has somewhere else would be taken for installed.
    "$python" -I -m venv "$VENV"
    # --no-compile: half the time; Python compiles what it imports, once, which is a sixth of the files.
    # --no-deps: the lock is complete; where it has a package that another needs with extras, pip would take a newer one.
    # --retries, --timeout: an index that does not answer is given up after a minute, not after minutes.
    "$VENV/bin/python" -I -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 15 --no-deps \
        --require-hashes --no-compile -r "$LOCK"
    sha256sum <"$LOCK" >"$STAMP"
}

main() {
    if ! venv_is_made; then
        may_make_venv || refuse
        command -v flock >/dev/null || install_packages util-linux
        # A second start waits for the first one's set-up and then uses what that has made.
        (
            flock --nonblock 9 || {
                printf 'framestorm: waiting for another set-up of this checkout to finish (.local/lock)\n' >&2
                flock 9
            }
            venv_is_made || make_venv
        ) 9>"$LOCAL/lock"
    fi
    # -P, here and wherever -m is: else a json.py in the folder that it is started in would be Python's own.
    # What PYTHONPATH had would precede the packages of the environment.
    PYTHONPATH="$ROOT" exec "$VENV/bin/python" -P -m framestorm "$@"
}

main "$@"

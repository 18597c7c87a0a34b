#!/usr/bin/env bash
# Takes down what up.sh has made: the cluster, then the registry with its images.
set -o errexit -o nounset -o pipefail

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=function/kind/versions.sh
source "$HERE/versions.sh"

main() {
    kind delete cluster --name "$CLUSTER"
    docker rm --force --volumes "$REGISTRY" >/dev/null 2>&1 || true
}

main "$@"

#!/usr/bin/env bash
# The original study's cluster: KinD with a local registry, OpenFaaS on it by its Helm chart, reached by NodePort.
set -o errexit -o nounset -o pipefail

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=function/kind/versions.sh
source "$HERE/versions.sh"

fail() {
    printf 'kind/up.sh: %s\n' "$*" >&2
    exit 1
}

check_tools() {
    local tool
    for tool in docker kind kubectl helm; do
        command -v "$tool" >/dev/null || fail "$tool is needed and was not found"
    done
    docker info >/dev/null 2>&1 || fail "no Docker engine answers; start it first"
}

# A cluster is made of published images: without them there is none, and that is better said at once.
pull() {
    docker image inspect "$1" >/dev/null 2>&1 || docker pull --quiet "$1" >/dev/null ||
        fail "the image $1 cannot be pulled; without access to a container registry use: ./run.sh target openfaas"
}

# By a digest of our own: whoever serves a chart also serves the index with its digest.
pull_chart() {
    local folder=$1 chart="openfaas-$CHART_VERSION.tgz" digest
    helm pull openfaas --repo "$CHART_REPOSITORY" --version "$CHART_VERSION" --destination "$folder" ||
        fail "the chart $chart cannot be pulled from $CHART_REPOSITORY"
    digest=$(sha256sum <"$folder/$chart")
    [[ "${digest%% *}" == "$CHART_SHA256" ]] ||
        fail "the chart $chart of $CHART_REPOSITORY has SHA-256 ${digest%% *}, not $CHART_SHA256: it is not installed"
}

start_registry() {
    if [[ "$(docker inspect --format '{{.State.Running}}' "$REGISTRY" 2>/dev/null)" != true ]]; then
        docker rm --force "$REGISTRY" >/dev/null 2>&1 || true
        docker run --detach --restart=always --name "$REGISTRY" \
            --publish "127.0.0.1:$REGISTRY_PORT:5000" "$REGISTRY_IMAGE" >/dev/null
    fi
}

make_cluster() {
    if ! kind get clusters | grep --quiet --line-regexp "$CLUSTER"; then
        kind create cluster --name "$CLUSTER" --image "$NODE_IMAGE" --config "$HERE/cluster.yaml" --wait 3m
    fi
    local folder="/etc/containerd/certs.d/localhost:$REGISTRY_PORT" node
    for node in $(kind get nodes --name "$CLUSTER"); do
        docker exec "$node" mkdir -p "$folder"
        printf '[host."http://%s:5000"]\n' "$REGISTRY" | docker exec --interactive "$node" cp /dev/stdin "$folder/hosts.toml"
    done
    docker network inspect kind --format '{{range .Containers}}{{println .Name}}{{end}}' |
        grep --quiet --line-regexp "$REGISTRY" || docker network connect kind "$REGISTRY"
}

install_openfaas() {
    local chart=$1
    kubectl create namespace openfaas --dry-run=client --output yaml | kubectl apply --filename -
    kubectl create namespace openfaas-fn --dry-run=client --output yaml | kubectl apply --filename -
    helm upgrade openfaas "$chart" --install --namespace openfaas --values "$HERE/values.yaml" --wait --timeout 5m
    kubectl apply --filename "$HERE/registry-configmap.yaml" --filename "$HERE/prometheus-nodeport.yaml"
}

main() {
    check_tools
    pull "$REGISTRY_IMAGE"
    pull "$NODE_IMAGE"
    SCRATCH=$(mktemp -d)
    trap 'rm -rf -- "$SCRATCH"' EXIT
    pull_chart "$SCRATCH"
    start_registry
    make_cluster
    # Not the context that happens to be the current one.
    export KUBECONFIG="$SCRATCH/kubeconfig"
    kind export kubeconfig --name "$CLUSTER" --kubeconfig "$KUBECONFIG"
    install_openfaas "$SCRATCH/openfaas-$CHART_VERSION.tgz"
    printf 'gateway     %s\n' "$GATEWAY_URL"
    printf 'password    kubectl get secret -n openfaas basic-auth -o jsonpath={.data.basic-auth-password} | base64 -d\n'
    printf 'images      docker push localhost:%s/face-blur:0.1\n' "$REGISTRY_PORT"
    printf 'deploy      OPENFAAS_PREFIX=localhost:%s faas-cli deploy -g %s -f function/stack.yml\n' \
        "$REGISTRY_PORT" "$GATEWAY_URL"
}

main "$@"

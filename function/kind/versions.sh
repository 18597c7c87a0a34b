# Versions of what up.sh uses, in one place; sourced.
# shellcheck shell=bash disable=SC2034
readonly NODE_IMAGE="kindest/node:v1.31.0"
readonly REGISTRY_IMAGE="registry:2.8.3"
readonly CHART_REPOSITORY="https://openfaas.github.io/faas-netes/"
readonly CHART_VERSION="14.2.49"
readonly CLUSTER="framestorm"
readonly REGISTRY="framestorm-registry"
readonly REGISTRY_PORT=5001
readonly GATEWAY_URL="http://127.0.0.1:31112"

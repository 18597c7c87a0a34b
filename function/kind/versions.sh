# Versions of what up.sh uses, in one place; sourced.
# shellcheck shell=bash disable=SC2034
# The one that this version of kind names as its own.
readonly NODE_IMAGE="kindest/node:v1.31.0@sha256:53df588e04085fd41ae12de0c3fe4c72f7013bba32a20e7325357a1ac94ba865"
readonly REGISTRY_IMAGE="registry:2.8.3"
readonly CHART_REPOSITORY="https://openfaas.github.io/faas-netes/"
readonly CHART_VERSION="14.2.49"
readonly CLUSTER="framestorm"
readonly REGISTRY="framestorm-registry"
readonly REGISTRY_PORT=5001
readonly GATEWAY_URL="http://127.0.0.1:31112"

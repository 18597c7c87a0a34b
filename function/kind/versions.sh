# Versions of what up.sh uses, in one place; sourced.
# shellcheck shell=bash disable=SC2034
# The one that this version of kind names as its own.
readonly NODE_IMAGE="kindest/node:v1.31.0@sha256:53df588e04085fd41ae12de0c3fe4c72f7013bba32a20e7325357a1ac94ba865"
readonly REGISTRY_IMAGE="registry:2.8.3@sha256:a3d8aaa63ed8681a604f1dea0aa03f100d5895b6a58ace528858a7b332415373"
readonly CHART_REPOSITORY="https://openfaas.github.io/faas-netes/"
readonly CHART_VERSION="14.2.49"
readonly CHART_SHA256="599798c22291b909f708ed0a3a93793a2df44a04db0d7057c3c93f76aad6610d"
readonly CLUSTER="framestorm"
readonly REGISTRY="framestorm-registry"
readonly REGISTRY_PORT=5001
readonly GATEWAY_URL="http://127.0.0.1:31112"

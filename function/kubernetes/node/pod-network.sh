#!/bin/bash
# The network of a node's pods: writes the CNI configuration of this node, and routes to the pods of the others.
set -o errexit -o nounset -o pipefail

export KUBECONFIG=/etc/kubernetes/kubelet.conf
# Of a test network: addresses of the cluster and of the machine that it runs on.
readonly NEAR=198.18.0.0/15
readonly CONFIG=/etc/cni/net.d/10-pods.conflist
readonly LINE='{.metadata.name};{.spec.podCIDR};{.status.addresses[?(@.type=="InternalIP")].address}{"\n"}'

write_config() {
    local pods=$1
    mkdir -p "${CONFIG%/*}"
    cat >"$CONFIG.new" <<END
{"cniVersion": "0.3.1", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "mtu": 1500,
   "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state", "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[{"subnet": "$pods"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
    mv "$CONFIG.new" "$CONFIG"
    local rule=(POSTROUTING --source "$pods" ! --destination "$NEAR" --jump MASQUERADE)
    iptables --table nat --check "${rule[@]}" 2>/dev/null || iptables --table nat --append "${rule[@]}"
}

main() {
    local name pods address me
    me=$(hostname)
    # One line for each node, and again whenever one changes, until the API server ends the connection.
    kubectl get nodes --watch --output=jsonpath="$LINE" |
        while IFS=";" read -r name pods address; do
            if [[ -z $pods || -z $address ]]; then
                continue
            elif [[ $name != "$me" ]]; then
                ip route replace "$pods" via "$address"
            elif [[ ! -e $CONFIG ]]; then
                write_config "$pods"
            fi
        done
}

main "$@"

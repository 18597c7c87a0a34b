# noop-node for those who have a registry; in the folder function/:
#   docker build -f images/node.Dockerfile --target serve -t PREFIX/noop-node:0.1 .
# Targets as in go.Dockerfile: serve, fork, of-watchdog.
ARG NODE_IMAGE=node:20.20.2-bookworm-slim@sha256:2cf067cfed83d5ea958367df9f966191a942351a2df77d6f0193e162b5febfc0
ARG GO_IMAGE=golang:1.26.0-bookworm@sha256:2a0ba12e116687098780d3ce700f9ce3cb340783779646aafbabed748fa6677c
ARG OF_WATCHDOG_IMAGE=ghcr.io/openfaas/of-watchdog:0.10.7

FROM ${NODE_IMAGE} AS serve
COPY noop/node/noop.js /app/noop.js
# The checkout may be its owner's alone.
RUN chmod a+r /app/noop.js
USER 10001:10001
EXPOSE 8080
CMD ["node", "/app/noop.js", "serve"]

# The classic watchdog from its source: go.mod names its version, go.sum the digests of its modules.
FROM ${GO_IMAGE} AS classic
WORKDIR /src
COPY openfaas/parts/watchdog ./
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /fwatchdog tool

FROM serve AS fork
COPY --from=classic /fwatchdog /usr/bin/fwatchdog
ENV fprocess="node /app/noop.js fork" combine_output="false"
CMD ["fwatchdog"]

FROM ${OF_WATCHDOG_IMAGE} AS of
FROM serve AS of-watchdog
COPY --from=of /fwatchdog /usr/bin/fwatchdog
ENV mode="http" fprocess="node /app/noop.js serve 8000" upstream_url="http://127.0.0.1:8000"
CMD ["fwatchdog"]

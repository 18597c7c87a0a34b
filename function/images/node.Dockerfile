# noop-node for those who have a registry; in the folder function/:
#   docker build -f images/node.Dockerfile --target serve -t PREFIX/noop-node:0.1 .
# Targets as in go.Dockerfile: serve, fork, of-watchdog.
ARG NODE_IMAGE=node:20.17.0-bookworm-slim
ARG CLASSIC_WATCHDOG_IMAGE=ghcr.io/openfaas/classic-watchdog:0.3.3
ARG OF_WATCHDOG_IMAGE=ghcr.io/openfaas/of-watchdog:0.10.7

FROM ${NODE_IMAGE} AS serve
COPY noop/node/noop.js /app/noop.js
USER 10001:10001
EXPOSE 8080
CMD ["node", "/app/noop.js", "serve"]

FROM ${CLASSIC_WATCHDOG_IMAGE} AS classic
FROM serve AS fork
COPY --from=classic /fwatchdog /usr/bin/fwatchdog
ENV fprocess="node /app/noop.js fork" combine_output="false"
CMD ["fwatchdog"]

FROM ${OF_WATCHDOG_IMAGE} AS of
FROM serve AS of-watchdog
COPY --from=of /fwatchdog /usr/bin/fwatchdog
ENV mode="http" fprocess="node /app/noop.js serve 8000" upstream_url="http://127.0.0.1:8000"
CMD ["fwatchdog"]

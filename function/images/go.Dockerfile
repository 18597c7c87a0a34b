# A function in Go (noop, sleep, cpu) for those who have a registry; in the folder function/:
#   docker build -f images/go.Dockerfile --build-arg FUNCTION=noop/go --target serve -t PREFIX/noop:0.1 .
#   ... --target fork         -t PREFIX/noop-fork:0.1   forked for each request by the classic watchdog
#   ... --target of-watchdog  -t PREFIX/noop:0.1        kept alive, behind of-watchdog in its http mode
ARG GO_IMAGE=golang:1.26.0-bookworm@sha256:2a0ba12e116687098780d3ce700f9ce3cb340783779646aafbabed748fa6677c
ARG OF_WATCHDOG_IMAGE=ghcr.io/openfaas/of-watchdog:0.10.7

FROM ${GO_IMAGE} AS build
ARG FUNCTION
WORKDIR /src
COPY go.mod ./
COPY shell shell
COPY ${FUNCTION} ${FUNCTION}
RUN mkdir /empty && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /function ./${FUNCTION}

FROM scratch AS serve
COPY --from=build /function /function
# The watchdogs keep their lock file there.
COPY --from=build --chown=10001:10001 /empty /tmp
USER 10001:10001
EXPOSE 8080
CMD ["/function", "serve"]

# The classic watchdog from its source: go.mod names its version, go.sum the digests of its modules.
FROM ${GO_IMAGE} AS classic
WORKDIR /src
COPY openfaas/parts/watchdog ./
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /fwatchdog tool

FROM serve AS fork
COPY --from=classic /fwatchdog /fwatchdog
ENV fprocess="/function fork" combine_output="false"
CMD ["/fwatchdog"]

FROM ${OF_WATCHDOG_IMAGE} AS of
FROM serve AS of-watchdog
COPY --from=of /fwatchdog /fwatchdog
ENV mode="http" fprocess="/function serve 8000" upstream_url="http://127.0.0.1:8000"
CMD ["/fwatchdog"]

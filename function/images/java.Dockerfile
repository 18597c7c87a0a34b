# noop-java for those who have a registry; in the folder function/:
#   docker build -f images/java.Dockerfile --target serve -t PREFIX/noop-java:0.1 .
# Targets as in go.Dockerfile: serve, fork, of-watchdog.
# Java 17.0.19.
ARG JDK_IMAGE=eclipse-temurin:17-jdk-jammy@sha256:723151f3fc88ca2060153ee08ab8dbbea7983d6ed6f2622fe440acf178737c94
ARG JRE_IMAGE=eclipse-temurin:17-jre-jammy@sha256:475d8e96b4b2bfe08999e5e854755c773af1581acdf959a4545d88f0696a2339
ARG GO_IMAGE=golang:1.26.0-bookworm@sha256:2a0ba12e116687098780d3ce700f9ce3cb340783779646aafbabed748fa6677c
ARG OF_WATCHDOG_IMAGE=ghcr.io/openfaas/of-watchdog:0.10.7

FROM ${JDK_IMAGE} AS build
COPY noop/java/Noop.java .
RUN javac -d /classes Noop.java

FROM ${JRE_IMAGE} AS serve
COPY --from=build /classes /app
USER 10001:10001
EXPOSE 8080
CMD ["java", "-cp", "/app", "Noop", "serve"]

# The classic watchdog from its source: go.mod names its version, go.sum the digests of its modules.
FROM ${GO_IMAGE} AS classic
WORKDIR /src
COPY openfaas/parts/watchdog ./
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /fwatchdog tool

FROM serve AS fork
COPY --from=classic /fwatchdog /usr/bin/fwatchdog
ENV fprocess="java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -cp /app Noop fork" combine_output="false"
CMD ["fwatchdog"]

FROM ${OF_WATCHDOG_IMAGE} AS of
FROM serve AS of-watchdog
COPY --from=of /fwatchdog /usr/bin/fwatchdog
ENV mode="http" fprocess="java -cp /app Noop serve 8000" upstream_url="http://127.0.0.1:8000"
CMD ["fwatchdog"]

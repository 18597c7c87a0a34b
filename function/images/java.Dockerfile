# noop-java for those who have a registry; in the folder function/:
#   docker build -f images/java.Dockerfile --target serve -t PREFIX/noop-java:0.1 .
# Targets as in go.Dockerfile: serve, fork, of-watchdog.
ARG JDK_IMAGE=eclipse-temurin:17.0.12_7-jdk-jammy
ARG JRE_IMAGE=eclipse-temurin:17.0.12_7-jre-jammy
ARG CLASSIC_WATCHDOG_IMAGE=ghcr.io/openfaas/classic-watchdog:0.3.3
ARG OF_WATCHDOG_IMAGE=ghcr.io/openfaas/of-watchdog:0.10.7

FROM ${JDK_IMAGE} AS build
COPY noop/java/Noop.java .
RUN javac -d /classes Noop.java

FROM ${JRE_IMAGE} AS serve
COPY --from=build /classes /app
USER 10001:10001
EXPOSE 8080
CMD ["java", "-cp", "/app", "Noop", "serve"]

FROM ${CLASSIC_WATCHDOG_IMAGE} AS classic
FROM serve AS fork
COPY --from=classic /fwatchdog /usr/bin/fwatchdog
ENV fprocess="java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -cp /app Noop fork" combine_output="false"
CMD ["fwatchdog"]

FROM ${OF_WATCHDOG_IMAGE} AS of
FROM serve AS of-watchdog
COPY --from=of /fwatchdog /usr/bin/fwatchdog
ENV mode="http" fprocess="java -cp /app Noop serve 8000" upstream_url="http://127.0.0.1:8000"
CMD ["fwatchdog"]

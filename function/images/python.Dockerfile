# face-blur, chat and noop-python for those who have a registry; in the folder function/, with face.pb of .local/ copied into it:
#   docker build -f images/python.Dockerfile --build-arg SERVE="face-blur/app.py --host 0.0.0.0 --port" \
#       --build-arg FORK=face-blur/fork.py --target serve -t PREFIX/face-blur:0.1 .
#   chat: SERVE="chat/app.py --host 0.0.0.0 --port", target serve alone
#   noop-python: SERVE="noop/python/noop.py serve" FORK="noop/python/noop.py fork"
# Targets as in go.Dockerfile: serve, fork, of-watchdog.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d
ARG GO_IMAGE=golang:1.26.0-bookworm@sha256:2a0ba12e116687098780d3ce700f9ce3cb340783779646aafbabed748fa6677c
ARG OF_WATCHDOG_IMAGE=ghcr.io/openfaas/of-watchdog:0.10.7

FROM ${PYTHON_IMAGE} AS packages
COPY face-blur/requirements.txt .
RUN pip install --no-cache-dir --no-compile --no-deps --require-hashes --target /packages -r requirements.txt

FROM ${PYTHON_IMAGE} AS serve
ARG SERVE
COPY --from=packages /packages /packages
# The programs look for what they share in a folder called function.
COPY . /app/function
# The checkout may be its owner's alone.
RUN chmod -R a+rX /app/function
ENV PYTHONPATH=/packages FACE_MODEL=/app/function/face.pb HOME=/tmp SERVE="${SERVE}"
USER 10001:10001
WORKDIR /app/function
EXPOSE 8080
CMD ["sh", "-c", "exec python $SERVE 8080"]

# The classic watchdog from its source: go.mod names its version, go.sum the digests of its modules.
FROM ${GO_IMAGE} AS classic
WORKDIR /src
COPY openfaas/parts/watchdog ./
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /fwatchdog tool

FROM serve AS fork
ARG FORK
COPY --from=classic /fwatchdog /usr/bin/fwatchdog
ENV fprocess="python ${FORK}" combine_output="false"
CMD ["fwatchdog"]

FROM ${OF_WATCHDOG_IMAGE} AS of
FROM serve AS of-watchdog
ARG SERVE
COPY --from=of /fwatchdog /usr/bin/fwatchdog
ENV mode="http" fprocess="python ${SERVE} 8000" upstream_url="http://127.0.0.1:8000"
CMD ["fwatchdog"]

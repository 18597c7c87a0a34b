# The kit as an image, to conduct runs or to be a slave; docs/containers.md shows both.
#   docker build -t framestorm .
# BASE may be any Debian 12 or Ubuntu 24.04, or a system made of their packages.
ARG BASE=python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d

FROM ${BASE} AS system
RUN ls /usr/lib/jvm/*17*/bin/java && command -v python3 && command -v ssh && command -v tini && test -x /usr/sbin/sshd \
    || { apt-get update \
        && apt-get install --yes --no-install-recommends \
            ca-certificates openjdk-17-jre-headless openssh-client openssh-server python3 python3-venv tini \
        && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*; }
RUN useradd --uid 10001 --no-create-home --home-dir /var/lib/framestorm --shell /bin/sh framestorm

FROM system AS made
WORKDIR /opt/framestorm
COPY . .
# The checkout may be its owner's alone.
RUN chmod -R a+rX . && ./run.sh slave --setup && python3 -m compileall -q framestorm client \
    && rm -rf .local/*.log ~/.m2 ~/.cache

FROM system
WORKDIR /opt/framestorm
COPY --from=made /opt/framestorm .
# What is written lies in volumes: the rest may be read-only. On a host the playbook has the same folders.
RUN install -d -o framestorm -g framestorm /etc/framestorm /var/lib/framestorm dashboards .local/frames \
    && ln -s /var/lib/framestorm/lock /run/framestorm.lock
ENV LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
VOLUME ["/tmp", "/etc/framestorm", "/var/lib/framestorm", "/opt/framestorm/dashboards", "/opt/framestorm/.local/frames"]
EXPOSE 8001-8003 8022
# tini ends what is left over, and hands SIGTERM on: a run ends gently with its report.
ENTRYPOINT ["tini", "--", "/opt/framestorm/run.sh"]

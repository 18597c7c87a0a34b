"""The docker backend under the real gateway: the same way of a user as with processes, in containers."""

import re
import shutil
import subprocess
import urllib.request

import pytest

from framestorm.openfaas import config, docker, docker_images, gateway, stack
from framestorm.openfaas.layout import BIN, FUNCTIONS, GATEWAY_URL, PROVIDER_URL, STACK


@pytest.fixture(scope="module")
def openfaas(run_faas_cli):
    stack.up("docker")
    try:
        assert run_faas_cli("login", "--password-stdin", stdin=config.password()).returncode == 0
        yield run_faas_cli
    finally:
        stack.down()


def post(name: str, body: bytes = b"x") -> bytes:
    with urllib.request.urlopen(urllib.request.Request(f"{GATEWAY_URL}/function/{name}", data=body), timeout=40) as got:
        return got.read()


def test_a_user_s_way_through_faas_cli(openfaas):
    assert "Deployed. 202" in openfaas("deploy", "-f", STACK, "--filter", "noop").stdout
    assert "noop" in openfaas("list").stdout
    assert "Ready" in openfaas("describe", "noop").stdout
    assert openfaas("invoke", "noop", stdin="hello").stdout == "ok"
    gateway.scale("noop", 3)
    replicas = gateway.wait_for_replicas("noop", 3)
    names = docker.run("ps", "--format", "{{.Names}}").split()
    assert set(names) == {replica["name"] for replica in replicas}
    gateway.scale("noop", 0)
    gateway.wait_for_replicas("noop", 0)
    assert post("noop") == b"ok", "a request to no replica starts the first"
    assert openfaas("remove", "noop").returncode == 0


@pytest.mark.parametrize("name", ["noop-python", "noop-python-fork", "noop-node-fork", "noop-java", "face-blur"])
def test_function_in_a_container(openfaas, name):
    done = openfaas("deploy", "-f", STACK, "--filter", name)
    assert "Deployed. 202" in done.stdout, done.stdout
    if name == "face-blur":
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post(name, b"")
        return
    assert post(name) == b"ok"
    logs = openfaas("logs", name, "--tail=false").stdout
    assert not name.endswith("-fork") or "Forking fprocess" in logs


def test_limits_and_secret_reach_the_container(openfaas):
    openfaas("secret", "create", "token", "--from-literal", "hush")
    limited = {
        "service": "limited",
        "image": "framestorm/noop:0.1",
        "secrets": ["token"],
        "readOnlyRootFilesystem": True,
        "limits": {"cpu": "500m", "memory": "64Mi"},
    }
    gateway.call("POST", f"{GATEWAY_URL}/system/functions", limited)
    replica = gateway.wait_for_replicas("limited", 1)[0]["name"]
    seen = docker.run(
        "inspect", "--format", "{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.ReadonlyRootfs}}", replica
    )
    assert seen.split() == ["500000000", str(64 << 20), "true"]
    with urllib.request.urlopen(f"{PROVIDER_URL}/metrics", timeout=5) as answer:
        metrics = answer.read().decode()
    memory = re.search(r'replica_memory_bytes\{function="limited".*\} (.*)', metrics)
    assert memory is not None and 0 < float(memory.group(1)) < 64 << 20
    assert docker.run("cp", f"{replica}:/var/openfaas/secrets/token", "-").count("hush") == 1


def test_a_missing_image_is_named(openfaas):
    done = openfaas("deploy", "--name", "a", "--image", "localhost:1/nope:1")
    assert 'image "localhost:1/nope:1" is neither in this machine' in done.stdout


def test_a_killed_container_is_replaced(openfaas):
    openfaas("deploy", "-f", STACK, "--filter", "noop")
    first = gateway.wait_for_replicas("noop", 1)[0]["name"]
    subprocess.run(["docker", "kill", first], check=True, capture_output=True)
    assert post("noop") == b"ok"
    assert gateway.wait_for_replicas("noop", 1)[0]["name"] != first


@pytest.mark.parametrize("target", ["serve", "fork", "of-watchdog"])
def test_a_dockerfile_builds_with_stand_ins_for_published_images(openfaas, tmp_path, target):
    """The others differ from this one by their runtime, whose published image cannot be had everywhere."""
    watchdog = tmp_path / "watchdog"
    watchdog.mkdir()
    shutil.copy2(BIN / "watchdog", watchdog / "fwatchdog")
    (watchdog / "Dockerfile").write_text("FROM scratch\nCOPY fwatchdog /fwatchdog\n")
    docker.run("build", "--quiet", "--tag", "framestorm/stand-in", str(watchdog))
    stand_ins = [f"{name}_IMAGE=framestorm/stand-in" for name in ("CLASSIC_WATCHDOG", "OF_WATCHDOG")]
    stand_ins.append(f"NODE_IMAGE={docker_images.ALL}")
    arguments = [word for stand_in in stand_ins for word in ("--build-arg", stand_in)]
    file = FUNCTIONS / "images" / "node.Dockerfile"
    words = ["--file", str(file), "--target", target, "--tag", "framestorm/built", *arguments, str(FUNCTIONS)]
    docker.run("build", "--quiet", *words)
    seen = docker.run("inspect", "--format", "{{.Config.User}} {{json .Config.Cmd}}", "framestorm/built")
    assert seen.startswith("10001:10001") and ('["node"' if target == "serve" else '["fwatchdog"]') in seen

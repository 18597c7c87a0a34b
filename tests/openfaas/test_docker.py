"""The docker backend under the real gateway: the same way of a user as with processes, in containers."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.machine import execute, wait_until
from framestorm.platform.openfaas import docker, gateway
from framestorm.platform.openfaas.docker import IN_IMAGE
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS, GATEWAY_URL, PROVIDER_URL
from tests.openfaas.conftest import get, post

BACKEND = "docker"
# The engine writes a container's log apart from the answers.
LOGGED_WITHIN_S = 10.0


def test_a_user_s_way_through_faas_cli(openfaas, deploy):
    deploy("noop")
    assert "noop" in openfaas("list").stdout
    assert "Ready" in openfaas("describe", "noop").stdout
    assert openfaas("invoke", "noop", stdin="hello").stdout == "ok"
    gateway.scale("noop", 3)
    names = {replica["name"] for replica in gateway.wait_for_replicas("noop", 3)}
    assert set(docker.ENGINE.run("ps", "--format", "{{.Names}}").split()) == names
    gateway.scale("noop", 0)
    gateway.wait_for_replicas("noop", 0)
    assert post("noop").content == b"ok", "a request to no replica starts the first"
    assert openfaas("remove", "noop").returncode == 0


@pytest.mark.parametrize("name", ["noop-python", "noop-python-fork", "noop-node-fork", "noop-java"])
def test_function_in_a_container(openfaas, deploy, name):
    deploy(name)
    assert post(name).content == b"ok"
    if name.endswith("-fork"):
        assert wait_until(lambda: "Forking fprocess" in openfaas("logs", name, "--tail=false").stdout, LOGGED_WITHIN_S)


@pytest.mark.parametrize("name", ["face-blur", "face-blur-fork"])
def test_a_frame_comes_back_with_its_face_blurred(openfaas, deploy, send_frame, name):
    """The frame client itself looks at the picture: the face is changed, what is around it is not."""
    deploy(name)
    frame = send_frame(name)
    assert (frame["ok"], frame["cause"], frame["verified"], frame["faces"]) == (True, None, True, 1), frame
    assert openfaas("remove", name).returncode == 0


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
    limits = "{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.ReadonlyRootfs}}"
    assert docker.ENGINE.run("inspect", "--format", limits, replica).split() == ["500000000", str(64 << 20), "true"]
    figures = get(f"{PROVIDER_URL}/metrics")
    for name, most in (("memory_bytes", 64 << 20), ("network_receive_bytes_total", 64 << 20)):
        figure = re.search(rf'replica_{name}\{{function="limited".*\}} (.*)', figures)
        assert figure is not None and 0 < float(figure.group(1)) < most
    assert docker.ENGINE.run("cp", f"{replica}:/var/openfaas/secrets/token", "-").count("hush") == 1


def test_the_engine_of_another_checkout_is_not_used(openfaas, tmp_path, monkeypatch) -> None:
    owner = paths.ROOT
    monkeypatch.setattr(docker, "DATA", tmp_path / docker.DATA.relative_to(owner))
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(docker, "ENGINE_ENDS_WITHIN_S", 0)
    assert not docker.is_running()
    with pytest.raises(FramestormError, match=f"{owner} has used Docker"):
        docker.ensure_engine()


def test_a_missing_image_is_named(openfaas):
    done = openfaas("deploy", "--name", "a", "--image", "localhost:1/nope:1")
    assert 'image "localhost:1/nope:1" is neither in this machine' in done.stdout


def test_a_killed_container_is_replaced(deploy):
    deploy("noop")
    first = gateway.wait_for_replicas("noop", 1)[0]["name"]
    subprocess.run(["docker", "kill", first], check=True, capture_output=True)
    assert post("noop").content == b"ok"
    assert gateway.wait_for_replicas("noop", 1)[0]["name"] != first


def test_what_only_its_owner_may_read_here_is_read_in_a_container(tmp_path, monkeypatch):
    here, context = tmp_path / "here", tmp_path / "context"
    names = [f"bin/{name}" for name in ("watchdog", "noop", "sleep", "cpu")]
    for name in (*names, "function/shell.py", "function/face-blur/app.py", "face.pb", "classes/Noop.class"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).touch()
    execute("chmod", "-R", "u=rwx,go=", str(here))
    monkeypatch.setattr(docker, "BIN", here / "bin")
    monkeypatch.setattr(docker, "FUNCTIONS", here / "function")
    monkeypatch.setattr(docker.paths, "FACE_GRAPH", here / "face.pb")
    monkeypatch.setattr(docker.parts, "JAVA_CLASSES", here / "classes")
    docker._fill(context)
    copies = [*context.rglob("*")]
    assert len([path for path in copies if path.is_file()]) == 8
    assert [path for path in copies if path.stat().st_mode & 0o005 != 0o005] == []


# What a published image brings that the base here has not, by what it would have made.
STAND_INS = {
    "python": ("PYTHON", "pip", "mkdir /packages"),
    "node": ("NODE", "npm", "exit 1"),
    "java": ("JDK", "javac", f"cp -r {IN_IMAGE.java_classes} /classes"),
    "go": ("GO", "go", f"cp {IN_IMAGE.bin}/noop /function; cp {IN_IMAGE.bin}/watchdog /fwatchdog"),
}
DOCKERFILES = {
    "noop": ("go.Dockerfile", "FUNCTION=noop/go"),
    "noop-java": ("java.Dockerfile",),
    "noop-node": ("node.Dockerfile",),
    "noop-python": ("python.Dockerfile", "SERVE=noop/python/noop.py serve", "FORK=noop/python/noop.py fork"),
    "face-blur": ("python.Dockerfile", "SERVE=face-blur/app.py --host 0.0.0.0 --port", "FORK=face-blur/fork.py"),
}
# The packages that the stand-in for pip does not install are those of the base.
PACKAGES = ("--env", f"PYTHONPATH=/packages:{docker.ROOT}/python")
# What later ones take the name of is removed by the next start of the docker backend.
LABEL = ("--label", docker.LABEL)


@pytest.fixture(scope="module")
def build(openfaas, tmp_path_factory):
    """Builds a Dockerfile of function/images/ with stand-ins for published images, which cannot be had everywhere."""
    folder = tmp_path_factory.mktemp("images")

    def make(name: str, dockerfile: str, files: dict[str, str | Path]) -> None:
        context = folder / name
        context.mkdir()
        for file, source in files.items():
            shutil.copy2(source, context / file) if isinstance(source, Path) else (context / file).write_text(source)
            (context / file).chmod(0o755)
        (context / "Dockerfile").write_text(dockerfile)
        docker.ENGINE.run("build", "--quiet", *LABEL, "--tag", f"stand-in/{name}", str(context))

    make("watchdog", "FROM scratch\nCOPY fwatchdog /fwatchdog\n", {"fwatchdog": BIN / "watchdog"})
    for name, (_, program, script) in STAND_INS.items():
        steps = f"FROM {docker.ALL}\nUSER root\nCOPY {program} /usr/bin/{program}\nWORKDIR /\n"
        steps += "RUN ln -sf python3 /usr/bin/python\n"
        make(name, steps, {program: f"#!/bin/sh\nset -e\n{script}\n"})
    shutil.copytree(FUNCTIONS, folder / "function")
    shutil.copy2(paths.FACE_GRAPH, folder / "function" / "face.pb")
    # As under the strictest umask.
    execute("chmod", "-R", "go=", str(folder / "function"))

    def run(image: str, dockerfile: str, target: str, *arguments: str) -> None:
        given = [f"{published}_IMAGE=stand-in/{name}" for name, (published, _, _) in STAND_INS.items()]
        given += [f"JRE_IMAGE={docker.ALL}", "OF_WATCHDOG_IMAGE=stand-in/watchdog", *arguments]
        words = [word for argument in given for word in ("--build-arg", argument)]
        words += ["--file", str(folder / "function" / "images" / dockerfile), "--target", target]
        docker.ENGINE.run("build", "--quiet", *LABEL, "--tag", image, *words, str(folder / "function"))

    return run


@pytest.mark.parametrize("way", ["serve", "fork"])
@pytest.mark.parametrize(("name", "arguments"), DOCKERFILES.items())
def test_a_dockerfile_makes_what_the_stack_names(
    openfaas, deploy, build, send_frame, monkeypatch, name, arguments, way
):
    monkeypatch.setenv("OPENFAAS_PREFIX", "built")
    name += "-fork" if way == "fork" else ""
    build(f"built/{name}:0.1", arguments[0], way, *arguments[1:])
    assert docker.ENGINE.run("inspect", "--format", "{{.Config.User}}", f"built/{name}:0.1").strip() == "10001:10001"
    deploy(name, *PACKAGES)
    if name.startswith("face-blur"):
        frame = send_frame(name)
        assert (frame["ok"], frame["cause"], frame["faces"]) == (True, None, 1), frame
    else:
        assert post(name).content == b"ok"
    assert openfaas("remove", name).returncode == 0


@pytest.mark.parametrize(("name", "arguments"), DOCKERFILES.items())
def test_a_dockerfile_with_of_watchdog_builds(build, name, arguments):
    """It is not run: the classic watchdog, which stands in, does not know these words."""
    build("built/of-watchdog", arguments[0], "of-watchdog", *arguments[1:])
    words = docker.ENGINE.run(
        "inspect", "--format", "{{.Config.User}} {{json .Config.Env}} {{json .Config.Cmd}}", "built/of-watchdog"
    )
    assert words.startswith("10001:10001") and "fwatchdog" in words
    assert '"mode=http"' in words and '"upstream_url=http://127.0.0.1:8000"' in words

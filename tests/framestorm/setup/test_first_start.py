"""run.sh makes the conductor's Python environment once, also when it is started twice at the same time."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from framestorm import paths

# Takes its time for an environment, in which it puts itself.
PYTHON = """#!/bin/bash
case "$*" in
*"-m venv "*) echo made >>"$MADE"; sleep 1; mkdir -p "${@: -1}/bin"; cp "$0" "${@: -1}/bin/python" ;;
*"-m framestorm"*) echo "started with ${@: -1}" ;;
esac
"""


def test_two_first_starts_make_one_environment(tmp_path: Path) -> None:
    shutil.copy2(paths.ROOT / "run.sh", tmp_path)
    (tmp_path / "framestorm").mkdir()
    (tmp_path / "framestorm" / "requirements.txt").write_text("one\n")
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)
    made = tmp_path / "made"
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "MADE": str(made)}

    link = tmp_path / "bin" / "framestorm"
    link.symlink_to("../run.sh")

    def start(word: str, command: Path = tmp_path / "run.sh") -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([command, word], stdout=pipe, stderr=pipe, text=True, env=environment)

    outputs = [process.communicate(timeout=120) for process in [start("one"), start("two")]]
    assert [stdout for stdout, _ in outputs] == ["started with one\n", "started with two\n"]
    assert sum("waiting for another set-up" in stderr for _, stderr in outputs) == 1
    assert made.read_text() == "made\n"
    (tmp_path / "framestorm" / "requirements.txt").write_text("two\n")
    assert start("three", link).communicate(timeout=120)[0] == "started with three\n"
    assert made.read_text() == "made\nmade\n"


def test_a_python_without_venv_gets_its_own(tmp_path: Path) -> None:
    """Where the system's is too old, python3-venv is of no use to the one that is new enough."""
    shutil.copy2(paths.ROOT / "run.sh", tmp_path)
    (tmp_path / "framestorm" / "setup").mkdir(parents=True)
    (tmp_path / "framestorm" / "requirements.txt").touch()
    (tmp_path / "framestorm" / "setup" / "apt.sh").write_text("echo $* >&2; exit 1\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in (
        ("python3", "exit 1"),
        ("python3.13", "exit 1"),
        ("python3.12", "[[ $* != *ensurepip* ]]"),
        ("apt-get", ""),
        ("sudo", '[[ $1 == -n ]] || exec "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/bash\n{script}\n")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([tmp_path / "run.sh"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "\npython3.12-venv\n" in done.stderr and "installing python3.12-venv" in done.stderr


def test_a_checkout_of_someone_else(tmp_path: Path) -> None:
    """Rights do not hold root off, but a file in the folder's place does."""
    shutil.copy2(paths.ROOT / "run.sh", tmp_path)
    (tmp_path / ".local").touch()
    done = subprocess.run([tmp_path / "run.sh"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{tmp_path}/.local cannot be written to" in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_a_start_by_sudo_has_made_is_named_with_what_to_do() -> None:
    """As an account that root is kept from being: rights do not hold root off."""
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder)
        shutil.copy2(paths.ROOT / "run.sh", checkout)
        (checkout / "framestorm").mkdir()
        (checkout / "framestorm" / "requirements.txt").touch()
        (checkout / ".local" / "stamps").mkdir(parents=True)
        venv = checkout / ".local" / "venv"
        venv.mkdir(mode=0o500)
        for path in (checkout, *checkout.rglob("*")):
            os.chown(path, user, -1)
        command, local = [checkout / "run.sh"], checkout / ".local"
        done = subprocess.run(command, user=user, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and f"`sudo rm -r {local}`" in done.stderr and len(done.stderr.splitlines()) == 1
        venv.rmdir()
        local.chmod(0o500)
        assert subprocess.run(command, user=user, capture_output=True, text=True, check=False).stderr == done.stderr
        local.chmod(0o700)


def test_packages_of_pythonpath_are_neither_taken_for_installed_nor_imported(tmp_path: Path) -> None:
    shutil.copy2(paths.ROOT / "run.sh", tmp_path)
    wheels, elsewhere = tmp_path / "wheels", tmp_path / "elsewhere"
    wheels.mkdir()
    wheel = wheels / "car-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("car.py", "")
        archive.writestr("car-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: car\nVersion: 1.0\n")
        archive.writestr("car-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("car-1.0.dist-info/RECORD", "")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(elsewhere)
    package = tmp_path / "framestorm"
    package.mkdir()
    (package / "__main__.py").write_text("import car; print(car.__file__)")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (package / "requirements.txt").write_text(f"car==1.0 --hash=sha256:{digest}\n")
    settings = {"PYTHONPATH": str(elsewhere), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    command, environment = [tmp_path / "run.sh"], {**os.environ, **settings}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.startswith(str(tmp_path / ".local" / "venv")), done.stderr


def test_modules_of_the_folder_that_it_is_started_in_are_not_python_s(tmp_path: Path) -> None:
    for name in ("json", "random", "framestorm"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not that of Python')\n")
    done = subprocess.run(
        [paths.ROOT / "run.sh", "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("framestorm ")

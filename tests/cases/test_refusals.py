"""What JMeter runs, the kit runs; what a run would refuse, `--check` refuses."""

from pathlib import Path

import pytest

from framestorm import cli
from tests.stand_in import StartServer

CASES = Path(__file__).parent


def case(name: str, folder: Path, port: int) -> str:
    """A plan of this folder in another one, against a server on that port."""
    text = (CASES / name).read_text().replace(">21001<", f">{port}<").replace("port,21001", f"port,{port}")
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_blanks_around_a_property_are_left_out(
    stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = case("blank-users.jmx", tmp_path, stand_in().server_port)
    (tmp_path / "users.properties").write_text("users=3 \n")
    for words in (["-Jusers= 3\t"], ["-q", "users.properties"]):
        assert cli.main(["-t", plan, "--check", *words]) == 0
        assert "property: users=3" in capsys.readouterr().out.splitlines()

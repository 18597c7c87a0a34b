"""Plans that nobody made for this kit over two slaves: each label has the figures that a second count gives."""

from pathlib import Path

import pytest

from lab.hosts import CONTROLLER_ADDRESS
from tests.conftest import Lab
from tests.foreign import independent
from tests.foreign.site import Site, card_gateway
from tests.foreign.test_foreign_plans import FOREIGN, Foreign, Servers, check_figures, plan_of
from tests.runs import RunSh
from tests.stand_in import serving

# One of each kind: a login from a file with transactions, other files, a plug-in's thread group, a template of JMeter.
OVER_SLAVES = ("login", "modules", "ultimate", "simple-http-request-test-plan")


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(each, id=each.name, marks=() if each.name == "login" else pytest.mark.long)
        for each in FOREIGN
        if each.name in OVER_SLAVES
    ],
)
def test_every_label_has_the_figures_of_the_file(
    foreign: Foreign, run_sh: RunSh, deployed: Lab, tmp_path: Path
) -> None:
    with serving(server=Site(CONTROLLER_ADDRESS)) as site, card_gateway(CONTROLLER_ADDRESS) as gateway_port:
        plan = plan_of(foreign, tmp_path / "here", site)
        properties = Servers(site, gateway_port).set(plan.parent, foreign.properties)
        running = run_sh.start("-R", "slaves", "-t", str(plan), *properties, "--whole-plan")
        assert running.process.wait(180) in (0, 3)  # some of their samples fail, as in JMeter
    assert {row["Hostname"] for row in running.rows()} == {"slave1", "slave2"}
    rows = independent.read(running.folder / "samples.jtl")
    check_figures(foreign, rows, running.json("summary.json")["labels"])

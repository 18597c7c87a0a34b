"""How samples come from the slaves to JMeter's controller, and why in that way."""

from collections.abc import Iterable, Mapping
from typing import Any

MODE = "Standard"
# https://jmeter.apache.org/usermanual/remote-test.html#sendmode; why rows were lost by Asynch is not known.
WHY = (
    "complete rows go before speed. Standard hands over every sample whole, response data too, before its thread goes "
    "on: a lost slave takes only samples under way with it. Batch, Hold and DiskStore keep finished samples on the "
    "slave for a while, and they would be lost with it; Asynch lost some even without that; the Stripped modes drop "
    "the response data, and Statistical the samples."
)


def described(slaves: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The way as run.json has it.

    Args:
        slaves: what each slave's playbook has written down of it: rmi_port, rmi_ssl.
    """
    hosts = list(slaves)
    ssl = any(host["rmi_ssl"] for host in hosts)
    ports = sorted({int(host["rmi_port"]) for host in hosts})
    base = ports[0]
    return {
        "mode": MODE,
        "why": WHY,
        "ssl": ssl,
        # As ansible/roles/jmeter/templates/jmeter.properties.j2 sets them.
        "ports": {
            "slaves": ", ".join(f"{port} and {port + 1}" if ssl else f"{port}" for port in ports),
            "controller": "any" if ssl else f"{base + 1} and {base + 2}",
        },
    }

"""A plan with JMeter's own InfluxDB listener added, for those who watch a run in Grafana.

JMeter 5.5 cannot enable a listener by a property: an empty address ends the run, and `enabled` takes no expression.
So the listener is added to a copy of the plan, beside it: JMeter resolves relative paths from the plan's folder.
"""

import contextlib
import itertools
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from framestorm.errors import UsageError
from framestorm.model import plan as plans

TOKEN = "${__groovy(System.getenv('INFLUXDB_TOKEN') ?: '')}"  # noqa: S105 - not the token itself
NAME = "InfluxDB"
BACKEND = "org.apache.jmeter.visualizers.backend"


def check_address(url: str) -> None:
    """Raise UsageError unless `url` is an address that samples can be written to."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and parts.hostname and "write" in parts.path
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError(
            f"--influxdb {url}: expected an address to write to, such as http://host:8086/write?db=jmeter or "
            "http://host:8086/api/v2/write?org=o&bucket=b"
        )


@contextlib.contextmanager
def with_listener(plan: Path, url: str) -> Iterator[Path]:
    """A copy of `plan`, for the block, that also writes to the InfluxDB at `url`.

    JMeter sends figures by label every 5 s, and marks the start and end of the run. The listener sees users, not their
    sub-results. The token itself is not in the copy: JMeter reads the environment when the run starts.
    """
    root = plans.parse(plan)
    inside = root.find("./hashTree/hashTree")
    if inside is None:
        raise UsageError(f"{plan} has no Test Plan element to add a listener to")
    # JMeter serves only one Backend Listener of a name.
    names = {each.get("testname") for each in root.iter("BackendListener")}
    further = (f"{NAME} {number}" for number in itertools.count(2))
    name = next(each for each in itertools.chain([NAME], further) if each not in names)
    inside.extend([_listener(plan.stem, url, name), ET.Element("hashTree")])
    copy = plan.with_name(f".{plan.stem}-influxdb-{os.getpid()}.tmp")
    try:
        plans.write(root, copy)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _listener(plan_name: str, url: str, name: str) -> ET.Element:
    values = {
        "influxdbMetricsSender": f"{BACKEND}.influxdb.HttpMetricsSender",
        "influxdbUrl": url,
        "influxdbToken": TOKEN,
        "application": plan_name,
        "measurement": "jmeter",
        "summaryOnly": "false",
        "samplersRegex": ".*",
        "percentiles": "50;95;99",
        "testTitle": plan_name,
        "eventTags": "",
    }
    listener = ET.Element(
        "BackendListener",
        guiclass="BackendListenerGui", testclass="BackendListener", testname=name, enabled="true",
    )  # fmt: skip
    arguments = ET.SubElement(
        listener, "elementProp", name="arguments", elementType="Arguments", guiclass="ArgumentsPanel",
        testclass="Arguments", enabled="true",
    )  # fmt: skip
    collection = ET.SubElement(arguments, "collectionProp", name="Arguments.arguments")
    for key, value in values.items():
        argument = ET.SubElement(collection, "elementProp", name=key, elementType="Argument")
        for part, text in (("name", key), ("value", value), ("metadata", "=")):
            ET.SubElement(argument, "stringProp", name=f"Argument.{part}").text = text
    ET.SubElement(listener, "stringProp", name="classname").text = f"{BACKEND}.influxdb.InfluxdbBackendListenerClient"
    ET.SubElement(listener, "stringProp", name="QUEUE_SIZE").text = "5000"
    return listener

"""A plan with JMeter's own InfluxDB listener added, for those who watch a run in Grafana.

JMeter 5.5 cannot enable a listener by a property: an empty address ends the run, and `enabled` takes no expression.
So the listener is added to a copy of the plan.
"""

import hashlib
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urlsplit

from framestorm import paths
from framestorm.errors import UsageError

PLANS = paths.LOCAL / "plans"
TOKEN = "${__groovy(System.getenv('INFLUXDB_TOKEN') ?: '')}"  # noqa: S105 - not the token itself
BACKEND = "org.apache.jmeter.visualizers.backend"


def with_listener(plan: Path, url: str) -> Path:
    """A copy of `plan` that also writes to the InfluxDB at `url`, with the token in the environment if there is one.

    JMeter sends figures by label every 5 s, and the start and end of the run. The listener sees users, not their
    sub-results. The token itself is not in the copy: JMeter reads the environment when the run starts.

    Raises:
        UsageError: `url` is no address that samples can be written to.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "write" not in parts.path:
        raise UsageError(
            f"--influxdb {url}: expected an address to write to, such as http://host:8086/write?db=jmeter or "
            "http://host:8086/api/v2/write?org=o&bucket=b"
        )
    # A folder for each of the plans' folders: JMeter looks for a plan's scripts beside it.
    folder = PLANS / hashlib.sha256(os.fsencode(plan.resolve().parent)).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    scripts = folder / "groovy"
    scripts.unlink(missing_ok=True)
    scripts.symlink_to(plan.resolve().parent / "groovy")
    tree = ET.parse(plan)  # noqa: S314 - a plan runs code anyway: who runs it trusts it
    inside = tree.find("./hashTree/hashTree")
    if inside is None:
        raise UsageError(f"{plan} has no Test Plan element to add a listener to")
    inside.extend([_listener(plan.stem, url), ET.Element("hashTree")])
    copy = folder / plan.name
    tree.write(copy, encoding="UTF-8", xml_declaration=True)
    return copy


def _listener(name: str, url: str) -> ET.Element:
    values = {
        "influxdbMetricsSender": f"{BACKEND}.influxdb.HttpMetricsSender",
        "influxdbUrl": url,
        "influxdbToken": TOKEN,
        "application": name,
        "measurement": "jmeter",
        "summaryOnly": "false",
        "samplersRegex": ".*",
        "percentiles": "50;95;99",
        "testTitle": name,
        "eventTags": "",
    }
    listener = ET.Element(
        "BackendListener",
        guiclass="BackendListenerGui", testclass="BackendListener", testname="InfluxDB", enabled="true",
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

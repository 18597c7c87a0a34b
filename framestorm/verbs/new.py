"""`./run.sh new`: a plan for a function or a model of yours."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.parser import Parser
from framestorm.plain import say
from framestorm.run import inference, new_plan


def main(words: Sequence[str]) -> int:
    """Make a plan for your own function from a curl command, or for a model from its description of its inputs."""
    parser = Parser(prog="./run.sh new", description=main.__doc__)
    parser.add_argument("plan", metavar="PLAN.jmx", type=Path, help="the new plan")
    request = parser.add_mutually_exclusive_group(required=True)
    request.add_argument("--curl", metavar="COMMAND", help="the request: 'curl -H … -d @scan.json https://…'")
    request.add_argument(
        "--kserve-v2", metavar="URL",
        help="ask this model of the Open Inference Protocol (KServe's V2, Triton) for its inputs, and send an example "
        "of them: http://host/v2/models/iris; or make a plan that calls it by gRPC: grpc://host:8001/iris",
    )  # fmt: skip
    request.add_argument(
        "--kserve-v1", metavar="URL",
        help="the same for V1, which takes instances; the server has to describe the inputs by V2: "
        "http://host/v1/models/iris",
    )  # fmt: skip
    parser.add_argument(
        "-H", metavar="HEADER", dest="headers", action="append", default=[],
        help="a header for the model, such as 'Host: iris.example.com'; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--binary",
        action="store_true",
        help="with --kserve-v2: send the inputs as bytes after the JSON (Triton, KServe)",
    )
    parser.add_argument(
        "--rate", action="store_true", help="send at a fixed arrival rate, instead of by users who wait for answers"
    )
    asked = parser.parse_args(list(words))
    if asked.plan.suffix != ".jmx":
        raise UsageError(f"{asked.plan}: the name of a plan ends in .jmx")
    base = paths.JMX / ("request-rate.jmx" if asked.rate else "requests.jmx")
    is_grpc = (asked.kserve_v2 or "").startswith(("grpc://", "grpcs://"))
    if asked.binary and (asked.kserve_v2 is None or is_grpc):
        raise UsageError("--binary is for --kserve-v2 by HTTP; by gRPC, inputs are sent as bytes unless -Jraw=false")
    if asked.curl is not None:
        if asked.headers:
            raise UsageError("-H is for --kserve-v1 and --kserve-v2; put the header into the curl command")
        written = new_plan.write(asked.plan, asked.curl, base)
    elif asked.kserve_v1 is not None:
        command = inference.curl_command_v1(asked.kserve_v1, asked.headers)
        written = new_plan.write(asked.plan, command, base, inference.EXPECT_V1)
    elif is_grpc:
        base = paths.JMX / ("infer-rate.jmx" if asked.rate else "infer.jmx")
        written = new_plan.write_for_model(asked.plan, asked.kserve_v2, asked.headers, base)
    else:
        command, body = inference.curl_command(asked.kserve_v2, asked.headers, is_binary=asked.binary)
        written = new_plan.write(asked.plan, command, base, inference.EXPECT, body)
    for path in written:
        say(f"wrote {path}")
    say(f"run it: ./run.sh -t {shlex.quote(str(asked.plan))}")
    return 0

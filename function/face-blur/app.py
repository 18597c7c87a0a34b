"""face-blur kept alive behind HTTP: what the test target runs, and what a container runs on port 8080.

`python app.py --host 127.0.0.1 --port 8080`
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

if str(ROOT := Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.insert(0, str(ROOT))

from function.exchange import Handler
from function.http_app import serve
from function.limits import VariableError
from settings import prepare_libraries, settings_from


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve face-blur over HTTP; limits come from the environment.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on (default %(default)s; 0: any)")
    arguments = parser.parse_args()
    try:
        settings = settings_from(os.environ)
    except VariableError as error:
        sys.exit(f"face-blur: {error}")
    prepare_libraries()

    def load() -> Handler:
        # Only now: importing TensorFlow takes seconds, during which health is answered.
        from handler import FaceBlur

        return FaceBlur(settings)

    # One handler more than cores, so that a picture is ready whenever the model is.
    workers = (os.cpu_count() or 1) + 1
    serve("face-blur", load, settings.limits, workers=workers, host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()

"""KServe's own model server with a small model: logistic regression over four features of a flower.

serve.py HTTP_PORT GRPC_PORT
"""

import sys
from typing import Any

import numpy as np
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer

# Of three kinds: the largest score counts.
WEIGHTS = np.array([[0.4, 1.5, -2.2, -1.0], [0.5, -1.6, 0.5, -1.4], [-1.7, -1.5, 2.5, 2.6]]).T
OFFSETS = np.array([0.3, 1.1, -1.2])


class Flowers(Model):  # type: ignore[misc]
    """Tells the kind of a flower: 0 of the first example in the data set iris, 2 of the last."""

    async def get_input_types(self) -> list[dict[str, Any]]:
        return [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]

    async def get_output_types(self) -> list[dict[str, Any]]:
        return [{"name": "kind", "datatype": "INT64", "shape": [-1]}]

    def predict(self, request: Any, _headers: object = None, _response_headers: object = None) -> Any:
        if not isinstance(request, InferRequest):  # V1
            return {"predictions": self._kinds(np.array(request["instances"])).tolist()}
        kinds = self._kinds(request.inputs[0].as_numpy())
        output = InferOutput(name="kind", shape=list(kinds.shape), datatype="INT64")
        output.set_data_from_numpy(kinds, binary_data=False)
        return InferResponse(request.id or "1", self.name, [output])

    @staticmethod
    def _kinds(x: Any) -> Any:
        return np.argmax(x @ WEIGHTS + OFFSETS, axis=1).astype(np.int64)


if __name__ == "__main__":
    flowers = Flowers("flowers")
    flowers.ready = True
    server = ModelServer(http_port=int(sys.argv[1]), grpc_port=int(sys.argv[2]), enable_docs_url=False)
    server.start([flowers])

"""The messages of the Open Inference Protocol (V2) over gRPC, as far as a client needs them.

https://github.com/kserve/open-inference-protocol, specification/protocol/open_inference_grpc.proto. Written here by the
numbers of its fields alone, from which the classes are made at import: no compiler of protobuf is needed.
"""

import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

__all__ = ["METHODS", "DecodeError", "InferRequest", "InferResponse", "MetadataRequest", "MetadataResponse"]

# `name:type number`, where * means repeated. A map is sent as the repeated pairs that stand here in its place.
_FIELDS = """
Parameter        bool:bool 1, int:int64 2, string:string 3, double:double 4, uint:uint64 5
NamedParameter   key:string 1, value:Parameter 2
TensorMetadata   name:string 1, datatype:string 2, shape:int64* 3
Contents         bool:bool* 1, int:int32* 2, int64:int64* 3, uint:uint32* 4, uint64:uint64* 5, fp32:float* 6,
                 fp64:double* 7, bytes:bytes* 8
Tensor           name:string 1, datatype:string 2, shape:int64* 3, parameters:NamedParameter* 4, contents:Contents 5
RequestedOutput  name:string 1, parameters:NamedParameter* 2
MetadataRequest  name:string 1, version:string 2
MetadataResponse name:string 1, versions:string* 2, platform:string 3, inputs:TensorMetadata* 4,
                 outputs:TensorMetadata* 5
InferRequest     model_name:string 1, model_version:string 2, id:string 3, parameters:NamedParameter* 4,
                 inputs:Tensor* 5, outputs:RequestedOutput* 6, raw:bytes* 7
InferResponse    model_name:string 1, model_version:string 2, id:string 3, parameters:NamedParameter* 4,
                 outputs:Tensor* 5, raw:bytes* 6
"""
_FIELD = re.compile(r"(\w+):(\w+)(\*?) (\d+)")
_PACKAGE = "framestorm.inference"
_SERVICE = "/inference.GRPCInferenceService/"
METHODS = {"metadata": f"{_SERVICE}ModelMetadata", "infer": f"{_SERVICE}ModelInfer"}


def _file() -> descriptor_pb2.FileDescriptorProto:
    # proto2, which also sends a parameter whose value is 0 or false.
    file = descriptor_pb2.FileDescriptorProto(name="framestorm/inference.proto", package=_PACKAGE, syntax="proto2")
    for line in re.sub(r",\n\s+", ", ", _FIELDS).strip().splitlines():
        message = file.message_type.add(name=line.split()[0])
        for name, kind, is_repeated, number in _FIELD.findall(line):
            field = message.field.add(name=name, number=int(number))
            field.label = field.LABEL_REPEATED if is_repeated else field.LABEL_OPTIONAL
            if kind[0].isupper():
                field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
                continue
            field.type = getattr(field, f"TYPE_{kind.upper()}")
            field.options.packed = bool(is_repeated) and kind not in {"string", "bytes"}
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


InferRequest, InferResponse = _class("InferRequest"), _class("InferResponse")
MetadataRequest, MetadataResponse = _class("MetadataRequest"), _class("MetadataResponse")

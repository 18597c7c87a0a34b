"""The properties of a plan, with their facets: what a plan declares for Framestorm.

A plan declares everything that Framestorm has to know about it: a new plan needs no change of the program. A property
is `${__P(name,default)}` or `${__property(name,,default)}` in an enabled element. Its description is that of the user
defined variable which holds it, or the line `name: description` in the comment of the element which holds it. A
description may end with facets, in square brackets and separated by semicolons:

    virtual users at the same time [whole number >= 1; total over all slaves]

    text, whole number, number     its kind (text if there is none); a number may have a range, `>= 1` or `0 to 1`, and
                                   a unit: `number >= 0, in s`
    one of a, b, c                 the values that it may have
    URL                            the address of the function under test
    grpc://host:port/model or grpcs://host:port/model
                                   that the address is one of a model, which is called by gRPC
    JSONPath with or without a comparison
                                   what an answer has to have, as client/expect.py reads it
    text or @file                  a text, or with @ the path of a file or folder: one that is set is relative to the
                                   folder that the run is started in, a default to the plan's
    form fields                    a multipart form, a field in each line: name=value, name=@file or name=<file; their
                                   paths are found as that of @file, or in the folder of a file with the fields
    certificate authorities        who may have signed the server's certificate, which is checked before the load: a
                                   file, or `none` for no check; without it those of the system
    JSON figures                   names of figures, each with its JSONPath: `tokens=$.usage.tokens, cost=$.cost`
    status codes such as 2xx,304 or 200-299
                                   the HTTP statuses of a correct answer
    program                        a path or a name in PATH: a path that is set is relative to that folder too
    shell words                    the arguments of a program, as one types them in a shell
    video file                     a video, which Framestorm cuts into frames before the run
    fields of a JSON object        such as `{"temperature": 0}`
    objectives of a sample         what each sample has to meet: `ttft_ms < 500, itl_p99_ms < 50 ms`
    load in words                  arrivals over time, in place of rate_per_s, ramp_s and hold_s, or users over time, in
                                   place of users, ramp_s and hold_s: `10/s for 30 s, to 200/s in 2 min, pause 10 s`,
                                   `0 to 50 users in 1 min, 200 users for 10 s`
    total over all slaves          each slave gets its part
    required                       it has to be set; `required unless mode is local`: where mode has another value
    embedded target if not set     Framestorm starts a function of its own (that of the default, or face-blur) and
                                   fills in the address of that
    filled in by Framestorm        a program, folder or file of the run, by its name: python, client_dir,
                                   client_server, client_log, cache, frame_dir, journal, tree or stop
    read by Framestorm             not a property but a constant: `label` is the label of the main samples (without it
                                   that of the first sampler; `all` if only the users know it), `sample_variables` are
                                   further columns of samples.jtl

Words such as `[number]` and `[required]` are common in descriptions. They are facets only in a plan that also has a
facet of Framestorm's own, such as `[total over all slaves]`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from framestorm.errors import UsageError
from framestorm.model import units

URL, VIDEO, FILE, FORM = "URL", "video file", "text or @file", "form fields"
CONDITION = "JSONPath with or without a comparison"
GRPC = "grpc://host:port/model or grpcs://host:port/model"
AUTHORITIES = "certificate authorities"
PROGRAM, SHELL = "program", "shell words"
FIGURES, STATUSES = "JSON figures", "status codes such as 2xx,304 or 200-299"
LOAD = "load in words"
OBJECTIVES, FIELDS = "objectives of a sample", "fields of a JSON object"
TOTAL, EMBEDDED = "total over all slaves", "embedded target if not set"
FILLED_IN, CONSTANT = "filled in by Framestorm", "read by Framestorm"
_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(
    rf"(?P<whole>whole )?number(?: >= (?P<least>{_NUMBER})| (?P<low>{_NUMBER}) to (?P<high>{_NUMBER}))?(?:, in \S+)?"
)
_CHOICE = re.compile(r"one of (?P<words>\S+(?:, \S+)*)")
_STATUS = r"(?:[1-5xX][0-9xX]{2}|[1-5][0-9]{2}-[1-5][0-9]{2})"
_STATUSES = re.compile(rf" *{_STATUS} *(?:, *{_STATUS} *)*")
_CONDITION = re.compile(r"(\$(\.[A-Za-z_][\w-]*|\[-?[0-9]+\])+ *((==|!=) *\S.*|(>=|<=|>|<) *-?[0-9].*)?)?", re.DOTALL)
_GRPC_MODEL = re.compile(r"grpcs?://[^/?#]+/[^/?#]+(/[^/?#]+)?/?")
_REQUIRED = re.compile(r"required(?: unless (?P<name>\S+) is (?P<value>\S+))?")
_OF_KIT = (
    VIDEO, FILE, FORM, SHELL, AUTHORITIES, FIGURES, STATUSES, LOAD, OBJECTIVES, FIELDS, TOTAL, EMBEDDED,
    FILLED_IN, CONSTANT, GRPC, CONDITION,
)  # fmt: skip
_WORDS = {"text", URL, PROGRAM, *_OF_KIT}
KIT_FACET = re.compile(rf"\[(?:[^\[\]]*; *)?(?:{'|'.join(map(re.escape, _OF_KIT))})(?:;[^\[\]]*)?\]")
# JMeter's fields have 31 bits, and its times are in ms.
LARGEST, LONGEST_S = 2**31 - 1, 2_000_000


@dataclass(frozen=True)
class Property:
    """One property of a plan; `default` is None if only JMeter can work it out (a function, or several defaults).

    has_default: every reference has one; without one JMeter takes 1, or the name, which nobody meant.
    """

    name: str
    default: str | None
    meaning: str
    facets: tuple[str, ...] = ()
    has_default: bool = True

    @property
    def is_whole_number(self) -> bool:
        return any(facet.startswith("whole number") for facet in self.facets)

    @property
    def is_required(self) -> bool:
        """Whether it has to be set, always or for certain values of another property."""
        return any(_REQUIRED.fullmatch(facet) for facet in self.facets)

    def is_needed(self, values: Mapping[str, str]) -> bool:
        """Return whether the plan needs it when its other properties have these values."""
        matches = [match for facet in self.facets if (match := _REQUIRED.fullmatch(facet)) and match["name"]]
        return all(values.get(match["name"]) != match["value"] for match in matches)

    def check(self, value: str) -> None:
        """Raise UsageError unless the property may have this value."""
        for facet in self.facets:
            if not _allows(facet, value):
                article = "a " if "number" in facet else ""
                most = f", and at most {_largest(facet)}" if article and len(value) > 6 else ""
                raise UsageError(f"-J{self.name}={value}: {self.name} must be {article}{facet}{most}")


def _allows(facet: str, value: str) -> bool:
    if choice := _CHOICE.fullmatch(facet):
        return value in choice["words"].split(", ")
    if facet == FIELDS:
        return _is_object(value)
    if facet == CONDITION:
        return bool(_CONDITION.fullmatch(value))
    if facet == GRPC:
        return is_model_by_grpc(value)
    if facet == STATUSES:
        return bool(_STATUSES.fullmatch(value))
    limits = _RANGE.fullmatch(facet)
    if limits is None:
        return True
    if not (units.WHOLE_NUMBER if limits["whole"] else units.NUMBER).fullmatch(value):
        return False
    least, most = limits["least"] or limits["low"] or "-inf", limits["high"] or _largest(facet)
    return float(least) <= float(value) <= float(most)


def is_model_by_grpc(url: str) -> bool:
    """Return whether a URL is that of a model that is called by gRPC."""
    return bool(_GRPC_MODEL.fullmatch(url))


def _is_object(text: str) -> bool:
    try:
        return not text or isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _largest(facet: str) -> int:
    return LONGEST_S if facet.endswith(", in s") else LARGEST


def described(description: str) -> tuple[str, tuple[str, ...]]:
    """Return the meaning and the facets of a description; brackets that contain no facet belong to the meaning.

    Raises:
        ValueError: some of the facets are known and others are not.
    """
    description = description.strip()
    match = re.fullmatch(r"(?P<meaning>.*\S)\s*\[(?P<facets>[^\[\]]*)\]", description, flags=re.DOTALL)
    facets = tuple(facet.strip() for facet in match["facets"].split(";")) if match else ()
    unknown = [
        facet
        for facet in facets
        if facet not in _WORDS and not any(form.fullmatch(facet) for form in (_RANGE, _CHOICE, _REQUIRED))
    ]
    if match is None or len(unknown) == len(facets):
        return description, ()
    if unknown:
        raise ValueError(
            f"'{unknown[0]}' in '{description}' is not understood; framestorm/model/facets.py lists what is"
        )
    if TOTAL in facets and not any(map(_RANGE.fullmatch, facets)):
        raise ValueError(f"'{description}': a total over all slaves is a number or a whole number")
    return match["meaning"], facets

"""audit.json: what an audit of a function found: does it cache, and are its answers as right under load as alone."""

from dataclasses import dataclass, field
from typing import Literal

from framestorm.model.files import FORMAT
from framestorm.stats.estimate import Estimate

AuditState = Literal["running", "stopped", "complete"]


@dataclass(frozen=True)
class RepeatedInput:
    """An input that was answered twice in the same way.

    number: of its row or file in the data set, from 1. others: how many other requests were between the two.
    """

    number: int
    others: int
    first_ms: float
    second_ms: float


@dataclass(frozen=True)
class Caching:
    """Whether repeated inputs are answered faster than the same inputs were the first time.

    ratio: the second time by the first. p_faster: if the second time is not shorter by more than processor caches do;
    is_faster, is_often_hit: whether the two p-values are small.
    clear: how many times as fast is clearly faster; hits: inputs that were clearly faster the second time; reverse: the
    first time. p_hits: if neither is more likely.
    """

    pairs: list[RepeatedInput]
    ratio: Estimate
    p_faster: float
    clear: float
    hits: int
    reverse: int
    p_hits: float
    hit_share: Estimate
    is_faster: bool
    is_often_hit: bool

    @property
    def is_found(self) -> bool:
        """Whether one of the two tests sees a cache."""
        return self.is_faster or self.is_often_hit


@dataclass(frozen=True)
class AnswerCounts:
    """The answers of one run: how many are right; by cause, how many are wrong, and how many never came."""

    right: int
    wrong: dict[str, int]
    missing: dict[str, int]


@dataclass(frozen=True)
class Accuracy:
    """The answers to the same inputs alone, by one user, and under load, by several.

    n: inputs with an answer, right or wrong, in both runs. difference: the share of these that are right under load,
    less that alone; None if they are too few.
    is_worse: whether the whole interval is below 0. is_status_only: nothing but the status says what is right.
    """

    alone: AnswerCounts
    load: AnswerCounts
    n: int
    difference: Estimate | None
    is_worse: bool
    is_status_only: bool


@dataclass(frozen=True)
class Sameness:
    """Whether inputs get the same text again, by the checksums of the bodies.

    n: inputs that were answered twice alone and once under load. alone, load: how many of them got the text of their
    first answer again, alone and under load; difference: of these shares, that under load less that alone.
    depends_on_load: whether the whole interval is below 0.
    """

    n: int
    alone: int
    load: int
    difference: Estimate
    depends_on_load: bool


@dataclass(frozen=True)
class FunctionAudit:
    """The content of audit.json.

    data_set: property and file with the inputs; inputs: how many different ones are used; equal: how many rows or files
    were left out because they are the same as an earlier one.
    order: the number of the input that each request of the run with one user sends, from 0; warm_up: how many of the
    first inputs do not count.
    seed: by which inputs were drawn that are sent again at once; users: of the run under load.
    """

    plan: str
    command: tuple[str, ...]
    data_set: str
    numbers: list[int]
    equal: int
    order: list[int]
    warm_up: int
    seed: int
    users: int
    started_ms: float
    state: AuditState = "running"
    left_out: dict[str, int] = field(default_factory=dict)
    caching: Caching | None = None
    accuracy: Accuracy | None = None
    sameness: Sameness | None = None
    ended_ms: float | None = None
    text: str = ""
    format: int = field(default=FORMAT, kw_only=True)

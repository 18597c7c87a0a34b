"""A study: what its study.yml says, completed by the defaults.

The models are the format of study.yml: its reader, its defaults and its published schema (docs/study.schema.json).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    InstanceOf,
    PlainSerializer,
    RootModel,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema, core_schema

from framestorm.model import criteria, expectation
from framestorm.model.expectation import Expectation

DEFINITION = "study.yml"
# The type of the errors that give the words of a `Meaning`.
MEANING = "meaning"


@dataclass(frozen=True)
class Meaning:
    """What a value has to be, in words: what is said of one that is not, and the description in the schema."""

    words: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), custom_error_type=MEANING, custom_error_message=self.words
        )

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"description": self.words, **handler(core)}


PLAIN, MAPPING = "plain", "mapping"


def either(plain: type | UnionType, words: str) -> Discriminator:
    """Return which of two forms a value has, so that errors are of the form that was meant; `words` say both."""

    def form(value: object) -> str | None:
        return PLAIN if isinstance(value, plain) else MAPPING if isinstance(value, dict | BaseModel) else None

    return Discriminator(form, custom_error_type=MEANING, custom_error_message=words)


Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1), Meaning("a text")]
METRIC = "a metric as criteria name it: p95, 'login p95', 'chat tokens mean', or a column of results.csv"


def catalogue_name(words: str, *, main_label: str = "") -> str:
    """Return the catalogue's name of a metric. Other words are returned as they are.

    They may name a derived metric; if they do not, they are refused later.
    """
    try:
        return criteria.metric_name(words, main_label)
    except criteria.CriteriaError:
        return words


MetricName = Annotated[str, Field(min_length=1), AfterValidator(catalogue_name), Meaning(METRIC)]
FactorName = Annotated[
    str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$"), Meaning("letters, digits, _ and ., a letter first")
]
LevelName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"), Meaning("letters, digits and . _ + -")]
PlanPath = Annotated[str, Field(pattern=r"\.jmx$"), Meaning("a path from the checkout's root that ends in .jmx")]
Flag = Annotated[bool, Field(strict=True), Meaning("true or false")]
Above0 = Annotated[Finite, Field(gt=0), Meaning("a number above 0")]
AtLeast0 = Annotated[Finite, Field(ge=0), Meaning("a number of at least 0")]
MOST_REPETITIONS = 1000
Repetitions = Annotated[
    int, Field(strict=True, ge=1, le=MOST_REPETITIONS), Meaning(f"a whole number from 1 to {MOST_REPETITIONS}")
]
ExpressionText = Annotated[str, Field(pattern="^="), Meaning("arithmetic that starts with =")]
NumberOrExpression = Annotated[Above0 | ExpressionText, Meaning("a number above 0, or arithmetic that starts with =")]
Value = Annotated[
    Annotated[bool, Field(strict=True)] | Annotated[int, Field(strict=True)] | Finite | str,
    Meaning("a number, a text, true or false"),
]
LevelValues = Annotated[tuple[Value, ...], Field(min_length=1)]
Pair = Annotated[tuple[Value, Value], Meaning("two levels")]
Properties = dict[str, Value]
# The settings of a target by name; what each may be, its platform declares.
TargetValue = Annotated[Value | dict[str, Value] | None, Meaning("a value, or a mapping of values")]
TargetValues = dict[str, TargetValue]
PointsWhere = dict[str, Annotated[Value | LevelValues, Meaning("a level, or a list of levels")]]


def matches(factors: Mapping[str, Value], where: Mapping[str, Value | tuple[Value, ...]]) -> bool:
    """Return whether a point has these levels; a list of levels stands for any of them; 1 and true differ."""

    def has(name: str, level: Value) -> bool:
        return factors.get(name) == level and isinstance(factors.get(name), bool) == isinstance(level, bool)

    return all(
        any(has(name, level) for level in (levels if isinstance(levels, tuple) else (levels,)))
        for name, levels in where.items()
    )


ExpectText = Annotated[
    InstanceOf[Expectation],
    BeforeValidator(lambda value: expectation.parse(value) if isinstance(value, str) else value),
    PlainSerializer(lambda value: value.text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": expectation.PATTERN}),
    Meaning(expectation.FORMS),
]


class Noun(BaseModel):
    """A part of a study; it does not change, and has the keys of study.yml and no other."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    @model_validator(mode="before")
    @classmethod
    def _note_model(cls, content: object, info: ValidationInfo) -> object:
        """Record which model each mapping is read as, in the `context` of the reader of study.yml."""
        if info.context is not None:
            info.context[id(content)] = cls
        return content

    @classmethod
    def keys(cls) -> list[str]:
        """Return the keys that study.yml may have there."""
        return [field.alias or name for name, field in cls.model_fields.items() if field.description]


class Level(Noun):
    """What one level of a factor sets; a text that starts with = is calculated for each point."""

    properties: Properties = Field(default={}, description="Properties of the plan.")
    target: TargetValues = Field(default={}, description="Settings of the target.")
    plan: PlanPath | None = Field(default=None, description="Another plan.")
    run_s: NumberOrExpression | None = Field(
        default=None, description="s: how long a run takes at this level, in place of the study's run_s."
    )


class Factor(RootModel[tuple[Value, ...] | dict[str, Level]]):
    """What varies: a list of values, or a mapping from the name of a level to what it sets."""

    model_config = ConfigDict(frozen=True)
    root: Annotated[
        Annotated[LevelValues, Tag(PLAIN)] | Annotated[dict[LevelName, Level], Field(min_length=1), Tag(MAPPING)],
        either(list | tuple, "a list of values, or a mapping from level to what it sets"),
    ]

    @property
    def values(self) -> tuple[Value, ...]:
        """The levels, in the order of study.yml."""
        return tuple(self.root)

    @property
    def is_named(self) -> bool:
        """Whether levels are only names, not values of a property or of a setting of the target."""
        return isinstance(self.root, dict)

    def keep(self, names: Iterable[Value]) -> "Factor":
        """Return the factor with only those of its named levels that are in `names`."""
        levels = self.root if isinstance(self.root, dict) else {}
        return Factor.model_construct(root={str(name): levels[str(name)] for name in names if name in levels})

    def level(self, name: str, value: Value) -> Level:
        """Return what this factor, called `name`, sets at a level."""
        if isinstance(self.root, dict):
            return self.root[str(value)]
        setting = name.removeprefix("target.")
        return Level(properties={name: value}) if setting == name else Level(target={setting: value})


Factors = dict[FactorName, Factor]
Blocks = Annotated[tuple[dict[str, LevelValues], ...], Field(min_length=1)]


class RepetitionRule(Noun):
    """A rule for when a point has enough repetitions."""

    metric: MetricName = Field(description="A metric of one run.")
    within_percent: Above0 = Field(
        description="Percent: once its 95 % Student interval is within mean +/- this share of the mean, three more "
        "repetitions are the last."
    )
    at_most: Repetitions = Field(description="Maximum number of repetitions, including those of the study.")


class DerivedMetric(Noun):
    """A derived metric: each run compared with the runs at the point that differs only in the factors of `against`."""

    metric: MetricName = Field(description="The metric that is compared.")
    against: Annotated[dict[str, Value], Field(min_length=1)] = Field(
        description="Factors, and the level that each has in the other point."
    )
    as_: Literal["ratio", "difference", "inverse_ratio", "percent", "inverse_ratio_percent"] = Field(
        alias="as", description="own / other, own - other, other / own, 100 * own / other, 100 * other / own."
    )


Derived = Annotated[
    Annotated[ExpressionText, Tag(PLAIN)] | Annotated[DerivedMetric, Tag(MAPPING)],
    either(str, "arithmetic that starts with =, or a comparison with another point"),
]


class KneeClaim(Noun):
    """The smallest value of a factor at and above which a metric falls short of the offered rate."""

    over: Text = Field(description="A factor with numbers.")
    within_percent: Above0 = Field(
        default=5,
        description="Tolerance: by what percentage of the offered rate, or of proportional growth, the metric may fall "
        "short.",
    )


class Claim(Noun):
    """A figure of the study, and the expected value."""

    metric: MetricName = Field(description="A metric, derived or of one run.")
    where: PointsWhere = Field(default={}, description="The points that the claim is about.")
    compare: Annotated[dict[str, Pair], Field(min_length=1, max_length=1)] | None = Field(
        default=None, description="A factor and two of its levels: the first against the second."
    )
    as_: Literal["ratio", "difference"] = Field(default="ratio", alias="as", description="How the two are compared.")
    trend: Text | None = Field(default=None, description="A factor with numbers: the claim is about the slope over it.")
    knee: KneeClaim | None = Field(
        default=None,
        description="The claim is about the smallest value of a factor at and above which the metric falls short.",
    )
    expect: ExpectText = Field(description=expectation.FORMS)
    say: Text | None = Field(default=None, description="The claim in words.")

    @property
    def pair(self) -> tuple[str, Value, Value] | None:
        """The factor and its two levels that are compared, the first against the second."""
        return next(((factor, *levels) for factor, levels in (self.compare or {}).items()), None)


class Hypothesis(Noun):
    """A hypothesis, and the claims that decide it."""

    name: Text = Field(description="A short name.")
    text: Text = Field(description="The hypothesis, in one sentence.")
    published: Text | None = Field(default=None, description="What the published study reports.")
    claims: Annotated[tuple[Claim, ...], Field(min_length=1)] = Field(description="The claims that decide it.")
    any: Flag = Field(default=False, description="true: one confirmed claim is enough; false: all are needed.")


class ChartDefinition(Noun):
    """A chart of the study's page."""

    title: Text = Field(description="Its heading.")
    kind: Literal["lines", "bars", "per-frame"] = Field(
        default="lines",
        description="per-frame: times of samples by their index within a user, a row for each level of `rows`.",
    )
    metric: MetricName | None = Field(default=None, description="A metric.")
    metrics: Annotated[tuple[MetricName, ...], Field(min_length=1)] | None = Field(
        default=None, description="Or several metrics in one chart."
    )
    x: Text | None = Field(default=None, description="The factor along the axis.")
    lines: Text | None = Field(default=None, description="A factor with a line, or a colour of bars, for each level.")
    panels: Text | None = Field(default=None, description="A factor with a chart for each level.")
    rows: Text | None = Field(default=None, description="Of per-frame: a factor with a row for each level.")
    where: PointsWhere = Field(default={}, description="The points shown.")
    log: Literal["x", "y", "xy"] | None = Field(default=None, description="Logarithmic axes.")
    caption: Text | None = Field(default=None, description="A sentence below it.")

    @property
    def is_by_index(self) -> bool:
        """Whether it shows samples by their index within a user, and not a metric of each point."""
        return self.kind == "per-frame"


class Nothing(Noun):
    """An empty mapping."""


class Quick(Noun):
    """What --quick changes: a smaller study of the same kind."""

    properties: Properties = Field(default={}, description="Fixed properties that differ.")
    factors: dict[str, Factor] = Field(
        default={}, description="Factors by name: the levels to keep of those with named levels, or new values."
    )
    blocks: Blocks | None = Field(default=None, description="In place of the study's blocks.")
    repetitions: Repetitions | None = Field(default=None, description="In place of the study's repetitions.")
    stop: Annotated[RepetitionRule | Nothing | None, Meaning("a stop rule, or {} for none")] = Field(
        default=None, description="In place of the study's stop rule; {} for none."
    )
    warm_up_s: AtLeast0 | None = Field(default=None, description="In place of the study's warm-up.")
    run_s: NumberOrExpression | None = Field(default=None, description="In place of the study's estimate of a run.")
    budget_min: Above0 | None = Field(default=None, description="In place of the study's budget.")


class Study(Noun):
    """A study: its question, the matrix of runs that answers it, and claims about their figures.

    A text that starts with = is arithmetic (+ - * / // ** min max ceil floor) over the factors and properties of a
    point; {factor} in a text is replaced by the factor's value.
    """

    name: SkipJsonSchema[str] = ""
    title: Text = Field(description="Heading of the study's page.")
    question: Text = Field(description="What the study asks, in a sentence or two.")
    plan: PlanPath = Field(description="The JMeter plan, from the checkout's root: jmx/….")
    target: TargetValues = Field(default={}, description="What is under test; levels of factors may change any of it.")
    properties: Properties = Field(default={}, description="Properties of the plan that are the same in all points.")
    factors: Annotated[Factors, Field(min_length=1)] = Field(
        description="What varies: a name and its levels. The name of a property of the plan, or of the target "
        "(target.replicas), with a list of values; or any name with a mapping from level to what this level sets. "
        "Two factors must not set the same property, setting or plan."
    )
    blocks: Blocks | None = Field(
        default=None,
        description="The study is the union of these parts, each a full cross of the levels named; a factor that is "
        "not named takes all of its levels. Without blocks: the full cross of all factors.",
    )
    repetitions: Repetitions = Field(default=3, description="Number of runs of each point.")
    stop: RepetitionRule | None = Field(
        default=None,
        description="Repeat a point more often than `repetitions` (which must then be at least 2) until the interval "
        "of a metric is narrow enough.",
    )
    order: Literal["randomised", "as-listed"] = Field(
        default="randomised",
        description="randomised: all points are shuffled again for each repetition, with a seed that is recorded; "
        "as-listed: in the order of the factors.",
    )
    warm_up_s: AtLeast0 = Field(
        default=0, description="s: samples that start within this time after a run's first are rejected and counted."
    )
    temperature: Literal["warm", "cold", "any"] = Field(
        default="any",
        description="Samples answered by a replica of the other temperature are rejected and counted; samples that do "
        "not report their temperature are kept.",
    )
    run_s: NumberOrExpression = Field(description="s: estimated duration of the load of one run.")
    budget_min: Above0 | None = Field(
        default=None,
        description="min: a study whose estimated time is longer does not start without --over-budget; after this "
        "time, the stop rule adds no repetitions.",
    )
    metrics: Annotated[tuple[MetricName, ...], Field(min_length=1)] = Field(
        description="Metrics in the page's table, the main one first."
    )
    derived: dict[FactorName, Derived] = Field(
        default={},
        description="The study's own metrics: arithmetic over metrics (one of a label in quotes: 'login p95'), "
        "properties and factors of the same run, or a comparison of each run with the mean of the runs (same "
        "repetition) at the point that differs only in the factors named by `against`.",
    )
    hypotheses: tuple[Hypothesis, ...] = Field(
        default=(), description="Hypotheses, each with the claims on figures that decide it."
    )
    charts: tuple[ChartDefinition, ...] = Field(
        default=(),
        description="Charts of the page, in their order. Without charts: one of each of `metrics`, over up to three "
        "factors.",
    )
    published: Text | None = Field(
        default=None,
        description="CSV in UTF-8 beside study.yml with published results: columns of factors and metrics by the same "
        "names and in the same units.",
    )
    published_from: Text | None = Field(
        default=None, description="Who published the results, and on which system they were measured."
    )
    quick: Quick | None = Field(default=None, description="What --quick changes: a smaller study of the same kind.")

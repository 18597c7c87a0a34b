"""The pieces of set-up that a run needs: those of every run, and those that its plan and its target name."""

from collections.abc import Mapping
from pathlib import Path

from framestorm import paths
from framestorm.model import plan as plans
from framestorm.model.facets import VIDEO
from framestorm.model.plan import Plan
from framestorm.run.options import HERE, What, Where
from framestorm.run.target import find_platform
from framestorm.setup import pieces as setup
from framestorm.setup.pieces import Piece


def of_plan(plan: Plan, given: Mapping[str, str]) -> list[Piece]:
    """List the pieces for a plan with these properties: the Python client, and the files of set-up that they name."""
    is_by_client = "python" in plan.filled_in or plan.having(VIDEO) is not None
    values = {**plan.defaults, **given}.values()
    named = {paths.ROOT / (Path(value).expanduser() if value.startswith("~/") else value) for value in values}
    return [
        *setup.FOR_A_RUN,
        *([setup.CLIENT_VENV] if is_by_client else []),
        *(piece for piece in setup.FACE_BLUR if piece.output in named),
    ]


def of_run(what: What, where: Where = HERE) -> list[Piece]:
    """List what the run with these options needs; without those of a study's platform.

    Raises:
        UsageError: the plan cannot be read, or an address is wrong.
    """
    plan = plans.read(what.plan)
    given = {name: plans.trim(value) for name, value in what.given.items()}
    given = {name: value for name, value in given.items() if value}
    platform = find_platform(plan, given, what.site(where))
    of_target = platform.pieces() if platform.runs_with_load else ()
    of_slaves = [setup.ANSIBLE_VENV] if where.is_over_slaves and not where.is_by_pods else []
    unpatched = [setup.UNPATCHED] if what.is_unpatched else []
    return [*of_plan(plan, given), *unpatched, *of_target, *of_slaves]

"""`./run.sh gui`: a plan in JMeter's GUI."""

from collections.abc import Sequence
from pathlib import Path

from framestorm.parser import Parser
from framestorm.run import load, pieces
from framestorm.run.plan_options import add_plan_options, hide_password, run_options
from framestorm.setup import pieces as setup


def main(words: Sequence[str]) -> int:
    """Open a plan in JMeter's GUI, with the target and the properties of a run."""
    parser = Parser(prog="./run.sh gui", description="Open a plan in JMeter's GUI; Run works there as ./run.sh does.")
    add_plan_options(parser)
    parser.add_argument("plan_word", metavar="plan", nargs="?", type=Path, help="the plan, as with -t")
    parser.set_defaults(is_for_gui=True)
    options = parser.parse_args(list(words))
    hide_password(options, ("gui", *words))
    options.plan = options.plan_word or options.plan
    del options.plan_word
    what = run_options(options, words).what
    setup.ensure([*pieces.of_run(what), setup.FOR_WINDOWS])
    load.open_gui(what)
    return 0

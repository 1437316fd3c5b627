"""The part of `understudy plan` for methods that say what they will charge, and no more: which uses, which noise."""

from types import ModuleType
from typing import TYPE_CHECKING, Any

from understudy.cli import screen
from understudy.schema import Schema

if TYPE_CHECKING:
    from understudy.privacy import Budget, Event
    from understudy.synthesizers.auto import Choice

HEADINGS = ("use of the rows", "times", "rows", "noise")
EXPLAINED = (
    "Rows: the chance of a row to be in one such use, drawn anew each time. Noise: the standard deviation, as a "
    "multiple of how far one row can move what is released; for a choice, the epsilon of each."
)


def plan_charges(
    module: ModuleType, config: Any, schema: Schema, budget: "Budget", choice: "Choice", json: bool
) -> None:
    """Tells the entries that the certificate will have; how close rows come is nothing that noise alone decides."""
    if not hasattr(module, "planned"):
        screen.say(f"{choice.method} does not tell its charges in advance; its certificate will list them all.")
        return
    told = module.planned(config, schema, budget)
    if json:
        charges = [{"purpose": entry.purpose, "event": entry.event.to_dict()} for entry in told.entries]
        head = {"epsilon": budget.epsilon, "delta": budget.delta, "rows": schema.rows}
        screen.print_json(choice_data(choice) | head | {"charges": charges, "facts": dict(told.facts)})
        return
    print_choice(choice)
    screen.say(
        f"{choice.method} at epsilon {budget.epsilon:g}, delta {budget.delta:g}, for {schema.rows:,} declared rows "
        f"(none was read). {EXPLAINED}"
    )
    screen.say()
    rows = [(entry.purpose, *event_words(entry.event)) for entry in told.entries]
    screen.print_table(HEADINGS, rows, right=HEADINGS[1:])
    screen.say()
    screen.print_facts(list(told.facts))
    screen.say(
        "How close synthetic rows come cannot be told from noise alone: `understudy compare --on simulated` tries it "
        "on tables made from the schema."
    )


def event_words(event: "Event") -> tuple[str, str, str]:
    """How often, with which part of the rows, and with how much noise.

    >>> from understudy.privacy import Gaussian, PoissonSampled, SelfComposed
    >>> event_words(SelfComposed(PoissonSampled(0.01, Gaussian(2.5)), 3000))
    ('3,000', '0.01', '2.5')
    """
    from understudy.privacy.events import BoundedRange, Gaussian, OneOfMany, PoissonSampled, SelfComposed

    times, rate, noise = 1, "all", "none"
    if isinstance(event, SelfComposed):
        times, event = event.count, event.event
    match event:
        case Gaussian(z):
            noise = f"{z:.3g}"
        case PoissonSampled(chance, Gaussian(z)):
            rate, noise = "all" if chance == 1 else f"{chance:.3g}", f"{z:.3g}"
        case OneOfMany(chance, z):
            rate, noise = f"{chance:.3g}", f"{z:.3g}"
        case BoundedRange(epsilon):
            noise = f"epsilon {epsilon:.3g}"
    return f"{times:,}", rate, noise


def choice_data(choice: "Choice") -> dict[str, str]:
    return {"method": choice.method} | ({"why": choice.why} if choice.why else {})


def print_choice(choice: "Choice") -> None:
    if choice.why:
        screen.say(f"auto picks {choice.method}: {choice.why}.")
        screen.say()

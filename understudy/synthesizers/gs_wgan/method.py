"""GS-WGAN (Chen et al.; for tables with amplification by subsampling): critics on slices, asked one at a time."""

from understudy.privacy import Budget, Ledger, Streams
from understudy.privacy.ledger import Entry
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.gs_wgan.config import Config
from understudy.synthesizers.gs_wgan.plan import make_plan
from understudy.synthesizers.neural.plans import one_way_share_of
from understudy.synthesizers.neural.released import Released
from understudy.synthesizers.planned import Planned, one_way_entry
from understudy.table.table import Table

NAME = "gs-wgan"
SUMMARY = "GAN with many critics on disjoint slices of the rows; noisy slopes of one of them move the generator"

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "one_way_share_of", "planned", "train"]


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    make_plan(config, schema, budget)


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    plan = make_plan(config, schema, budget)
    asking = plan.asking
    rows = f"{asking.critics:,} critics on slices of about {schema.rows / asking.critics:,.0f} rows each"
    questions = Entry(asking.event, f"questions to one of {asking.critics:,} critics")
    return Planned((one_way_entry(schema, plan.one_way_multiplier), questions), (("slices", rows),))


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases one-way tables, then plays the game on rows coded by them.

    Charges: a Gaussian for all one-way tables (`release_layout`); `asking.event` for all questions to critics. Critics
    and slices stay in the trainer; the generator moves by noisy slopes alone, and labels are drawn from the released
    tables, so no real one reaches it.
    """
    from understudy.synthesizers.gs_wgan.trainer import play
    from understudy.synthesizers.neural.correction import correct_marginals
    from understudy.synthesizers.neural.rows import coarse_rows, release_layout
    from understudy.synthesizers.neural.words import spent_so_far

    plan = make_plan(config, schema, budget)
    ledger = Ledger(budget)
    progress("counting columns", 0.0)
    layout = release_layout(table, schema, noise_multiplier=plan.one_way_multiplier, streams=streams, ledger=ledger)
    note = spent_so_far(plan.asking, ledger)
    ledger.charge(plan.asking.event, f"{plan.asking.steps} questions to one of {plan.asking.critics} critics")
    played = play(
        config,
        plan.asking,
        layout,
        coarse_rows(table, layout),
        label=plan.label,
        streams=streams,
        progress=progress,
        note=note,
    )
    generators = played.generators
    if config.correct_marginals:
        generators = correct_marginals(generators, layout, seed=streams.init)
    rows = round(layout.one_way.total)
    return Released(schema, generators, layout.groups, layout.one_way.counts, rows, played.trajectory), ledger

"""The method: two charged stages, then a fit to what they released."""

from understudy.privacy import Budget, Ledger, Streams
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.columns import check_columns, found_cuts, found_grains, release_columns
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.synthesizers.mixture.guides import FineTables, choose_guides, release_fine
from understudy.synthesizers.mixture.pairs import (
    Coarse,
    Interactions,
    Pair,
    check_pairs,
    choose_pairs,
    release_pairs,
    together,
)
from understudy.synthesizers.mixture.plan import Config, Plan, make_plan
from understudy.synthesizers.mixture.released import Released
from understudy.synthesizers.one_way import OneWay
from understudy.table.table import Table

NAME = "mixture"
SUMMARY = "mixture of product distributions fitted to noisy one- and two-way tables"

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "train"]


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses settings and budgets for which there is no plan, or whose noise could not be drawn."""
    plan = make_plan(config, schema, budget)
    check_columns(schema, noise_multiplier=plan.one_way_multiplier)
    check_pairs(plan)


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases fine one-way tables, then coarse two-way tables, and fits the mixture to both.

    Charges: Gaussians for all one-way tables and common values (`release_columns`); where there are more than a few
    pairs, the private choice of those to measure, or to measure better (`choose_pairs`); a Gaussian for all two-way
    tables (`release_pairs`); and one more, for finer tables of columns that follow from others (`release_fine`), or,
    where there are none, for the two-way tables again. Which of the two is decided by released tables, and the charge
    is the same. The plan comes from public facts, the coarse bins from the released one-way tables, the
    fit from released tables: none of them sees a row.
    """
    from understudy.synthesizers.mixture.factors import with_factors
    from understudy.synthesizers.mixture.fit import fit_mixture
    from understudy.synthesizers.mixture.targets import make_targets

    ledger = Ledger(budget)
    plan = make_plan(config, schema, budget)
    progress("counting columns", 0.0)
    one_way = release_columns(table, schema, noise_multiplier=plan.one_way_multiplier, streams=streams, ledger=ledger)
    coarse = _cut(plan, schema, one_way)
    chosen: list[Pair] = []
    if plan.chosen_pairs:
        progress("choosing pairs", 0.0, _spent(ledger))
        chosen = choose_pairs(table, one_way, coarse, plan, streams=streams, ledger=ledger)
    progress("counting pairs", 0.0, _spent(ledger))
    pairs = [*plan.always, *([] if plan.doubled else chosen)]
    picked = set(chosen)
    weights = [plan.weight(pair, picked) for pair in pairs]
    found, fine = _release_tables(table, one_way, coarse, pairs, weights, plan, streams=streams, ledger=ledger)
    targets = make_targets(schema, one_way, coarse, pairs, found, clear=not plan.noisy)
    fitted = fit_mixture(
        targets,
        noisy=plan.noisy,
        components=plan.components,
        fits=plan.fits,
        points=plan.points,
        end=plan.end,
        steps=config.steps,
        seed=streams.init,
        progress=progress,
        note=_spent(ledger),
        more=config.components is None and config.fits is None,
    )
    if plan.noisy:
        fitted = with_factors(targets, fitted)
    released = Released(
        schema=schema,
        weights=fitted.weights,
        probabilities=fitted.probabilities,
        groups=coarse.groups,
        fine=one_way.counts,
        cuts=found_cuts(schema, one_way),
        grains=found_grains(one_way),
        label=plan.label,
        rows=round(one_way.total),
    )
    return released if fine is None else released.place_by(fine), ledger


def _release_tables(
    table: Table,
    one_way: OneWay,
    coarse: Coarse,
    pairs: list[Pair],
    weights: list[int],
    plan: Plan,
    *,
    streams: Streams,
    ledger: Ledger,
) -> tuple[Interactions, FineTables | None]:
    """All pairs, then finer tables of columns that follow from others; pairs once more where none does."""

    def release(noise_multiplier: float) -> Interactions:
        return release_pairs(
            *(table, one_way, coarse, pairs, weights), noise_multiplier=noise_multiplier, streams=streams, ledger=ledger
        )

    found = release(plan.pair_multiplier)
    if not plan.guided:
        return found, None
    of = choose_guides(one_way, coarse, pairs, found, most=plan.guided)
    if of:
        return found, release_fine(table, one_way, coarse, of, plan, streams=streams, ledger=ledger)
    # Without noise there is nothing to gain by counting again.
    return (together(found, release(plan.fine_multiplier)) if plan.fine_multiplier else found), None


def _cut(plan: Plan, schema: Schema, one_way: OneWay) -> Coarse:
    groups = {
        name: coarse_groups(
            one_way.cells[name],
            one_way.counts[name],
            bins=plan.bins,
            most_codes=plan.most_codes,
            # Rare classes of the label are what a reader looks for: they keep codes of their own, noisy as they are.
            rare=0.0 if name == schema.label else plan.pair_noise,
        )
        for name in plan.columns
    }
    return Coarse(groups, plan.label, plan.label_classes)


def _spent(ledger: Ledger) -> str:
    return f"epsilon {ledger.spent():.3g} spent" if ledger.budget.private else "no privacy"

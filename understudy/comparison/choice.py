"""A method chosen under the budget: every candidate and the choice itself are in the model's certificate."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from understudy.comparison.runs import check_methods
from understudy.comparison.scores import score_tables
from understudy.comparison.shares import choice_epsilon, share_out
from understudy.errors import OptionError, SchemaError
from understudy.privacy import BudgetFile, Ledger, Streams, select
from understudy.privacy.certificate import Certificate
from understudy.progress import Progress, silent
from understudy.schema import Schema
from understudy.synthesizers import api, auto, model_file
from understudy.table.read import check_names, read_table
from understudy.table.sources import open_source
from understudy.table.table import Table


def choose(
    source: Any,
    schema: Schema | str | os.PathLike[str],
    *,
    methods: Sequence[str] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int | None = None,
    budget_file: BudgetFile | str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> api.Model:
    """Fits every candidate on the whole table and picks one privately, all within one budget.

    Each of the k methods gets an equal share of the budget, the choice a tenth (`share_out` has the rule). Before a row
    is read, all candidates are rehearsed on a few made-up rows. One that cannot be fitted shows there: it is refused if
    `methods` names it, and left out with a warning if all methods were meant.

    Guarantee: the certificate's (epsilon, delta), which is at most the budget, for the returned model *and* for which
    method it is. The candidates' events and the choice's are composed in one ledger. The choice is an exponential
    mechanism over scores that one row moves by at most `sensitivity` each (`score_tables` proves it), in either
    direction, so it is charged as bounded range with the factor 2 of scores that are not monotone. Models that were not
    chosen are thrown away; they are charged all the same.
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    if schema.images:
        raise SchemaError(
            f"a choice is made by pairs of columns, and column {next(iter(schema.images))!r} is an image; name the"
            " method to fit"
        )
    names, given = check_methods(methods, options)
    if auto.NAME in names:
        raise OptionError("auto is no candidate: it is a public rule that picks one of the others; leave it out")
    api.check_confirmed(schema)
    book = BudgetFile.load(budget_file) if isinstance(budget_file, str | os.PathLike) else budget_file
    budget = api.make_budget(schema, epsilon, delta, total=None if book is None else book.budget)
    if isinstance(source, Table) and source.schema.digest() != schema.digest():
        raise SchemaError("the table was read with another schema than the one given; read it again with this one")
    configs = {name: api.make_config(api.method_module(name), given.get(name, {})) for name in names}
    shares = share_out(configs, schema, budget, leave_out=methods is None, progress=progress)
    names = shares.names
    streams = Streams.from_entropy() if seed is None else Streams.from_seed(seed)
    if book is not None:
        if isinstance(source, str | os.PathLike | pd.DataFrame):
            check_names(open_source(source, schema), schema)  # a mistyped path or name should cost nothing
        reservation = book.reserve(budget, f"choice among the methods {', '.join(names)}")
    progress("reading", 0.0)
    table = source if isinstance(source, Table) else read_table(source, schema)
    ledger = Ledger(budget)
    candidates = {}
    for name in names:
        module = api.method_module(name)
        released, own = api.train_method(
            module, configs[name], schema, table, shares.each, streams=streams, progress=_naming(progress, name)
        )
        candidates[name] = released
        # Nothing has left this function yet: a sum that passes the budget is refused here, and all is thrown away.
        for entry in own.entries:
            ledger.charge(entry.event, f"candidate {name}: {entry.purpose}")
    progress("choosing", 0.0)
    scores, sensitivity = score_tables(table, schema, candidates, streams)
    picked = select(
        scores,
        sensitivity=sensitivity,
        epsilon=choice_epsilon(ledger, shares.choice),
        monotone=False,
        streams=streams,
        ledger=ledger,
        purpose=f"choice among the methods {', '.join(names)}",
    )
    name = names[picked]
    config = api.settings_of(configs[name])
    certificate = Certificate.issue(
        method=name,
        ledger=ledger,
        arrays=model_file.certified_arrays(candidates[name].arrays(), candidates[name].facts(), config),
        schema_digest=schema.digest(),
        seeded=streams.seeded,
    )
    if book is not None:
        book.commit(reservation, certificate)
    return api.Model(schema, name, config, certificate, candidates[name])


def _naming(progress: Progress, name: str) -> Progress:
    return lambda stage, done, note="": progress(f"{name}: {stage}", done, note)

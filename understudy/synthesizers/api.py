"""Fitting any method, and the model that comes out."""

import dataclasses
import difflib
import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import pandas as pd

from understudy.errors import OptionError, SchemaError
from understudy.notebook import card
from understudy.privacy import Budget, BudgetFile, Ledger, Streams, default_delta
from understudy.privacy.budget_file import fit_delta
from understudy.privacy.certificate import Certificate, rounded_up
from understudy.progress import Progress, silent
from understudy.schema import Schema
from understudy.schema.shown import column_words, rule_words
from understudy.synthesizers import auto, model_file
from understudy.synthesizers.even import choose_evenly, tables_to_draw
from understudy.synthesizers.rules_held import draw_rows
from understudy.table.frame import frame
from understudy.table.read import check_names, read_table
from understudy.table.sources import open_source
from understudy.table.table import Table

METHODS = {
    "mixture": "understudy.synthesizers.mixture.method",
    "independent": "understudy.synthesizers.independent",
    "mst": "understudy.synthesizers.marginals.mst",
    "aim": "understudy.synthesizers.marginals.aim",
    "dp-auto-gan": "understudy.synthesizers.dp_auto_gan",
    "dp-wgan": "understudy.synthesizers.dp_wgan",
    "dp-vae": "understudy.synthesizers.dp_vae",
    "dp-cgan": "understudy.synthesizers.dp_cgan",
    "dp-syn": "understudy.synthesizers.dp_syn.method",
    "dp-merf": "understudy.synthesizers.dp_merf.method",
    "gs-wgan": "understudy.synthesizers.gs_wgan.method",
}
DEFAULT_METHOD = auto.NAME
# What comes of models, not of a table alone. That room sees this one, so it is named here and loaded when asked for.
BOOSTED, BOOSTING = "boosted", "understudy.boosting.method"


class Released(Protocol):
    """What a method gives away: released values alone, and how to draw rows from them."""

    rows: int

    def arrays(self) -> dict[str, np.ndarray]: ...

    def facts(self) -> dict[str, Any]: ...

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None) -> dict[str, np.ndarray]: ...

    def log_prob(self, codes: Mapping[str, np.ndarray]) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted stand-in: makes synthetic rows, and carries its guarantee. Holds no private row.

    `released` knows the columns of `schema.learnt()`; rows of all columns, which hold the schema's rules, come from
    `draw` and `sample`.
    """

    schema: Schema
    method: str
    config: dict[str, Any]
    certificate: Certificate
    released: Released

    @property
    def rows(self) -> int:
        """The number of rows of the private table, as released with noise."""
        return self.released.rows

    def sample(
        self,
        n: int | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        seed: int | None = None,
        even: bool = True,
    ) -> pd.DataFrame:
        """n synthetic rows (as many as the table had, about, if n is left out), with the schema's columns and types.

        where: conditions by column: a value, a list of values, None for missing, or a (low, high) tuple for ordered
        columns, both ends included; a range wider than the declared bounds is cut at them. Drawing costs no privacy; a
        seed here only makes the draw repeatable. even: choose rows so that pairs of columns come as often as the model
        says (`synthesizers.even`); false takes rows as the method draws them.
        """
        n = self.rows if n is None else n
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise OptionError(f"n must be a whole number of at least 1, got {n!r}")
        if where is not None and not isinstance(where, Mapping):
            raise OptionError(
                f"where must map columns to conditions, such as {{'age': (60, None)}}, got {type(where).__name__}"
            )
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise OptionError(f"seed must be a whole number from 0, got {seed!r}")
        return frame(self.schema, self.draw(int(n), np.random.default_rng(seed), where, even=even))

    def draw(
        self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None, *, even: bool = True
    ) -> dict[str, np.ndarray]:
        """`sample` as codes: of all columns, holding all rules of the schema."""
        asked: list[int] = []

        def counted(count: int, rng: np.random.Generator, where: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
            asked.append(count)
            return self.released.sample(count, rng, where)

        def table() -> dict[str, np.ndarray]:
            return draw_rows(self.schema, counted, n, rng, where)

        tables = [table()]
        if even and not self.schema.images:
            # Rules may reject most rows: what one table took to draw decides how many more are worth it.
            number = tables_to_draw(n, len(self.schema.modelled), drawn=sum(asked))
            tables += [table() for _ in range(number - 1)]
        return tables[0] if len(tables) == 1 else choose_evenly(tables, self.schema.label, rng)

    def log_prob(self, rows: Any) -> np.ndarray:
        """Natural logarithm of the model's probability of each row (density, for reals without a resolution).

        With rules in the schema: of the columns that were learnt, before rows that break rules are drawn again, and
        minus infinity for a row that breaks one. Among rows that hold them it is too low by one constant (minus the
        logarithm of the share of rows that do), as long as drawing again is enough and no row has to be mended.
        """
        table = rows if isinstance(rows, Table) else read_table(rows, self.schema)
        codes = {name: table.codes(name) for name in self.schema.modelled}
        scores = self.released.log_prob({name: codes[name] for name in self.schema.learnt().modelled})
        return np.where(self.schema.ruleset().all_held(codes), scores, -np.inf) if self.schema.rules else scores

    def save(self, path: str | PathLike[str]) -> None:
        """Writes one `.understudy` file, whole or not at all."""
        model_file.write(
            path,
            model_file.Parts(
                method=self.method,
                config=self.config,
                facts=self.released.facts(),
                arrays=self.released.arrays(),
                schema=self.schema,
                certificate=self.certificate,
            ),
        )

    def __repr__(self) -> str:
        columns = len(self.schema.modelled) + len(self.schema.images)
        return f"Model({self.method}, {columns} columns, {self._claim()})"

    def _claim(self) -> str:
        return f"epsilon {rounded_up(self.certificate.epsilon, 4)}, delta {rounded_up(self.certificate.delta, 4)}"

    def _repr_html_(self) -> str:
        return card(
            f"Model ({self.method})",
            [
                ("guarantee", self._claim()),
                ("rows", f"about {self.rows:,}, as released with noise"),
                ("label", self.schema.label or "none"),
                *((f"rule {number}", rule_words(rule)) for number, rule in enumerate(self.schema.rules, start=1)),
                ("settings", ", ".join(f"{name}={value}" for name, value in self.config.items()) or "none"),
            ],
            headings=("column", "kind", "public facts"),
            rows=[(name, column.kind, column_words(column)) for name, column in self.schema.columns.items()],
            notes=[self.certificate.statement()],
        )


def method_module(name: str) -> ModuleType:
    """The module of a method, by name."""
    if name not in METHODS:
        known = [auto.NAME, *METHODS]
        raise OptionError(f"method {name!r} is not known{_nearest(name, known)}; choose from {', '.join(known)}")
    return importlib.import_module(METHODS[name])


def boosted_method(module: ModuleType, boost: bool | Mapping[str, Any]) -> Any:
    """The method with boosting behind it, which `fit` treats like a method; `boost` is true or has settings."""
    return importlib.import_module(BOOSTING).boosted_method(module, boost)


def choose_method(name: str, schema: Schema, budget: Budget) -> auto.Choice:
    """What the public rule picks for `auto`, with its reason; any other method itself, which needs none."""
    if name == auto.NAME:
        return auto.choose(schema.learnt(), budget)
    method_module(name)
    return auto.Choice(name, "")


def make_config(module: ModuleType, options: Mapping[str, Any], *, why: str = "") -> Any:
    """A method's config from options, refusing unknown ones; `why` tells why `auto` picked the method."""
    known = [field.name for field in dataclasses.fields(module.Config)]
    for name in options:
        if name not in known:
            choice = f"it takes {', '.join(known)}" if known else "it takes none"
            picked = f"; auto picked {module.NAME} ({why}): name the method that you mean" if why else ""
            raise OptionError(f"{module.NAME} has no option {name!r}{_nearest(name, known)}; {choice}{picked}")
    return module.Config(**options)


def settings_of(config: Any) -> dict[str, Any]:
    """A config as a model file keeps it: whole numbers of several layers are a list there."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(config).items()}


def check_plan(module: ModuleType, config: Any, schema: Schema, budget: Budget) -> None:
    """Lets the method refuse, from public facts alone, what it could not carry out: before anything is spent."""
    if schema.images and not getattr(module, "IMAGES", False):
        raise SchemaError(
            f"method {module.NAME} makes no images, but column {next(iter(schema.images))!r} is of kind image; use"
            f" -m {auto.IMAGE_METHOD}, or drop the column (kind: text leaves it out)"
        )
    if hasattr(module, "check"):
        module.check(config, schema.learnt(), budget)


def train_method(
    module: Any, config: Any, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Trains a method on what there is to learn: no budget goes to columns that rules determine, a public fact."""
    return module.train(config, schema.learnt(), table.learnt(), budget, streams=streams, progress=progress)


def make_budget(schema: Schema, epsilon: float, delta: float | None, *, total: Budget | None = None) -> Budget:
    """The budget; where delta is not given, from the declared rows and the `total` of a budget file."""
    if schema.rows is None:
        raise SchemaError("the schema must declare `rows:`, a public round number (the count itself is private)")
    if delta is None:
        usual = default_delta(schema.rows)
        return Budget(epsilon, usual if total is None else min(usual, fit_delta(total)))
    budget = Budget(epsilon, delta)
    if budget.private and budget.delta >= 1 / schema.rows:
        warnings.warn(
            f"delta {budget.delta:g} is not below one over the declared {schema.rows} rows: it would allow a method "
            f"that publishes a row; use {default_delta(schema.rows):g} or leave it out",
            stacklevel=3,
        )
    return budget


def fit(
    source: Any,
    schema: Schema | str | PathLike[str],
    *,
    method: str = DEFAULT_METHOD,
    epsilon: float = 1.0,
    delta: float | None = None,
    seed: int | None = None,
    progress: Progress = silent,
    budget_file: BudgetFile | str | PathLike[str] | None = None,
    on_clipped: Callable[[Mapping[str, int]], None] | None = None,
    boost: bool | Mapping[str, Any] = False,
    **options: Any,
) -> Model:
    """Fits a stand-in of a private table within a privacy budget.

    source: a path (CSV, Parquet), DataFrame, Arrow table or Table. schema: public facts, all confirmed.
    method: its name, or `auto`, which picks one from the schema and the budget alone (`auto.choose` says why).
    epsilon, delta: the total budget for one row added or removed; `inf` fits without privacy, and says so.
    seed: repeatable noise, for tests and research; the certificate then refuses release. options: of the method.
    budget_file: adds up repeated fits on one table. This one is written down before a row is read, so that a crash
    counts as spent, and refused if the file's total would be passed; delta is then a tenth of the file's by default.
    on_clipped: told the number of clipped cells by column, which is private: for the steward's eyes alone.
    boost: spend a part of the budget on boosting what was trained; true, or a mapping of settings (docs/boosting.md).

    The schema's rules are public: rows that break them are read like others (refusing them would tell that there are
    some), and the model's own rows hold them all the same.

    Guarantee: the certificate's (epsilon, delta), for everything in the returned model.
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    check_confirmed(schema)
    book = BudgetFile.load(budget_file) if isinstance(budget_file, str | PathLike) else budget_file
    budget = make_budget(schema, epsilon, delta, total=None if book is None else book.budget)
    choice = choose_method(method, schema, budget)
    method, module = choice.method, method_module(choice.method)
    config = make_config(module, options, why=choice.why)
    if boost:
        method, module = BOOSTED, boosted_method(module, boost)
    streams = Streams.from_entropy() if seed is None else Streams.from_seed(seed)
    check_plan(module, config, schema, budget)
    if isinstance(source, Table) and source.schema.digest() != schema.digest():
        raise SchemaError("the table was read with another schema than the one given; read it again with this one")
    if book is not None:
        if isinstance(source, str | PathLike | pd.DataFrame):
            check_names(open_source(source, schema), schema)  # a mistyped path or name should cost nothing
        reservation = book.reserve(budget, f"fit of method {method}")
    progress("reading", 0.0)
    table = source if isinstance(source, Table) else read_table(source, schema)
    if on_clipped is not None:
        on_clipped(table.notes)
    released, ledger = train_method(module, config, schema, table, budget, streams=streams, progress=progress)
    certificate = Certificate.issue(
        method=method,
        ledger=ledger,
        arrays=model_file.certified_arrays(released.arrays(), released.facts(), settings_of(config)),
        schema_digest=schema.digest(),
        seeded=streams.seeded,
    )
    if book is not None:
        book.commit(reservation, certificate)
    return Model(schema, method, settings_of(config), certificate, released)


def load(path: str | PathLike[str]) -> Model:
    """Reads a model file; fails with a message that says why if it is damaged, altered or from another format."""
    parts = model_file.read(path)
    module = importlib.import_module(BOOSTING) if parts.method == BOOSTED else method_module(parts.method)
    model_file.check_unaltered(path, parts)
    with model_file.refusing_damage(path):
        released = module.Released.from_parts(parts.schema.learnt(), parts.arrays, parts.facts)
    return Model(parts.schema, parts.method, parts.config, parts.certificate, released)


def check_confirmed(schema: Schema) -> None:
    """Refuses facts that were read off the rows: a bound or a category taken from private rows is a release."""
    open_facts = schema.unconfirmed()
    if open_facts:
        shown = ", ".join(f"{column}.{fact}" if column else fact for column, fact in open_facts[:5])
        more = f" and {len(open_facts) - 5} more" if len(open_facts) > 5 else ""
        raise SchemaError(
            f"{len(open_facts)} facts were read off the rows and are not confirmed as public ({shown}{more}); "
            "check them against public documents, then run `understudy confirm SCHEMA`"
        )


def _nearest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""

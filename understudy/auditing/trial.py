"""Short fits of one method on made-up tables, each made once: what the checks of `conformance` look at."""

import contextlib
import dataclasses
import io
import tempfile
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from understudy.auditing.grounds import DECLARED, TABLES, Ground, plus
from understudy.auditing.transcript import Asked, DivergedError, WatchedNoise, silenced, streams_of, watched
from understudy.errors import OptionError
from understudy.privacy import Budget, Ledger
from understudy.privacy.certificate import Certificate
from understudy.schema import Schema
from understudy.synthesizers import model_file
from understudy.synthesizers.api import settings_of
from understudy.table.table import Table

SEED, OTHER_SEED = 918_273_645, 564_738_291
BUDGET = Budget(4.0, 1e-6)  # so few rows stand above the noise of this: what a method does by class is done
# Settings that make a fit short, for whichever of these options a method has: form and honesty are asked for, not
# quality. A batch of all declared rows samples nothing away, so that noise is found by a formula.
SHORT: dict[str, Any] = {
    "steps": 5,
    "autoencoder_steps": 5,
    "batch": DECLARED,
    "latent": 3,
    "hidden": 8,
    "autoencoder_hidden": 8,
    "generator_hidden": (8,),
    "critic_hidden": (8,),
    "components": 3,
    "features": 8,
    "critics": 4,
    "pretraining": 1,
}


def short_options(config: type) -> dict[str, Any]:
    """The entries of SHORT that a method's Config has, where the type is that of its default."""
    found = {}
    for option in dataclasses.fields(config):
        short = SHORT.get(option.name)
        if short is not None and (option.default is None or isinstance(option.default, type(short))):
            found[option.name] = short
    return found


@dataclass(frozen=True, eq=False)
class Run:
    """One training: what came out, what was charged, what was asked of the rows, and all that was said meanwhile."""

    released: Any
    ledger: Ledger
    asked: tuple[Asked, ...]
    said: tuple[str, ...]
    seed: int

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(array) for name, array in self.released.arrays().items()}

    @cached_property
    def facts(self) -> dict[str, Any]:
        return dict(self.released.facts())


@dataclass(frozen=True, eq=False)
class Transcripts:
    """Trainings that were told the same: on the usual table, on quite different ones, on those that differ by a row."""

    usual: Run
    far: dict[str, Run | DivergedError]
    neighbours: dict[str, Run | DivergedError]


@dataclass(eq=False)
class Trial:
    """A method with short settings, and its trainings on made-up tables, each run when a check first asks for it."""

    module: Any
    options: Mapping[str, Any] | None = None
    ground: Ground = TABLES

    @property
    def schema(self) -> Schema:
        return self.ground.schema

    @cached_property
    def config(self) -> Any:
        if self.options is not None:
            return self.module.Config(**self.options)
        short = short_options(self.module.Config)
        for tried in (short, {name: value for name, value in short.items() if name == "steps"}):
            # The method may have its own ideas of what such an option means, or where it belongs.
            with contextlib.suppress(OptionError):
                config = self.module.Config(**tried)
                if hasattr(self.module, "check"):
                    self.module.check(config, self.schema, BUDGET)
                return config
        return self.module.Config()

    def run(
        self,
        table: Table,
        *,
        budget: Budget = BUDGET,
        seed: int = SEED,
        answers: Sequence[Asked] = (),
    ) -> Run:
        """Trains once, with all that could be said caught: progress, warnings, prints."""
        noise = WatchedNoise(seed, answers)
        said: list[str] = []
        printed = io.StringIO()
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            watched(noise),
        ):
            warnings.simplefilter("always")
            released, ledger = self.module.train(
                self.config,
                self.schema,
                table,
                budget,
                streams=streams_of(noise, seed),
                progress=lambda stage, done, note="": said.append(f"{stage} {done} {note}"),
            )
        said += [str(warning.message) for warning in warned] + printed.getvalue().splitlines()
        return Run(released, ledger, tuple(noise.asked), tuple(said), seed)

    @cached_property
    def table(self) -> Table:
        return self.ground.table(self.ground.usual)

    @cached_property
    def base(self) -> Run:
        """The usual table, as any fit would do it."""
        return self.run(self.table)

    @cached_property
    def transcripts(self) -> "Transcripts":
        """The usual table and others, compiled trainings silenced, all with the answers that the usual one got."""
        self.base  # noqa: B018 - loads whatever the method trains with, so that it can be silenced
        with silenced():
            usual = self.run(self.table)

            def replay(codes: Mapping[str, np.ndarray]) -> Run | DivergedError:
                try:
                    return self.run(self.ground.table(codes), answers=usual.asked)
                except DivergedError as error:
                    return error

            return Transcripts(
                usual,
                far={what: replay(codes) for what, codes in self.ground.far.items()},
                neighbours={what: replay(plus(self.ground.usual, row)) for what, row in self.ground.extremes.items()}
                | {"one row less": replay({name: column[:-1] for name, column in self.ground.usual.items()})},
            )

    def certificate(self, run: Run) -> Certificate:
        return Certificate.issue(
            method=self.module.NAME,
            ledger=run.ledger,
            arrays=model_file.certified_arrays(run.arrays, run.facts, settings_of(self.config)),
            schema_digest=self.schema.digest(),
            seeded=True,
        )

    @cached_property
    def parts(self) -> model_file.Parts:
        """The model of the usual fit, written to a file and read back."""
        return self._file[0]

    @cached_property
    def members(self) -> bytes:
        """Everything in that file, unpacked, but for the certificate and the schema, which hold public facts alone."""
        return self._file[1]

    @cached_property
    def _file(self) -> tuple[model_file.Parts, bytes]:
        parts = model_file.Parts(
            method=self.module.NAME,
            config=settings_of(self.config),
            facts=self.base.facts,
            arrays=self.base.arrays,
            schema=self.schema,
            certificate=self.certificate(self.base),
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.understudy"
            model_file.write(path, parts)
            with zipfile.ZipFile(path) as archive:
                content = b"\0".join(archive.read(name) for name in ("model.json", "arrays.safetensors"))
            return model_file.read(path), content

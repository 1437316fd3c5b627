"""The settings of DP-MERF, one set for tables and images."""

from collections.abc import Mapping
from dataclasses import dataclass

from understudy.errors import OptionError
from understudy.synthesizers.neural.plans import check_options

SHARES = ("counted", "equal")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Public settings; None follows a public rule. The defaults need no tuning.

    one_way_share: share of the budget (of 1/z^2) for the one-way tables of a table's columns.
    order: 1 embeds columns, 2 pairs of columns as well.
    features: frequencies of the random Fourier features (a cosine and a sine each).
    widths: of the Gaussian kernels, in units of the distance of two typical rows.
    count_weight: weight of the count of rows in the joint release, beside that of a column.
    class_shares: counted (from the noisy counts) or equal (by declaration).
    undersample: the chance that a row is kept, by value of the label; undone when rows are drawn.
    minibatches: images: so many noisy embeddings of Poisson samples in place of one of all rows.
    autoencoder: images: embed the codes of an autoencoder trained by DP-SGD.
    latent: numbers that the generator starts from.
    hidden: units of the generator's hidden layers.
    batch: made-up rows of a step.
    steps: of the generator; they cost no budget.
    learning_rate: of the first steps; it falls to nothing.
    """

    one_way_share: float | None = None
    order: int | None = None
    features: int | None = None
    widths: tuple[float, ...] | None = None
    count_weight: float = 0.25
    class_shares: str = "counted"
    undersample: Mapping[str, float] | None = None
    minibatches: int = 0
    autoencoder: bool = False
    latent: int | None = None
    hidden: int | None = None
    batch: int | None = None
    steps: int | None = None
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.widths, int | float | list):  # from a command line or a file
            value = self.widths
            object.__setattr__(self, "widths", tuple(value) if isinstance(value, list) else (value,))
        limits = {
            "one_way_share": (float, 0.001, 0.9),
            "order": (int, 1, 2),
            "features": (int, 1, 1_000_000),
            "widths": (float, 1e-3, 1e3),
            "count_weight": (float, 0, 100),
            "minibatches": (int, 0, 1_000_000),
            "latent": (int, 1, 1024),
            "hidden": (int, 1, 65_536),
            "batch": (int, 1, 1_000_000),
            "steps": (int, 1, 1_000_000),
            "learning_rate": (float, 1e-6, 1),
        }
        check_options(self, **{name: limit for name, limit in limits.items() if getattr(self, name) is not None})
        if self.class_shares not in SHARES:
            raise OptionError(f"class_shares must be one of {', '.join(SHARES)}, got {self.class_shares!r}")
        if not isinstance(self.autoencoder, bool):
            raise OptionError(f"autoencoder must be true or false, got {self.autoencoder!r}")
        if self.undersample is not None and not isinstance(self.undersample, Mapping):
            raise OptionError("undersample must map values of the label to rates, such as {'no': 0.1}")

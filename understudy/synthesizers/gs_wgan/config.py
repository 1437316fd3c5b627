"""The public settings of GS-WGAN."""

from dataclasses import dataclass

from understudy.errors import OptionError
from understudy.synthesizers.neural.gan_options import MOST_CHECKPOINTS
from understudy.synthesizers.neural.plans import check_options

MOST_CRITICS = 100_000
MOST_STEPS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Config:
    """Public settings. The defaults need no tuning.

    one_way_share: share of the budget (of 1/z^2) for the one-way tables; None follows a public rule.
    critics: into how many slices the rows fall, each with a critic of its own; None follows a public rule.
    steps: of the generator, each of which asks one critic; all are charged.
    batch: made-up rows that a critic is asked about in one step.
    conditional: the generator is told a label drawn from the released table, where the label has declared values.
    latent: numbers that the generator starts from.
    generator_hidden: units of the generator's hidden layers.
    critic_hidden: hidden units that a critic has beside its quadratic form.
    powers: numbers that critics see of a column with an order: its rank, its rank squared and so on.
    critic_batch: rows of its slice that a critic takes a step on.
    taught: critics that take a step whenever the generator does, in turns.
    pretraining: steps that every critic takes before the generator's first.
    penalty: weight of the gradient penalty that keeps critics' slopes near 1.
    critic_rate: learning rate of the critics.
    generator_rate: learning rate of the generator; it falls to nothing over the steps.
    temperature: of the Gumbel-softmax through which slopes reach the generator.
    clip: norm of the slope at one made-up row.
    correct_marginals: shift the last biases to the released one-way shares at the end.
    checkpoints: how many earlier generators the model keeps, for boosting; they cost no budget.
    """

    one_way_share: float | None = None
    critics: int | None = None
    steps: int = 20_000
    batch: int = 64
    conditional: bool = True
    latent: int = 16
    generator_hidden: tuple[int, ...] = (64, 64)
    critic_hidden: int = 0
    powers: int = 1
    critic_batch: int = 32
    taught: int = 16
    pretraining: int = 50
    penalty: float = 10.0
    critic_rate: float = 0.01
    generator_rate: float = 0.001
    temperature: float = 0.66
    clip: float = 1.0
    correct_marginals: bool = True
    checkpoints: int = 0

    def __post_init__(self) -> None:
        hidden = self.generator_hidden
        if isinstance(hidden, int | list):  # from a command line or a file
            object.__setattr__(self, "generator_hidden", tuple(hidden) if isinstance(hidden, list) else (hidden,))
        elif not isinstance(hidden, tuple):
            raise OptionError(f"generator_hidden must be whole numbers, one a layer, got {hidden!r}")
        check_options(
            self,
            steps=(int, 1, MOST_STEPS),
            batch=(int, 1, 65_536),
            latent=(int, 1, 4096),
            generator_hidden=(int, 1, 65_536),
            critic_hidden=(int, 0, 65_536),
            powers=(int, 1, 8),
            critic_batch=(int, 1, 65_536),
            taught=(int, 1, MOST_CRITICS),
            pretraining=(int, 0, MOST_STEPS),
            penalty=(float, 0, 1e6),
            critic_rate=(float, 1e-7, 1),
            generator_rate=(float, 1e-7, 1),
            temperature=(float, 0.3, 10),
            clip=(float, 1e-6, 1e6),
            checkpoints=(int, 0, MOST_CHECKPOINTS),
        )
        if self.one_way_share is not None:
            check_options(self, one_way_share=(float, 0.001, 0.9))
        if self.critics is not None:
            check_options(self, critics=(int, 2, MOST_CRITICS))
        if self.checkpoints > self.steps:
            raise OptionError(f"checkpoints must be at most steps ({self.steps}), got {self.checkpoints}")
        for name in ("conditional", "correct_marginals"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be true or false, got {getattr(self, name)!r}")

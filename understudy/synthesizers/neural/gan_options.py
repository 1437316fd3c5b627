"""The settings that GANs of the house share."""

import itertools
from dataclasses import dataclass

from understudy.errors import OptionError
from understudy.synthesizers.neural.plans import check_options

LOSSES = ("wgan", "wgan-gp", "kl-wgan", "logistic")
MOST_CHECKPOINTS = 1000


@dataclass(frozen=True, kw_only=True)
class GanOptions:
    """Public settings of a GAN.

    one_way_share: share of the budget (of 1/z^2) for the one-way tables; None follows a public rule.
    latent: numbers that the generator starts from.
    generator_hidden: units of the generator's hidden layers.
    critic_hidden: units of the critic's hidden layers.
    loss: wgan, wgan-gp (gradient penalty inside the clip), kl-wgan or logistic.
    critic_steps: critic's steps for each of the generator.
    critic_rate: learning rate of the critic.
    generator_rate: learning rate of the generator.
    weight_limit: the critic's weights are cut to this after each step (a Lipschitz bound); None: not cut.
    temperature: of the Gumbel-softmax that makes rows for the critic.
    batch: expected rows of a step; None follows a public rule.
    steps: of the critic, all of them charged.
    clip: norm of one row's gradient around the made-up rows' mean.
    correct_marginals: shift the last biases to the released one-way shares at the end.
    checkpoints: how many earlier generators and critics the model keeps, for boosting; they cost no budget.
    """

    one_way_share: float | None = None
    latent: int = 32
    generator_hidden: tuple[int, ...] = (128, 128)
    critic_hidden: tuple[int, ...] = (128, 64)
    loss: str = "wgan"
    critic_steps: int = 2
    critic_rate: float = 0.002
    generator_rate: float = 0.002
    weight_limit: float | None = 0.02
    temperature: float = 0.66
    batch: int | None = None
    steps: int = 1000
    clip: float = 0.3
    correct_marginals: bool = True
    checkpoints: int = 0

    def __post_init__(self) -> None:
        for name in ("generator_hidden", "critic_hidden"):
            value = getattr(self, name)
            if isinstance(value, int | list):  # from a command line or a file
                object.__setattr__(self, name, tuple(value) if isinstance(value, list) else (value,))
            elif not isinstance(value, tuple):
                raise OptionError(f"{name} must be whole numbers, one a layer, got {value!r}")
        check_options(
            self,
            latent=(int, 1, 4096),
            generator_hidden=(int, 1, 65_536),
            critic_hidden=(int, 1, 65_536),
            critic_steps=(int, 1, 1000),
            critic_rate=(float, 1e-7, 1),
            generator_rate=(float, 1e-7, 1),
            temperature=(float, 0.3, 10),
            steps=(int, 1, 1_000_000),
            clip=(float, 1e-6, 1e6),
            checkpoints=(int, 0, MOST_CHECKPOINTS),
        )
        if self.one_way_share is not None:
            check_options(self, one_way_share=(float, 0.001, 0.9))
        if self.batch is not None:
            check_options(self, batch=(int, 1, 10_000_000))
        if self.weight_limit is not None:
            check_options(self, weight_limit=(float, 1e-6, 100))
        if self.checkpoints > self.steps:
            raise OptionError(f"checkpoints must be at most steps ({self.steps}), got {self.checkpoints}")
        if self.loss not in LOSSES:
            raise OptionError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        if not isinstance(self.correct_marginals, bool):
            raise OptionError(f"correct_marginals must be true or false, got {self.correct_marginals!r}")

    def parameters(self, width: int) -> int:
        """About how many weights the two networks have for rows of `width` units."""
        sizes = ((self.latent, *self.generator_hidden, width), (width, *self.critic_hidden, 1))
        return sum(a * b for net in sizes for a, b in itertools.pairwise(net))

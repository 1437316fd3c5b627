"""Opacus's side of `bench.speed.dpsgd`; runs in the environment that `python -m bench.peers.install opacus` makes.

`dpsgd_opacus.py FILE THREADS`: FILE holds the weights and the batches that the other side uses too. Then one command a
line on standard input, one line of JSON for each: `time METHOD STEPS` gives seconds by the clock and of the processor,
`check METHOD PATH` writes the clipped sum of the first batch, without noise, so that both sides are seen to do the same
work.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from opacus.grad_sample import GradSampleModule
from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

Take = Callable[[torch.Tensor], None]


class MinusScore(torch.nn.Module):
    """A critic's loss on real rows, in the form that Opacus asks of a criterion."""

    reduction = "mean"

    def forward(self, scores: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        losses = -scores[:, 0]
        return losses.mean() if self.reduction == "mean" else losses


def network(weights: list[np.ndarray]) -> torch.nn.Sequential:
    """Dense layers from (weights, biases, weights, ...), with leaky units between them."""
    layers: list[torch.nn.Module] = []
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        dense = torch.nn.Linear(*w.shape)
        with torch.no_grad():
            dense.weight.copy_(torch.from_numpy(w.T.copy()))
            dense.bias.copy_(torch.from_numpy(b))
        layers += [dense, torch.nn.LeakyReLU(0.2)]
    return torch.nn.Sequential(*layers[:-1])


def steps_of(method: str, facts: dict[str, np.ndarray], *, noise: float) -> tuple[torch.nn.Module, Take]:
    """A fresh network and the function that takes one step on a batch."""
    weights = [facts[f"weights{number}"] for number in range(int(facts["arrays"]))]
    model, criterion = network(weights), MinusScore()
    adam = torch.optim.Adam(model.parameters(), lr=float(facts["learning_rate"]), betas=(0.5, 0.9))
    clip, size = float(facts["clip"]), facts["batches"].shape[1]
    nothing = torch.zeros(size)
    if method == "torch":
        optimiser, wrapped = adam, model
    elif method == "hooks":
        wrapped = GradSampleModule(model)
        optimiser = DPOptimizer(adam, noise_multiplier=noise, max_grad_norm=clip, expected_batch_size=size)
    else:
        wrapped = GradSampleModuleFastGradientClipping(model, max_grad_norm=clip, use_ghost_clipping=True)
        optimiser = DPOptimizerFastGradientClipping(
            adam, noise_multiplier=noise, max_grad_norm=clip, expected_batch_size=size
        )
        criterion = DPLossFastGradientClipping(wrapped, optimiser, criterion)

    def take(batch: torch.Tensor) -> None:
        optimiser.zero_grad()
        criterion(wrapped(batch), nothing).backward()
        optimiser.step()

    return model, take


def main() -> None:
    warnings.simplefilter("ignore")
    facts = dict(np.load(sys.argv[1]))
    torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    batches = torch.from_numpy(facts["batches"])
    noise = float(facts["noise_multiplier"])
    prepared = {method: steps_of(method, facts, noise=noise)[1] for method in ("torch", "hooks", "ghost")}
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads()}), flush=True)
    for line in sys.stdin:
        command, method, argument = line.split()
        if command == "check":
            model, take = steps_of(method, facts, noise=0.0)
            take(batches[0])
            sums = [layer.grad.numpy() * len(batches[0]) for layer in model.parameters()]
            np.savez(argument, *[s.T if s.ndim == 2 else s for s in sums])
            print(json.dumps({}), flush=True)
            continue
        take = prepared[method]
        clock, processor = time.perf_counter(), time.process_time()
        for number in range(int(argument)):
            take(batches[number % len(batches)])
        answer = {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

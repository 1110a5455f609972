"""What a user should know of a problem before it is solved, though nothing is wrong with it."""

from __future__ import annotations

from physs_runner.config.schema import RunConfig
from physs_runner.console import Reporter
from physs_runner.model.build import Problem


def advise(config: RunConfig, problem: Problem, reporter: Reporter) -> None:
    """Tell the user what there is to say."""
    for sentence in advice(config, problem):
        reporter.warn(sentence)


def advice(config: RunConfig, problem: Problem) -> list[str]:
    """Say what is likely to mislead, a sentence each."""
    return [*_trained_kernels(config, problem)]


def _trained_kernels(config: RunConfig, problem: Problem) -> list[str]:
    """Warn of a bias: the variance that fits best makes small solutions likelier.

    Where equations hold exactly the prior is only a means to solve them, and what it says
    of the size of a function it says of the parameters (docs/METHODS.md).
    """
    trained = [
        spec.name
        for spec in problem.model.specs
        if spec.trainable and spec.name.startswith("kernel.") and spec.name.endswith(".variance")
    ]
    if not problem.physics.random or not trained or config.training.optimiser == "none":
        return []
    return [
        f"{', '.join(problem.physics.random)} will be biased by {trained[0]}, which is trained and "
        "prefers small solutions; hold kernels (kernel.time.trainable=[] "
        "kernel.space.trainable=[]) with a variance well above the square of your functions"
    ]

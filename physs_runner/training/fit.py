"""Which way of training a config asks for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from jax import Array

from physs_runner.config.schema import RunConfig
from physs_runner.datasets.points import PhyssWarning
from physs_runner.errors import NumericalError
from physs_runner.inference.protocol import Algorithm
from physs_runner.inference.registry import build_algorithm
from physs_runner.training.batched import Member, MemberReport, fit_batched
from physs_runner.training.checkpoints import Checkpoints
from physs_runner.training.damping import DAMPINGS, dampened, ran_away
from physs_runner.training.iteration import Stopping
from physs_runner.training.loop import FitResult, Report, fit
from physs_runner.training.schedules import Plan, closing_plan, fixed_plan, training_plan

# Natural-gradient steps that let the posterior settle once hyperparameters are final.
SETTLING_STEPS = 5


def train(
    algorithm: Algorithm,
    config: RunConfig,
    key: Array,
    report: Report,
    checkpoints: Checkpoints | None = None,
) -> FitResult:
    """Train an algorithm as the config asks; warn if steps had to be shortened.

    Args:
        algorithm: what is trained.
        config: of the run.
        key: for everything random.
        report: called after every few iterations.
        checkpoints: where to go on from and what to keep; None keeps nothing.
    """
    result = _train(algorithm, config, key, report, checkpoints)
    if config.inference.name == "eks" and ran_away(result):
        return _train_damped(algorithm, config, key, report, result)
    if config.training.optimiser == "none" and algorithm.exact_in_one and not result.trouble:
        result = result._replace(converged=True)  # there is nothing left to change
    if result.shortened:
        count = "1 step" if result.shortened == 1 else f"{result.shortened} steps"
        warnings.warn(
            f"{count} led to a non-finite objective and had to be shortened; "
            "a smaller training.learning_rate or inference.step_size may help",
            PhyssWarning,
            stacklevel=2,
        )
    return result


def _train_damped(
    algorithm: Algorithm, config: RunConfig, key: Array, report: Report, first: FitResult
) -> FitResult:
    """Repeat smoothing passes that ran away, with shorter and shorter steps.

    Checkpoints are of no use here: whoever goes on comes by the passes that ran away again.
    """
    result, tried = first, 0
    for tried, damped in enumerate(dampened(config), start=1):
        result = _train(build_algorithm(algorithm.model, damped, key), damped, key, report, None)
        if not ran_away(result):
            warnings.warn(
                "the smoothing passes ran away from the solution and were repeated with "
                f"inference.damping={damped.inference.damping:g}",
                PhyssWarning,
                stacklevel=3,
            )
            return result._replace(shortened=result.shortened + tried)
    trouble = result.trouble or (
        f"the smoothing passes run away from the solution even with inference.damping="
        f"{DAMPINGS[-1]:g}; try inference=cvi, a larger noise or more collocation points"
    )
    return result._replace(shortened=result.shortened + tried, trouble=trouble, converged=False)


def _train(
    algorithm: Algorithm,
    config: RunConfig,
    key: Array,
    report: Report,
    checkpoints: Checkpoints | None,
) -> FitResult:
    training, step = config.training, config.inference.step_size
    settling = _settling(algorithm, config)
    if training.optimiser == "lbfgs":
        from physs_runner.training.quasi_newton import fit_quasi_newton

        return fit_quasi_newton(
            algorithm,
            training,
            step_size=step,
            settling=settling,
            key=key,
            report=report,
            checkpoints=checkpoints,
        )
    return fit(
        algorithm,
        training,
        *_plans(algorithm, config),
        stopping=_stopping(config),
        key=key,
        report=report,
        checkpoints=checkpoints,
    )


def train_batched(
    members: Sequence[Member],
    config: RunConfig,
    report: MemberReport,
    checkpoints: Checkpoints | None = None,
) -> list[FitResult | NumericalError]:
    """Train several problems of one kind as one program; L-BFGS cannot."""
    results = fit_batched(
        members,
        config.training,
        *_plans(members[0].algorithm, config),
        stopping=_stopping(config),
        report=report,
        devices=config.device.count,
        checkpoints=checkpoints,
    )
    return [_told(result) if config.inference.name == "eks" else result for result in results]


def _told(result: FitResult | NumericalError) -> FitResult | NumericalError:
    """Say of smoothing passes that ran away among others what would help."""
    if isinstance(result, NumericalError) or result.trouble or not ran_away(result):
        return result
    trouble = "the smoothing passes ran away from the solution; try inference.damping=0.5"
    return result._replace(trouble=trouble, converged=False)


def _plans(algorithm: Algorithm, config: RunConfig) -> tuple[Plan, Plan]:
    """Lay out training, and how the posterior settles after it."""
    step = config.inference.step_size
    held = config.training.optimiser == "none"
    plan = _fixed(algorithm, config) if held else training_plan(config.training, step)
    return plan, closing_plan(_settling(algorithm, config), step)


def _fixed(algorithm: Algorithm, config: RunConfig) -> Plan:
    """Lay out inference with every hyperparameter held."""
    inference = config.inference
    if algorithm.exact_in_one:
        return fixed_plan(1, 1.0)
    if inference.name == "eks":  # the first pass is the algorithm's start
        return fixed_plan(inference.iterations - 1, 1 - inference.damping)
    return fixed_plan(config.training.iterations, inference.step_size)


def _stopping(config: RunConfig) -> Stopping:
    """Say when nothing changes any more; smoothing passes may stop by their sites too."""
    stopping, inference = config.training.early_stopping, config.inference
    smoothing = config.training.optimiser == "none" and inference.name == "eks"
    return Stopping(
        stopping.tolerance,
        stopping.patience,
        inference.tolerance if smoothing else None,
        config.training.max_shortened,
    )


def _settling(algorithm: Algorithm, config: RunConfig) -> int:
    """Count the steps after the last change of a hyperparameter."""
    if config.training.optimiser == "none" or not algorithm.iterates:
        return 0
    if config.approximation.minibatch is not None:
        return 0
    return 1 if algorithm.exact_in_one else SETTLING_STEPS

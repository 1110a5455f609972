"""Choices that contradict each other, found before anything is built or compiled."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from physs_runner.config.records import suggest
from physs_runner.config.schema import RunConfig, SpaceKernelConfig, TimeKernelConfig
from physs_runner.config.smoothness import check_smoothness
from physs_runner.errors import ConfigError

DENSE = ("exact", "dense_vi")  # inference that needs no Markov structure in time


def check_run(config: RunConfig) -> None:
    """Raise a ConfigError for the first contradiction between sections.

    A physics that takes its coordinates or latents from the data is checked again once
    it is bound to them.
    """
    for check in CHECKS:
        check(config)
    source = config.physics.source
    if source.get("coordinates") is not None and source.get("latents") is not None:
        for check in CHECKS_OF_NAMES:
            check(config)


def _check_names(config: RunConfig) -> None:
    physics = config.physics
    coordinates = (physics.time, *physics.space)
    _known("kernel.time.latents", config.kernel.time.latents, physics.latents, "latent")
    _known("kernel.space.latents", config.kernel.space.latents, physics.latents, "latent")
    _known("noise.per_output", config.noise.per_output, physics.outputs, "output")
    _known("prediction.grid", config.prediction.grid or (), coordinates, "coordinate")
    for key, kernel in _space_kernels(config.kernel.space, "kernel.space"):
        _known(f"{key}.dims", kernel.dims or (), physics.space, "space coordinate")
        if isinstance(kernel.lengthscale, dict):
            _known(f"{key}.lengthscale", kernel.lengthscale, physics.space, "space coordinate")
            dims = kernel.dims or physics.space
            missing = [name for name in dims if name not in kernel.lengthscale]
            if missing:
                raise ConfigError(f"{key}.lengthscale", f"has no value for {', '.join(missing)}")


def _known(key: str, names: Iterable[str], known: Iterable[str], what: str) -> None:
    known = tuple(known)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"{key}.{name}", f"the physics has no such {what}; " + suggest(name, known)
            )


def _check_kernels(config: RunConfig) -> None:
    for key, kernel in _time_kernels(config.kernel.time, "kernel.time"):
        _check_parts(key, kernel)
        start = kernel.initial_variance
        if kernel.name == "iwp" and start is not None and len(start) != kernel.order + 1:
            raise ConfigError(
                f"{key}.initial_variance",
                f"needs {kernel.order + 1} entries, one per derivative 0 to {kernel.order}, "
                f"got {len(start)}",
            )
        if kernel.name == "rbf" and config.inference.name not in DENSE:
            raise ConfigError(
                f"{key}.name",
                f"rbf has no finite state, so inference {config.inference.name} cannot use it; "
                "use kernel/time=matern72, or inference=exact or inference=dense_vi",
            )
        if kernel.name == "product" and any(part.name == "iwp" for part in kernel.parts):
            raise ConfigError(
                f"{key}.parts",
                "a product needs stationary members, but one is an integrated Wiener process; "
                "use a sum, or a Matern kernel in its place",
            )
    for key, kernel in _space_kernels(config.kernel.space, "kernel.space"):
        _check_parts(key, kernel)


def _check_parts(key: str, kernel: Any) -> None:
    composite = kernel.name in ("sum", "product")
    if composite and len(kernel.parts) < 2:
        raise ConfigError(
            f"{key}.parts", f"a {kernel.name} needs at least 2 kernels, got {len(kernel.parts)}"
        )
    if kernel.parts and not composite:
        raise ConfigError(
            f"{key}.parts", f"only a sum or product has parts, but {key}.name is {kernel.name}"
        )


def _check_space(config: RunConfig) -> None:
    physics, space = config.physics, config.kernel.space
    if physics.space and space.name == "none":
        raise ConfigError(
            "kernel.space.name",
            f"the physics has the space coordinates {', '.join(physics.space)}, which need a "
            "kernel; use kernel/space=rbf or kernel/space=matern52",
        )
    if not physics.space and space.name != "none":
        raise ConfigError(
            "kernel.space.name",
            f"the physics has no space coordinates, so there is nothing for {space.name} to act "
            "on; use kernel/space=none",
        )
    for key, part in _space_kernels(space, "kernel.space"):
        if part is not space and part.name == "none":
            raise ConfigError(f"{key}.name", "none cannot be part of another kernel")


def _check_inducing(config: RunConfig) -> None:
    inducing, space = config.approximation.inducing, config.physics.space
    key = "approximation.inducing"
    if isinstance(inducing.count, dict):
        _known(f"{key}.count", inducing.count, space, "space coordinate")
    if config.approximation.features != "inducing" or not space:
        return
    if inducing.method == "given" and not inducing.points:
        raise ConfigError(f"{key}.points", "must list the sites when method is given")
    if isinstance(inducing.count, dict) and inducing.method != "grid":
        raise ConfigError(f"{key}.count", f"must be one number for method {inducing.method}")
    for index, row in enumerate(inducing.points or ()):
        if len(row) != len(space):
            raise ConfigError(
                f"{key}.points[{index}]",
                f"must have one entry for each of {', '.join(space)}, got {len(row)}",
            )


def _check_inference(config: RunConfig) -> None:
    inference, approximation = config.inference, config.approximation
    if inference.name == "exact":
        _check_exact(config)
    if approximation.minibatch is not None and inference.name != "cvi":
        raise ConfigError(
            "approximation.minibatch",
            f"only inference=cvi visits a part of the sites, but inference is {inference.name}; "
            "use inference=cvi or approximation.minibatch=null",
        )
    if inference.name in DENSE and approximation.features == "inducing":
        raise ConfigError(
            "approximation.features",
            f"inference {inference.name} has no spatial features; use approximation=full"
            + (" and inference.inducing=NUMBER" if inference.name == "dense_vi" else ""),
        )
    if inference.gradient == "autodiff" and inference.chain.form == "square_root":
        raise ConfigError(
            "inference.gradient",
            "the square-root form is not differentiated through; use inference.gradient=identity "
            "or inference.chain.form=covariance",
        )
    if inference.inducing is not None and inference.name != "dense_vi":
        raise ConfigError(
            "inference.inducing",
            f"belongs to dense_vi, but inference is {inference.name}; use approximation=sparse",
        )


def _check_exact(config: RunConfig) -> None:
    physics = config.physics
    if config.approximation.posterior == "mean_field" and len(physics.latents) > 1:
        raise ConfigError(
            "approximation.posterior",
            "exact inference keeps all correlations; use approximation.posterior=full or "
            "inference=cvi",
        )
    for equation in physics.equations:
        where = equation.label
        if equation.likelihood == "probit":
            raise ConfigError(
                "inference.name",
                f"exact inference needs Gaussian terms, but {where} is an inequality; "
                "use inference=cvi",
            )
        for expression in equation.expressions:
            if not expression.linear:
                raise ConfigError(
                    "inference.name",
                    f"exact inference needs linear equations, but {where} is nonlinear "
                    f"({expression.text}); use inference=cvi or inference=eks",
                )
    if not physics.linear_gaussian:
        raise ConfigError(
            "inference.name",
            "exact inference cannot learn a parameter with a prior that multiplies a latent "
            f"({', '.join(physics.random)}); use inference=cvi",
        )


def _check_residual_covariance(config: RunConfig) -> None:
    approximation = config.approximation
    leaves_residual = approximation.features == "inducing" or approximation.derivatives == "value"
    diffuse = any(
        kernel.name == "iwp" for _, kernel in _time_kernels(config.kernel.time, "kernel.time")
    )
    if (
        config.physics.space
        and diffuse
        and leaves_residual
        and config.inference.name not in DENSE
        and approximation.residual_covariance == "add"
    ):
        raise ConfigError(
            "approximation.residual_covariance",
            "the variance of an integrated Wiener process grows without bound, so what the "
            "spatial features leave out cannot be added; "
            "use approximation.residual_covariance=neglect",
        )


def _check_tracking(config: RunConfig) -> None:
    tracking = config.tracking
    if tracking.name == "server" and not (tracking.uri or os.environ.get("MLFLOW_TRACKING_URI")):
        raise ConfigError(
            "tracking.uri",
            "must name the server, or the environment variable MLFLOW_TRACKING_URI must",
        )


def _check_batch(config: RunConfig) -> None:
    batch = config.batch
    key = "batch.seeds" if batch.seeds > 1 else "batch.folds"
    if batch.seeds * batch.folds == 1:
        if config.device.count > 1:
            raise ConfigError(
                "device.count",
                "one model runs on one device; several are for several seeds or folds: add "
                f"batch.seeds={config.device.count}",
            )
        return
    if config.inference.name in DENSE:
        raise ConfigError(
            key,
            f"inference {config.inference.name} runs one problem at a time; use inference=cvi or "
            "inference=eks",
        )
    if config.training.optimiser == "lbfgs":
        raise ConfigError(
            key, "training=lbfgs searches one problem's lines at a time; use training=adam"
        )
    if batch.folds > 1 and not hasattr(config.dataset, "split"):
        raise ConfigError(
            "batch.folds", f"dataset {config.dataset.name} has no split into folds; use batch.seeds"
        )


def _time_kernels(kernel: TimeKernelConfig, key: str) -> Iterator[tuple[str, TimeKernelConfig]]:
    yield key, kernel
    for index, part in enumerate(kernel.parts):
        yield from _time_kernels(part, f"{key}.parts[{index}]")
    for name, override in kernel.latents.items():
        yield from _time_kernels(override, f"{key}.latents.{name}")


def _space_kernels(kernel: SpaceKernelConfig, key: str) -> Iterator[tuple[str, SpaceKernelConfig]]:
    yield key, kernel
    for index, part in enumerate(kernel.parts):
        yield from _space_kernels(part, f"{key}.parts[{index}]")
    for name, override in kernel.latents.items():
        yield from _space_kernels(override, f"{key}.latents.{name}")


CHECKS = (
    _check_kernels,
    _check_inference,
    _check_residual_covariance,
    _check_tracking,
    _check_batch,
)
CHECKS_OF_NAMES = (_check_names, _check_space, _check_inducing, check_smoothness)

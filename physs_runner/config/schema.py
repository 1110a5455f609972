"""Every section of a run's configuration as a typed, frozen record.

The YAML groups under ``conf/`` fill these records; ``config.load`` checks keys,
types and ranges against them. A field's ``metadata`` states its range
(``minimum``, ``above``, ``maximum``, ``below``) or its ``choices``; for a list or a
mapping they hold for every member.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _number(default: float, **limits: float) -> Any:
    return field(default=default, metadata=limits)


def _choice(default: str, *choices: str) -> Any:
    return field(default=default, metadata={"choices": choices})


def _names(default: tuple[str, ...], *choices: str) -> Any:
    return field(default_factory=lambda: list(default), metadata={"choices": choices})


MATERN_SMOOTHNESS = (0.5, 1.5, 2.5, 3.5)  # half-integers: the Markov members of the family


@dataclass(frozen=True)
class DeviceConfig:
    """Where arrays live: ``auto`` takes a GPU when there is one."""

    kind: str = _choice("auto", "auto", "cpu", "gpu")
    count: int = _number(1, minimum=1)


@dataclass(frozen=True)
class BatchConfig:
    """How many runs one compiled program makes side by side."""

    seeds: int = _number(1, minimum=1)  # from the run's seed upwards
    folds: int = _number(1, minimum=1)  # of the data, each held out once


@dataclass(frozen=True)
class TimeKernelConfig:
    """A Markov kernel over time; ``parts`` are the members of a sum or product."""

    name: str = _choice("matern", "matern", "iwp", "periodic", "constant", "rbf", "sum", "product")
    smoothness: float = field(default=3.5, metadata={"choices": MATERN_SMOOTHNESS})
    order: int = _number(1, minimum=0)  # integrated Wiener process: times integrated
    lengthscale: float = _number(1.0, above=0)  # in units of the time coordinate
    variance: float = _number(1.0, above=0)  # of the latent; diffusion for iwp
    period: float = _number(1.0, above=0)  # periodic only, in units of time
    harmonics: int = _number(6, minimum=1)  # periodic only: terms of its series
    # iwp only: start variance of each derivative
    initial_variance: list[float] | None = field(default=None, metadata={"above": 0})
    trainable: list[str] = _names(("lengthscale", "variance"), "lengthscale", "variance", "period")
    parts: list[TimeKernelConfig] = field(default_factory=list)
    # overrides for single latents; complete records once loaded
    latents: dict[str, TimeKernelConfig] = field(default_factory=dict, metadata={"overrides": True})


@dataclass(frozen=True)
class SpaceKernelConfig:
    """A kernel over space; a leaf acts on ``dims`` (all of them by default)."""

    name: str = _choice("none", "none", "rbf", "matern", "periodic", "sum", "product")
    smoothness: float = field(default=2.5, metadata={"choices": MATERN_SMOOTHNESS})
    lengthscale: float | dict[str, float] = _number(1.0, above=0)  # or {x: 0.1, y: 1.0}
    period: float = _number(1.0, above=0)
    weight: float = _number(1.0, above=0)  # relative variance of a member of a sum
    dims: list[str] | None = None
    trainable: list[str] = _names(("lengthscale",), "lengthscale", "period", "weight")
    parts: list[SpaceKernelConfig] = field(default_factory=list)
    latents: dict[str, SpaceKernelConfig] = field(
        default_factory=dict, metadata={"overrides": True}
    )


@dataclass(frozen=True)
class KernelConfig:
    """The separable prior: one kernel over time, one over space."""

    time: TimeKernelConfig = field(default_factory=TimeKernelConfig)
    space: SpaceKernelConfig = field(default_factory=SpaceKernelConfig)


@dataclass(frozen=True)
class InducingConfig:
    """Where the spatial features sit when they do not sit on the data."""

    method: str = _choice("grid", "grid", "kmeans", "given")
    count: int | dict[str, int] = _number(20, minimum=1)  # in all, or a grid's {x: 10, y: 10}
    points: list[list[float]] | None = None  # given: one row of coordinates per site
    trainable: bool = False


@dataclass(frozen=True)
class ApproximationConfig:
    """Which spatial features the state carries, and how sites are visited."""

    name: str = "full"
    features: str = _choice("sites", "sites", "inducing")
    derivatives: str = _choice("all", "all", "value")
    inducing: InducingConfig = field(default_factory=InducingConfig)
    minibatch: int | None = field(default=None, metadata={"minimum": 1})
    posterior: str = _choice("full", "full", "mean_field")
    residual_covariance: str = _choice("add", "add", "neglect")
    max_jitter: float = _number(1.0e-4, above=0)


@dataclass(frozen=True)
class ChainConfig:
    """How filters and smoothers run along time."""

    scan: str = _choice("auto", "auto", "sequential", "parallel")
    form: str = _choice("covariance", "covariance", "square_root")
    update: str = _choice("auto", "auto", "observation", "information")


@dataclass(frozen=True)
class InferenceConfig:
    """The algorithm that turns a model into a posterior."""

    name: str = _choice("cvi", "cvi", "eks", "exact", "dense_vi")
    rule: str = _choice("linearise", "linearise", "cubature", "gauss_hermite", "samples")
    points: int = _number(5, minimum=1)  # per dimension for gauss_hermite, in all for samples
    step_size: float = _number(1.0, above=0, maximum=1)  # of the natural gradient
    start: str = _choice("auto", "auto", "prior", "eks")
    gradient: str = _choice("identity", "identity", "autodiff")
    iterations: int = _number(1, minimum=1)  # eks: smoothing passes
    damping: float = _number(0.0, minimum=0, maximum=1)  # eks: share kept of the last pass
    tolerance: float = _number(1.0e-8, minimum=0)  # eks: stop when the mean moves less
    whiten: bool = True  # dense_vi
    inducing: int | None = field(default=None, metadata={"minimum": 1})  # dense_vi
    chain: ChainConfig = field(default_factory=ChainConfig)


@dataclass(frozen=True)
class NoiseConfig:
    """Variance of the Gaussian noise on the data, in squared units of the output."""

    variance: float = _number(0.01, above=0)
    trainable: bool = True
    per_output: dict[str, float] = field(default_factory=dict, metadata={"above": 0})


@dataclass(frozen=True)
class WarmupConfig:
    """Natural-gradient steps with hyperparameters held, before training."""

    iterations: int = _number(0, minimum=0)
    step_size: float = _number(0.1, above=0, maximum=1)


@dataclass(frozen=True)
class EarlyStoppingConfig:
    """Stop when the objective's relative change stays below ``tolerance``."""

    tolerance: float = _number(1.0e-7, minimum=0)  # 0 switches it off
    patience: int = _number(50, minimum=1)


@dataclass(frozen=True)
class CheckpointConfig:
    """When training is written down, so that a killed run can go on."""

    seconds: float = _number(60.0, minimum=0)  # between two checkpoints, or more if they are slow
    iterations: int | None = field(default=None, metadata={"minimum": 1})  # every so many, too
    keep: int = _number(3, minimum=1)  # newest ones kept while the run lasts


@dataclass(frozen=True)
class TrainingConfig:
    """How hyperparameters are learned."""

    optimiser: str = _choice("adam", "adam", "lbfgs", "none")
    iterations: int = _number(1000, minimum=0)
    learning_rate: float = _number(0.01, above=0)
    schedule: str = _choice("constant", "constant", "cosine", "exponential")
    hold_noise: float = _number(0.4, minimum=0, maximum=1)  # share of iterations
    inner_steps: int = _number(1, minimum=1)  # natural-gradient steps per iteration
    warmup: WarmupConfig = field(default_factory=WarmupConfig)
    early_stopping: EarlyStoppingConfig = field(default_factory=EarlyStoppingConfig)
    max_shortened: int = _number(20, minimum=0)  # consecutive shortened steps before giving up
    report_every: int = _number(25, minimum=1)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)


@dataclass(frozen=True)
class PredictionConfig:
    """What is predicted besides the test points."""

    # points per coordinate; null: 200 (1-D) or 100 x 100
    grid: dict[str, int] | None = field(default=None, metadata={"minimum": 1})
    derivatives: list[str] = field(default_factory=list)  # such as u_x
    quantiles: list[float] = field(
        default_factory=lambda: [0.025, 0.5, 0.975], metadata={"above": 0, "below": 1}
    )
    samples: int = _number(0, minimum=0)
    chunk: int = _number(20000, minimum=1)  # points at a time


@dataclass(frozen=True)
class FiguresConfig:
    """Which figures a run draws; ``png`` always, others on request."""

    formats: list[str] = _names(("png",), "png", "pdf", "svg")


@dataclass(frozen=True)
class TrackingConfig:
    """Where a finished run is logged."""

    name: str = _choice("local", "local", "server", "none")
    uri: str | None = None  # null: the embedded store, or MLFLOW_TRACKING_URI for server
    experiment: str | None = None  # null: the run's name
    system_metrics: bool = False
    log_model: bool = True


@dataclass(frozen=True)
class RunConfig:
    """One experiment, complete."""

    dataset: Any  # the record that datasets.registry holds for dataset.name
    physics: Any  # physs_runner.physics.spec.Physics
    kernel: KernelConfig
    noise: NoiseConfig
    approximation: ApproximationConfig
    inference: InferenceConfig
    training: TrainingConfig
    prediction: PredictionConfig
    figures: FiguresConfig
    tracking: TrackingConfig
    device: DeviceConfig
    batch: BatchConfig
    name: str = "pendulum"
    seed: int = _number(0, minimum=0)
    dtype: str = _choice("float64", "float64", "float32")
    resume: str = _choice("never", "never", "auto")  # auto: go on with an unfinished run


@dataclass(frozen=True)
class SweepConfig:
    """Which runs a sweep makes; ``params`` are swept keys in Hydra's override syntax."""

    method: str = _choice("grid", "grid", "tpe", "random", "nsga2")
    params: dict[str, Any] = field(default_factory=dict)  # such as {seed: "range(5)"}
    metrics: list[str] = field(default_factory=lambda: ["test/nlpd"])  # what counts as good
    directions: list[str] = _names(("minimize",), "minimize", "maximize")
    trials: int = _number(20, minimum=1)  # runs of a search; a grid makes all of its own
    startup: int = _number(10, minimum=0)  # random trials before a search learns from them
    pruner: str = _choice("none", "none", "median", "halving")
    study: str = "physs"  # a study of that name is gone on with
    storage: str | None = None  # database of the study; null: study.db in the sweep's folder
    seed: int = _number(0, minimum=0)  # of the search, not of the runs


@dataclass(frozen=True)
class LauncherConfig:
    """Where the jobs of a sweep run."""

    name: str = _choice("basic", "basic", "joblib", "submitit", "ray")
    workers: int | None = field(default=None, metadata={"minimum": 1})  # jobs at a time
    threads: int | None = field(default=None, metadata={"minimum": 1})  # of each job
    address: str | None = None  # ray: of a running cluster; null starts one here
    cluster: str = "local"  # submitit: local or slurm
    gpus: float = _number(0, minimum=0)  # ray: GPUs of each job
    options: dict[str, Any] = field(default_factory=dict)  # submitit's own parameters

"""Choices that cannot go together end in a sentence before anything is built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from physs_runner.config.schema import RunConfig

Complaint = Callable[..., str]

CONTRADICTIONS = [
    (["kernel/time=matern32"], "conf/kernel/time/matern32.yaml, kernel.time: Matern-3/2 has time derivatives up to order 1, but residual pendulum needs theta_tt of order 2 in t; use kernel/time=matern52 or kernel/time=iwp2"),
    (["kernel/time=matern12"], "conf/kernel/time/matern12.yaml, kernel.time: Matern-1/2 has time derivatives up to order 0"),
    (["kernel/time=iwp"], "conf/kernel/time/iwp.yaml, kernel.time: the once integrated Wiener process has time derivatives up to order 1"),
    (["prediction.derivatives=[theta_tttt]"], "conf/kernel/time/matern72.yaml, kernel.time: Matern-7/2 has time derivatives up to order 3, but prediction of theta_tttt needs theta_tttt of order 4 in t; use kernel/time=iwp kernel.time.order=4"),
    (["kernel/time=quasi_periodic", "kernel.time.parts=[{name: periodic}, {name: matern, smoothness: 0.5}]"], "conf/kernel/time/quasi_periodic.yaml, kernel.time: the product kernel has time derivatives up to order 0, but residual pendulum needs theta_tt of order 2 in t"),
    (["+kernel.time.latents.theta={smoothness: 1.5}"], "command line, kernel.time.latents.theta: Matern-3/2 has time derivatives up to order 1"),
    (["physics=heat_1d", "kernel/space=matern32"], "conf/kernel/space/matern32.yaml, kernel.space: Matern-3/2 has space derivatives up to order 1, but residual heat needs u_xx of order 2 in x; use kernel/space=matern52 or kernel/space=rbf"),
    (["physics=heat_1d"], "conf/kernel/space/none.yaml, kernel.space.name: the physics has the space coordinates x"),
    (["kernel/space=rbf"], "conf/kernel/space/rbf.yaml, kernel.space.name: the physics has no space coordinates"),
    (["inference=exact"], "conf/inference/exact.yaml, inference.name: exact inference needs linear equations, but residual pendulum is nonlinear"),
    (["physics=monotone", "inference=exact"], "conf/inference/exact.yaml, inference.name: exact inference needs Gaussian terms"),
    (["kernel/time=rbf"], "conf/kernel/time/rbf.yaml, kernel.time.name: rbf has no finite state, so inference cvi cannot use it"),
    (["inference=eks", "approximation.minibatch=4"], "command line, approximation.minibatch: only inference=cvi visits a part of the sites"),
    (["inference=dense_vi", "approximation=sparse"], "conf/approximation/sparse.yaml, approximation.features: inference dense_vi has no spatial features"),
    (["inference.inducing=4"], "command line, inference.inducing: belongs to dense_vi"),
    (["physics=heat_1d", "kernel/space=matern52", "kernel/time=iwp", "approximation=sparse"], "conf/approximation/sparse.yaml, approximation.residual_covariance: the variance of an integrated Wiener process"),
    (["kernel.time.name=sum"], "conf/kernel/time/matern72.yaml, kernel.time.parts: a sum needs at least 2 kernels, got 0"),
    (["kernel/time=quasi_periodic", "kernel.time.name=matern"], "conf/kernel/time/quasi_periodic.yaml, kernel.time.parts: only a sum or product has parts"),
    (["kernel/time=iwp2", "kernel.time.initial_variance=[1.0]"], "command line, kernel.time.initial_variance: needs 3 entries, one per derivative 0 to 2, got 1"),
    (["noise.per_output={thet: 0.1}"], "command line, noise.per_output.thet: the physics has no such output; did you mean theta?"),
    (["prediction.grid={x: 4}"], "command line, prediction.grid.x: the physics has no such coordinate"),
    (["physics=heat_2d", "kernel/space=rbf", "kernel.space.lengthscale={x: 1.0}"], "command line, kernel.space.lengthscale: has no value for y"),
    (["physics=heat_1d", "kernel/space=rbf", "approximation=sparse", "approximation.inducing.method=given"], "conf/approximation/sparse.yaml, approximation.inducing.points: must list the sites"),
    (["physics=heat_1d", "kernel/space=rbf", "approximation=sparse", "approximation.inducing.points=[[0.0,1.0]]"], "command line, approximation.inducing.points[0]: must have one entry for each of x, got 2"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "expected"), CONTRADICTIONS, ids=lambda value: str(value)[:40]
)
def test_contradiction_is_explained(
    overrides: list[str], expected: str, complaint: Complaint
) -> None:
    """The sentence names the file or command line, the key, the reason and a remedy."""
    assert complaint(*overrides).startswith(expected)


def test_mixed_derivatives_need_each_coordinate_by_itself(
    load_run: Callable[..., RunConfig], complaint: Complaint
) -> None:
    """Kernels are products over dimensions: Matern-3/2 has phi_xy, but not phi_xx."""
    rough = ("physics=helmholtz", "dataset=drifters_synthetic", "kernel/space=matern32")
    load_run(*rough, "prediction.derivatives=[phi_xy]")
    assert "prediction of phi_xx needs phi_xx of order 2 in x" in complaint(
        *rough, "prediction.derivatives=[phi_xx]"
    )


def test_server_without_address(complaint: Complaint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracking on a server needs an address from the config or the environment."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert complaint("tracking=server").startswith(
        "conf/tracking/server.yaml, tracking.uri: must name the server"
    )


def test_neglected_residual_goes_with_a_wiener_process(load_run: Callable[..., RunConfig]) -> None:
    """The remedy that the sentence names is accepted."""
    config = load_run(
        "physics=heat_1d",
        "kernel/space=matern52",
        "kernel/time=iwp",
        "approximation=sparse",
        "approximation.residual_covariance=neglect",
    )
    assert config.approximation.residual_covariance == "neglect"


def test_override_for_a_latent_keeps_the_rest(load_run: Callable[..., RunConfig]) -> None:
    """A latent's override is a complete record: given values over the common ones."""
    config = load_run("kernel.time.variance=3", "+kernel.time.latents.theta.lengthscale=2")
    own = config.kernel.time.latents["theta"]
    assert (own.lengthscale, own.variance, own.smoothness) == (2.0, 3.0, 3.5)
    assert config.kernel.time.lengthscale == 1.0

"""Deciding which store a run belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from physs_runner.errors import ConfigError
from physs_runner.tracking.record import Destination


def outputs_root(given: Path | str | None = None) -> Path:
    """Return the folder of all outputs: as given, from PHYSS_OUTPUTS, or ./outputs."""
    return Path(given or os.environ.get("PHYSS_OUTPUTS") or "outputs").resolve()


def embedded(root: Path | str | None = None) -> Destination:
    """Return the embedded store below an outputs folder."""
    folder = outputs_root(root) / "mlflow"
    return Destination("local", f"sqlite:///{folder / 'mlflow.db'}", str(folder / "artifacts"))


def choose(
    kind: str,
    uri: str | None,
    *,
    outputs: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Destination:
    """Return where a run's copy belongs.

    Args:
        kind: ``local``, ``server`` or ``none``.
        uri: address of the server; for ``local`` a ``sqlite:`` address or a folder.
        outputs: folder of all outputs, for the embedded store.
        environment: variables to look into, by default those of the process.
    """
    environment = os.environ if environment is None else environment
    if kind == "none":
        return Destination("none")
    if kind == "local":
        return _local(uri, outputs)
    address = uri or environment.get("MLFLOW_TRACKING_URI")
    if not address:
        raise ConfigError(
            "tracking.uri",
            "no server is named; set it, or the variable MLFLOW_TRACKING_URI, to an address "
            "such as http://127.0.0.1:5000",
        )
    return Destination("server", _checked(address))


def of_uri(uri: str | None, outputs: Path | str | None = None) -> Destination:
    """Return the store at an address, or the embedded one where none is given."""
    if uri is None or uri.startswith("sqlite:"):
        return _local(uri, outputs)
    return Destination("server", _checked(uri))


def _local(uri: str | None, outputs: Path | str | None) -> Destination:
    if uri is None:
        return embedded(outputs)
    if uri.startswith("sqlite:///"):
        path = Path(uri.removeprefix("sqlite:///")).resolve()
        return Destination("local", f"sqlite:///{path}", str(path.parent / "artifacts"))
    if "://" in uri:
        raise ConfigError(
            "tracking.uri",
            f"{uri} is not an embedded store; use tracking=server for a server, or give a folder",
        )
    folder = Path(uri).resolve()
    return Destination("local", f"sqlite:///{folder / 'mlflow.db'}", str(folder / "artifacts"))


def _checked(address: str) -> str:
    """Refuse addresses that carry a password: they would be copied into every run directory."""
    parts = urlsplit(address)
    if parts.password is not None:
        raise ConfigError(
            "tracking.uri",
            "an address with a password would be written into every run; use the variables "
            "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead",
        )
    if not parts.scheme:
        raise ConfigError(
            "tracking.uri",
            f"{address!r} is not an address; write it like http://127.0.0.1:5000",
        )
    return address.rstrip("/")

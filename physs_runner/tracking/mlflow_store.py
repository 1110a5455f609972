"""MLflow as a store of runs; the only file that imports MLflow.

Only the client interface is used: it keeps no active run, so an exported
``MLFLOW_RUN_ID`` can redirect nothing.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from physs_runner.errors import PhyssError
from physs_runner.tracking.base import Point, RunRow, StoreError, batches
from physs_runner.tracking.embedded import has_known_tables, insert_points
from physs_runner.tracking.files import lock
from physs_runner.tracking.record import DatasetNote, Destination, ModelNote, RunInfo

UID_TAG = "physs.uid"
_KEY_LENGTH, _PARAM_LENGTH, _TAG_LENGTH = 250, 500, 8000
_PARAMS_PER_BATCH = 100

# Makes the UI show runs and metrics instead of traces of language models.
_TRAINING = {"mlflow.experimentKind": "custom_model_development"}

# A dead server must cost seconds, not the minutes of MLflow's own patience; what is not sent
# now is sent by the next pass. Values that the user exported are respected.
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}


class MlflowStore:
    """Runs in an embedded SQLite store or on a tracking server."""

    def __init__(self, destination: Destination) -> None:
        self._where = destination
        self._experiments: dict[str, str] = {}
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._database: Path | None = None  # an embedded one whose tables we know
        with self._reported():
            if destination.kind == "local":
                path = Path(str(destination.uri).removeprefix("sqlite:///"))
                _create_embedded(path)
                self._database = path if has_known_tables(path) else None
            from mlflow import MlflowClient

            # An embedded store waits a minute for other writers instead of five seconds.
            patience = "?timeout=60" if destination.kind == "local" else ""
            self._client = MlflowClient(f"{destination.uri}{patience}")

    def create(self, info: RunInfo, start_ms: int, parent_id: str | None) -> str:
        """Return the id of the run with this uid, creating it where it is missing."""
        with self._reported():
            experiment = self._experiment(info.experiment)
            # The answer to an earlier creation may have been lost on its way.
            found = self._client.search_runs([experiment], f"tags.`{UID_TAG}` = '{info.uid}'")
            if found:
                return found[0].info.run_id
            tags = {UID_TAG: info.uid}
            if parent_id is not None:
                tags["mlflow.parentRunId"] = parent_id
            run = self._client.create_run(experiment, start_ms, tags, run_name=info.name)
            return run.info.run_id

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Set parameters; long values are cut, the whole of them is in config.yaml."""
        from mlflow.entities import Param

        items = [Param(_key(k), _cut(v, _PARAM_LENGTH)) for k, v in sorted(params.items())]
        with self._reported():
            for block in batches(items, _PARAMS_PER_BATCH):
                self._client.log_batch(run_id, params=block, synchronous=True)

    def log_points(self, run_id: str, points: Sequence[Point]) -> None:
        """Add metric values; the store keeps one of those equal in name, value, time and step."""
        from mlflow.entities import Metric

        named = [point._replace(name=_key(point.name)) for point in points]
        with self._reported():
            if self._database is not None:
                insert_points(self._database, run_id, named)
            else:
                self._client.log_batch(run_id, [Metric(*p) for p in named], synchronous=True)

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set or replace tags."""
        from mlflow.entities import RunTag

        items = [RunTag(_key(name), _cut(value, _TAG_LENGTH)) for name, value in tags.items()]
        with self._reported():
            for block in batches(items, _PARAMS_PER_BATCH):
                self._client.log_batch(run_id, tags=block, synchronous=True)

    def log_file(self, run_id: str, path: Path, folder: str) -> None:
        """Copy a file into a folder of the run's artifacts."""
        with self._reported():
            self._client.log_artifact(run_id, str(path), folder or None)

    def log_dataset(self, run_id: str, note: DatasetNote) -> None:
        """Name the data as an input of the run; MLflow keeps one per name and digest."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        columns = [{"name": name, "type": "double", "required": True} for name in note.columns]
        dataset = Dataset(
            name=note.name,
            digest=note.digest[:36],
            source_type="local",
            source=json.dumps({"uri": note.source}),
            schema=json.dumps({"mlflow_colspec": columns}),
            profile=json.dumps(dict(note.sizes)),
        )
        context = InputTag(key="mlflow.data.context", value="training")
        with self._reported():
            self._client.log_inputs(run_id, [DatasetInput(dataset, [context])])

    def log_model(self, run_id: str, directory: Path, note: ModelNote) -> str:
        """Log the model of a run directory and return its address."""
        from mlflow.entities import LoggedModelOutput

        with self._reported():
            run = self._client.get_run(run_id)
            model = self._client.create_logged_model(
                run.info.experiment_id,
                name="model",
                source_run_id=run_id,
                params=dict(run.data.params),
                model_type="state-space-gp",
            )
            with tempfile.TemporaryDirectory() as scratch:
                _save_model(Path(scratch) / "model", directory, note, run_id, model)
                self._client.log_model_artifacts(model.model_id, f"{scratch}/model")
            self._client.finalize_logged_model(model.model_id, "READY")
            self._client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
        return model.model_uri

    def set_status(self, run_id: str, status: str, end_ms: int | None) -> None:
        """Say how the run stands; RUNNING opens a finished one again."""
        with self._reported():
            if status == "RUNNING":
                self._client.update_run(run_id, status)
            else:
                self._client.set_terminated(run_id, status, end_ms)

    def rows(self, experiment: str | None, limit: int) -> list[RunRow]:
        """Return the newest runs of an experiment, or of all."""
        with self._reported():
            names = {
                e.experiment_id: e.name
                for e in self._client.search_experiments()
                if experiment in (None, e.name)
            }
            rows: list[RunRow] = []
            token: str | None = None
            while len(rows) < limit and names:
                page = self._client.search_runs(
                    list(names),
                    order_by=["attributes.start_time DESC"],
                    max_results=min(limit - len(rows), 1000),
                    page_token=token,
                )
                rows += [_row(run, names) for run in page]
                token = page.token
                if not token:
                    break
        return rows

    def experiments(self) -> list[str]:
        """Return the names of all experiments."""
        with self._reported():
            return [experiment.name for experiment in self._client.search_experiments()]

    def _experiment(self, name: str) -> str:
        """Return an experiment's id, creating it unless another process was faster."""
        from mlflow.exceptions import MlflowException

        if name not in self._experiments:
            found = self._client.get_experiment_by_name(name)
            if found is None:
                try:
                    self._client.create_experiment(name, self._artifacts(name), _TRAINING)
                except MlflowException as error:
                    if error.error_code != "RESOURCE_ALREADY_EXISTS":
                        raise
                found = self._client.get_experiment_by_name(name)
            if found is None or found.lifecycle_stage != "active":
                raise StoreError(
                    f"The experiment {name!r} was deleted in the store {self._where.uri}; "
                    "restore it there or set tracking.experiment to another name."
                )
            self._experiments[name] = found.experiment_id
        return self._experiments[name]

    def _artifacts(self, name: str) -> str | None:
        """Return where an experiment's files go: a server decides for itself."""
        if self._where.artifacts is None:
            return None
        return (Path(self._where.artifacts) / re.sub(r"[^\w.-]+", "_", name)).as_uri()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn whatever goes wrong inside into one sentence about this store."""
        try:
            yield
        except PhyssError:
            raise
        # MLflow, requests, SQLAlchemy, boto and the file system each raise their own kinds, and
        # none of them may end a run.
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise StoreError(f"The store at {self._where.uri} failed: {lines[0]}") from error


def _create_embedded(path: Path) -> None:
    """Create the database once, however many runs start together.

    It is made under another name and moved into place, so that a process killed during the
    migrations leaves nothing half made behind.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock(path.parent / ".create.lock"):
        if path.exists():
            return
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        unfinished = path.with_name(f".{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        artifacts = (path.parent / "artifacts").as_uri()
        store = SqlAlchemyStore(f"sqlite:///{unfinished}", artifacts)
        store.engine.dispose()
        os.replace(unfinished, path)


def _save_model(target: Path, directory: Path, note: ModelNote, run_id: str, logged: Any) -> None:
    """Write a model folder: our arrays and config, and the name of the code that reads them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing it warns about type hints of its own
        import mlflow.pyfunc
    import pandas
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, DataType, Schema

    from physs_runner.tracking import model as loader

    def schema(names: Sequence[str]) -> Any:
        return Schema([ColSpec(DataType.double, name) for name in names])

    with tempfile.TemporaryDirectory() as scratch:
        mlflow.pyfunc.save_model(
            str(target),
            loader_module=loader.__name__,
            data_path=str(loader.gather(directory, Path(scratch) / "run")),
            code_paths=[str(loader.source(Path(scratch)))],
            mlflow_model=Model(run_id=run_id, model_id=logged.model_id),
            signature=ModelSignature(schema(note.inputs), schema(loader.columns(note.outputs))),
            input_example=pandas.DataFrame(list(note.example), columns=list(note.inputs)),
            pip_requirements=loader.requirements(),
        )


def _row(run: Any, experiments: Mapping[str, str]) -> RunRow:
    return RunRow(
        run_id=run.info.run_id,
        name=run.info.run_name or "",
        experiment=experiments[run.info.experiment_id],
        status=run.info.status,
        start_ms=run.info.start_time,
        end_ms=run.info.end_time,
        params=dict(run.data.params),
        metrics=dict(run.data.metrics),
        tags={k: v for k, v in run.data.tags.items() if not k.startswith("mlflow.note")},
    )


@lru_cache(maxsize=10_000)
def _key(name: str) -> str:
    """Return a name that MLflow accepts."""
    return re.sub(r"[^\w.\-: /]", "_", name)[:_KEY_LENGTH]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."

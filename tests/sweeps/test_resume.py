"""Going on with a sweep: only what is missing runs."""

import json

from physs_runner.cli import main
from physs_runner.sweeps.jobs import Grid, needs_work
from physs_runner.tracking.record import Destination, RunInfo, RunRecord


def _record(directory, status: str) -> RunRecord:
    record = RunRecord(directory)
    directory.mkdir(parents=True)
    record.write_info(RunInfo("job", "test", {}, {}, Destination("none")))
    record.start()
    if status != "RUNNING":
        record.end(status)
    return record


def test_grid_leaves_out_what_is_finished(tmp_path):
    """Finished jobs and those at work are left alone; failed, killed and absent ones run."""
    for number, status in enumerate(["FINISHED", "FAILED", "KILLED", "RUNNING"]):
        _record(tmp_path / str(number), status)
    plan = Grid([(f"seed={k}",) for k in range(5)], tmp_path)
    left = []
    while (job := plan.ask()) is not None:
        left.append(job)
    assert left == [(1, ("seed=1",)), (2, ("seed=2",)), (4, ("seed=4",))]
    assert plan.total == 5


def test_job_of_a_dead_process_runs_again(tmp_path):
    """A job that says it runs, but whose process is gone, is missing."""
    record = _record(tmp_path / "0", "RUNNING")
    status = json.loads((record.directory / "status.json").read_text())
    (record.directory / "status.json").write_text(json.dumps({**status, "pid": 2**22 + 1}))
    assert needs_work(record)


def test_resume_repeats_failed_jobs_only(tmp_path, monkeypatch, capsys):
    """A resumed sweep runs its failed jobs with the same overrides, and no finished one."""
    monkeypatch.chdir(tmp_path)
    arguments = ["sweep", "seed=0,1", "training.hold_noise=2", "hydra.sweep.dir=out"]
    assert main([*arguments, "tracking=none"]) == 1
    RunRecord(tmp_path / "out" / "1").end("FINISHED")
    capsys.readouterr()
    monkeypatch.chdir(tmp_path.parent)
    assert main(["resume", str(tmp_path / "out"), "launcher.threads=1"]) == 1
    printed = capsys.readouterr().out
    assert "job 0 failed" in printed
    assert "job 1" not in printed
    assert "1 of 2 jobs did not finish" in printed


def test_resume_refuses_what_is_no_sweep(tmp_path, capsys):
    """A folder without a sweep's note, and overrides that would change jobs, are refused."""
    assert main(["resume", str(tmp_path)]) == 1
    assert "is the folder of neither a run (no config.yaml) nor a sweep" in capsys.readouterr().err

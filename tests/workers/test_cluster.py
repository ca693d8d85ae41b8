"""A Dask cluster of this machine: the same results as here, nothing lost with a worker, plain words for the rest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from types import MappingProxyType

import pytest

from dask_cluster import dask_cluster, kill
from steelyard.errors import WorkerError
from steelyard.excitation import DesignSettings, design
from steelyard.study import StudySettings, montecarlo, study_to_json
from steelyard.workers import Shared, Workers, cluster, open_workers
from study.studies import scara
from workers import jobs
from workers.test_workers import interrupted, when_there

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'steelyard[cluster]'")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")


def shared() -> Shared[jobs.Opened]:
    return Shared(jobs.Opened, MappingProxyType({"scale": 2.0}))


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with dask_cluster(tmp_path_factory.mktemp("dask"), workers=2) as started:
        yield started


@pytest.mark.large
def test_a_study_on_a_cluster_gives_the_bytes_of_a_local_one(running, tmp_path):
    given, study = scara(), StudySettings(("wls", "gls"), seeds=6, noise_levels=(0.5, 1.0))
    far = montecarlo(given, study, tmp_path / "runs", scheduler=running.address)
    near = montecarlo(given, study)
    assert json.dumps(study_to_json(far)) == json.dumps(study_to_json(near))
    assert len(list((tmp_path / "runs").glob("*.npz"))) >= 4


def test_workers_of_a_cluster_open_shared_data_once(running):
    data = shared()
    with open_workers(running.address) as workers:
        found = [*workers.results(jobs.scaled, data, range(8)), *workers.results(jobs.scaled, data, [8])]
    assert [value for value, _, _ in found] == [2.0 * k for k in range(9)]
    assert {process for _, process, _ in found} <= {worker.pid for worker in running.workers}
    assert {times for _, _, times in found} == {1}


def test_a_task_that_raises_ends_the_run_with_its_own_error(running):
    with open_workers(running.address) as workers, pytest.raises(ZeroDivisionError, match="a defect"):
        list(workers.finished(jobs.failing, shared(), range(8)))


def test_an_interrupt_yields_what_tasks_under_way_have(running, tmp_path):
    with open_workers(running.address) as workers:
        found = interrupted(workers, [tmp_path / f"{k}" for k in range(20)])
    begun = {int(path.name) for path in tmp_path.iterdir()}
    assert 0 in found
    assert set(found) == begun
    assert len(begun) < 20


def test_workers_told_to_stop_still_answer_for_every_task(running, tmp_path):
    tasks = [tmp_path / f"{k}" for k in range(4)]
    with open_workers(running.address) as workers:
        thread = threading.Thread(target=lambda: (when_there(tasks[0]), workers.stopping.set()))
        thread.start()
        assert workers.results(jobs.until_stopped, shared(), tasks) == ["0", "1", "2", "3"]
        thread.join()


def test_another_version_of_steelyard_is_refused(running, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "0.0.9")
    with (
        pytest.raises(WorkerError, match=r"a worker has Steelyard .*, this command 0\.0\.9; install the same version"),
        open_workers(running.address),
    ):
        pass


def test_a_killed_worker_loses_nothing_and_a_lost_scheduler_is_said_in_one_line(tmp_path):
    with dask_cluster(tmp_path, workers=2) as lonely, open_workers(lonely.address) as workers:
        _kill_a_worker(lonely, workers, tmp_path)
        waiting = workers.finished(jobs.until_stopped, shared(), [tmp_path / "begun"])
        thread = threading.Thread(target=lambda: (when_there(tmp_path / "begun"), kill(lonely.scheduler)))
        thread.start()
        with pytest.raises(WorkerError, match=r"the scheduler at .* was lost; what was finished and saved is kept"):
            list(waiting)
        thread.join()


def _kill_a_worker(lonely, workers: Workers, folder) -> None:
    """Kill the worker that runs the task of a gate that is closed, and open the gate to the next."""
    gate, begun = folder / "gate", folder / "pids"
    begun.mkdir()
    finished = workers.finished(jobs.behind_gate, shared(), [(gate, begun, k) for k in range(6)])

    def kill_first() -> None:
        when_there(begun / "0")
        victim = int((begun / "0").read_text())
        kill(next(worker for worker in lonely.workers if worker.pid == victim))
        gate.touch()

    thread = threading.Thread(target=kill_first)
    thread.start()
    assert sorted(finished) == [(k, k) for k in range(6)]
    thread.join()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes certificates, is not installed")
def test_an_encrypted_cluster_is_used_with_certificates(tmp_path):
    from dask import config

    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    options = ["--protocol", "tls", "--tls-ca-file", certificate, "--tls-cert", certificate, "--tls-key", key]
    files = {"ca-file": certificate, "client.cert": certificate, "client.key": key}
    settings = {f"distributed.comm.tls.{name}": file for name, file in files.items()}
    with dask_cluster(tmp_path, 1, options) as safe, config.set(settings):
        assert safe.address.startswith("tls://")
        with open_workers(safe.address) as workers:
            assert workers.results(jobs.failing, shared(), [1, 2]) == [1, 2]


def test_a_scheduler_that_does_not_answer_is_said_in_one_line(monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT", 0.5)
    with (
        pytest.raises(WorkerError, match=r"no scheduler answers at 'tcp://127.0.0.1:9' within 0.5 s; start one with"),
        open_workers("tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:8786", "allowed: tcp://127.0.0.1:PORT or tls://HOST:PORT"),
        ("tcp://127.0.0.1", "allowed: tcp://127.0.0.1:PORT"),
        ("tcp://127.0.0.1:99999", "allowed: tcp://127.0.0.1:PORT"),
        ("tcp://[::1:5", "allowed: tcp://127.0.0.1:PORT"),
        ("tcp://10.0.0.5:8786", "whoever reaches its port can run any code on the workers and here; use tls://"),
        ("tcp://lab.example:8786", "whoever reaches its port can run any code"),
        ("tls://lab.example:8786", "needs certificates: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE"),
    ],
)
def test_an_address_that_is_open_to_others_is_refused(address, message):
    with pytest.raises(WorkerError, match=message) as caught, open_workers(address):
        pass
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(WorkerError, match=r"needs Dask; install it with: pip install 'steelyard\[cluster\]'"),
        open_workers("tcp://127.0.0.1:8786"),
    ):
        pass


@pytest.mark.large
def test_a_design_on_a_cluster_gives_the_bytes_of_a_local_one(running):
    settings = DesignSettings(starts=4, harmonics=2, duration=5.0, threads=2)
    near, far = (
        design("scara_2r", replace(settings, scheduler=address)).to_json() for address in (None, running.address)
    )
    assert json.dumps(far) == json.dumps(near)

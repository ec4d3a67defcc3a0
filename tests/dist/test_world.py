"""Which ranks there are, by the variables of launchers, and what is wrong with them."""

import subprocess
import sys

import pytest

import quadpy as qp
from quadpy import api
from quadpy.cli import main
from quadpy.dist import launching, world
from quadpy.dist.connecting import choose_transport, connect
from quadpy.dist.transport.gloo import StoreNotices
from quadpy.errors import DistributedError, TransportError
from quadpy.runtime.device import probe
from quadpy.runtime.device.launched import Launched, launched_as

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "x", "MASTER_ADDR": "a"}
HYDRA = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "2"}
BATCH_SCRIPT = {"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7"}
STEP = {**BATCH_SCRIPT, "SLURM_PROCID": "9", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "16"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        (TORCHRUN, Launched("torchrun", 5, 8, 1)),
        (HYDRA, Launched("mpiexec", 2, 4, 0)),
        (OPEN_MPI, Launched("mpiexec", 2, 4, 2)),
        (STEP, Launched("srun", 9, 16, 1)),
        ({**STEP, **HYDRA}, Launched("mpiexec", 2, 4, 0)),  # MPICH's launcher uses srun to start its own processes
        (BATCH_SCRIPT, None),  # it runs once, before any srun
        ({"RANK": "1", "WORLD_SIZE": "2"}, None),  # anyone's variables
    ],
)
def test_variables_of_launchers(environ, expected):
    assert launched_as(environ) == expected


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"PMI_RANK": "4"}, "PMI_RANK=4 is not a rank of PMI_SIZE=4, says mpiexec"),
        ({"PMI_SIZE": "many"}, "PMI_SIZE='many' is not a number"),
    ],
)
def test_variables_that_make_no_sense(changed, message):
    with pytest.raises(DistributedError, match=message):
        launched_as({**HYDRA, **changed})


def test_a_program_that_nothing_started_runs_alone():
    ranks = world()
    assert (ranks.rank, ranks.size, ranks.local_rank, ranks.transport.name) == (0, 1, 0, "alone")
    assert repr(ranks) == "<rank 0 of 1, number 0 on its host>"


@pytest.fixture
def started(monkeypatch):
    """This process, as if mpiexec had started it."""
    for name, value in HYDRA.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("started")
def test_without_mpi4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(TransportError, match="mpiexec started 4 ranks, and mpi4py cannot be imported") as raised:
        connect()
    assert "pip install 'quadpy-lang[mpi]'" in str(raised.value)


def test_torchrun_without_torch(monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TransportError, match="does not say where they meet: MASTER_PORT must be set"):
        connect()
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    with pytest.raises(TransportError, match="torchrun started 8 ranks, and torch cannot be imported") as raised:
        connect()
    assert "use quadpy run" in str(raised.value)


class Store(dict):
    """A store of torch's, as far as notices use it."""

    def add(self, name, number):
        self[name] = self.get(name, 0) + number
        return self[name]

    def set(self, name, text):
        self[name] = text.encode()

    def check(self, names):
        return all(name in self for name in names)


class LostStore(Store):
    def check(self, names):
        raise RuntimeError("Connection reset by peer\nmore")


def test_notices_in_a_store():
    store = Store()
    ranks = [StoreNotices(store, rank) for rank in range(3)]
    ranks[1].tell_wait("an exchange with rank 0")
    ranks[1].tell_end("ValueError: no such file", 1)
    ranks[1].tell_end("", 1)  # only the first counts
    ranks[2].tell_end("", 2)
    for rank in ranks:
        rank.collect()
    assert (ranks[0].waiting, ranks[0].ended) == ({1: "an exchange with rank 0"}, {1, 2})
    assert ranks[0].failure() == (1, "ValueError: no such file")
    assert (ranks[1].ended, ranks[1].failure()) == ({2}, None)  # its own words are no news
    lost = StoreNotices(LostStore(), 1)
    lost.collect()
    assert lost.failure() == (0, "the store at MASTER_ADDR does not answer: Connection reset by peer")


def test_an_mpi_that_is_not_the_launchers():
    """As when mpi4py has another MPI than mpiexec: each process is alone."""
    environ = {**launching.environment_for(2), **OPEN_MPI}
    text = "from quadpy.dist import world; world()"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 1
    assert "TransportError: mpiexec started 4 ranks, but mpi4py's MPI (MPICH Version" in done.stderr
    assert "sees 1" in done.stderr
    assert "as quadpy run does" in done.stderr


def test_run_without_an_mpi(monkeypatch, tmp_path, capsys):
    program = tmp_path / "program.py"
    program.write_text("print('alone')\n")
    monkeypatch.setattr(launching, "_file_of_wheel", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["run", "-n", "2", str(program)]) == 1
    assert "mpiexec was found neither in an installed MPI wheel nor on PATH" in capsys.readouterr().err
    assert main(["run", "-n", "0", str(program)]) == 1
    assert "0 ranks cannot run a program" in capsys.readouterr().err
    assert main(["run", "-n", "2", str(tmp_path / "missing.py")]) == 1
    assert "there is no file" in capsys.readouterr().err
    assert main(["run", str(tmp_path)]) == 1
    assert "is a folder without a program: it has no __main__.py" in capsys.readouterr().err


def test_run_shows_its_command(tmp_path, capsys):
    program = tmp_path / "program.py"
    program.touch()
    assert main(["run", "-n", "4", "--show", str(program), "--", "-n", "x", "--"]) == 0
    words = capsys.readouterr().out.split()
    assert words[0].endswith("mpiexec")
    assert words[-5:] == [str(program), "--", "-n", "x", "--"]
    assert words[words.index("-n") + 1] == "4"


def test_the_options_of_each_launcher(tmp_path):
    """MPICH's and Open MPI's launchers end all ranks if one fails, unless they are told to let the others speak."""
    for answer, expected in (
        ("HYDRA build details:\\n    Version: 5.0", "-disable-auto-cleanup"),
        ("mpiexec (Open MPI) 5.0.11", "--continuous"),
        ("Intel(R) MPI Library for Linux* OS", None),
    ):
        fake = tmp_path / "mpiexec"
        fake.write_text(f"#!/bin/sh\nprintf '{answer}'\n")
        fake.chmod(0o755)
        options = launching._options(str(fake))
        assert options == () if expected is None else expected in options


def test_threads_are_shared_by_the_ranks(monkeypatch):
    monkeypatch.setattr(launching, "default_threads", lambda: 9)
    assert launching.environment_for(4)["QUADPY_NUM_THREADS"] == "2"
    assert launching.environment_for(16)["QUADPY_NUM_THREADS"] == "1"
    monkeypatch.setenv("QUADPY_NUM_THREADS", "7")
    assert launching.environment_for(4)["QUADPY_NUM_THREADS"] == "7"


@pytest.mark.usefixtures("started")
def test_the_gpu_of_a_rank_is_its_number_on_the_host(monkeypatch):
    opened = []
    monkeypatch.setattr(api, "open_device", lambda backend, ordinal=0: opened.append((backend, ordinal)))
    monkeypatch.setattr(probe, "probe_cuda", lambda: probe.Probe("cuda", devices=("a", "b", "c")))
    for local, expected in (("0", 0), ("2", 2), ("4", 1)):
        monkeypatch.setenv("MPI_LOCALRANKID", local)
        assert api._choose("cuda", enable_fallback=False) == ("cuda", expected)
    assert api._choose("cuda:0", enable_fallback=False) == ("cuda", 0)
    assert opened == [("cuda", 0), ("cuda", 2), ("cuda", 1), ("cuda", 0)]


def test_ranks_without_nccl_go_through_pinned_memory():
    class Engine:
        name, rank, size, timeout = "mpi", 0, 2, 1.0

        def share(self, value):
            assert value == b""  # this rank has no NCCL
            return [value, b"another host"]

    class Mpi:
        class COMM_WORLD:  # noqa: N801 - MPI's name
            @staticmethod
            def Get_info():  # noqa: N802 - MPI's name
                class Info:
                    def Get(self, key):  # noqa: N802 - MPI's name
                        return "mpi,system"

                    def Free(self):  # noqa: N802 - MPI's name
                        pass

                return Info()

    if qp.dist.transport.gpu.nccl.__name__ and _has_nccl():
        pytest.skip("NCCL is installed")
    transport = choose_transport(Engine(), "cuda", Mpi)
    assert transport.name == "mpi"
    assert not transport.capturable


def _has_nccl():
    try:
        qp.dist.transport.gpu.nccl.load_nccl()
    except TransportError:
        return False
    return True


def test_importing_quadpy_imports_no_ranks():
    text = "import sys, quadpy; print([name for name in sys.modules if name.startswith(('quadpy.dist', 'mpi4py'))])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

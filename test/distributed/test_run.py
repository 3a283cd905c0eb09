"""python -m mica.distributed.run: what ranks get, and that none outlives the others or the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from processes import free_port

import mica.distributed as dist
from mica.distributed import run as launcher

# Ranks share their stdout: a line is one write, or another's may come into it where PYTHONUNBUFFERED is set.
SHOW = """
import os, sys
own = (os.environ[v] for v in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "OMP_NUM_THREADS"))
sys.stdout.write(f"{' '.join(own)} {sys.argv[1:]}\\n")
"""
# Each rank writes its process, rank 1 does what it is told once all have, and the others stay for long.
STAY = """
import os, pathlib, sys, time
folder, what = pathlib.Path(sys.argv[1]), sys.argv[2]
(folder / os.environ["RANK"]).write_text(str(os.getpid()))
while len(list(folder.glob("[0-9]"))) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.01)
if os.environ["RANK"] == "1" and what == "exits":
    os._exit(7)
if os.environ["RANK"] == "1" and what == "killed":
    os.kill(os.getpid(), 9)
time.sleep(60)
"""


# The tests may run where these are ignored: in the background of a script, under nohup.
HEARD = ["env", "--default-signal=HUP,INT,QUIT"]


def started(*words: str, before: Sequence[str] = (), **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*HEARD, *before, sys.executable, "-m", "mica.distributed.run", *words],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(*words: str, **environment: str) -> tuple[int, str, str]:
    process = started(*words, **environment)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def all_end(processes: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(map(lives, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(lives, processes))


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "program.py"
    path.write_text(SHOW)
    yield path


def test_ranks_get_their_places_and_the_programs_arguments(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    status, out, err = ran("--nproc-per-node", "3", "--standalone", str(script), "--lr", "-m", "1")
    assert (status, err) == (0, "")
    assert sorted(out.splitlines()) == [f"{r} {r} 3 localhost 1 ['--lr', '-m', '1']" for r in range(3)]


def test_modules_commands_and_both_spellings(script: Path) -> None:
    status, out, _ = ran(
        "--nproc_per_node=2", "--master_port", str(free_port()), "-m", "program", "x", PYTHONPATH=os.pathsep.join(
            [str(script.parent), os.environ["PYTHONPATH"]]
        ),
    )  # fmt: skip
    assert status == 0 and out.count("['x']") == 2
    status, out, _ = ran("--no-python", "--nproc-per-node=2", "sh", "-c", "echo rank $RANK")
    assert status == 0 and sorted(out.split("\n")) == ["", "rank 0", "rank 1"]


@pytest.mark.parametrize(("what", "says"), [("exits", "status (7)"), ("killed", "signal (9, SIGKILL)")])
def test_one_rank_that_fails_ends_the_others_and_is_named(tmp_path: Path, what: str, says: str) -> None:
    (tmp_path / "stay.py").write_text(STAY)
    begun = time.monotonic()
    status, _, err = ran("--nproc-per-node=3", str(tmp_path / "stay.py"), str(tmp_path), what)
    assert status == 1 and "rank (1), process" in err and says in err
    assert time.monotonic() - begun < 20
    assert all_end([int((tmp_path / str(r)).read_text()) for r in range(3)])


def staying(folder: Path, *before: str) -> tuple[subprocess.Popen[str], list[int]]:
    """The command with two ranks that stay, and their processes."""
    (folder / "stay.py").write_text(STAY)
    command = started("--nproc-per-node=2", str(folder / "stay.py"), str(folder), "stays", before=before)
    deadline = time.monotonic() + 30
    while len(list(folder.glob("[0-9]"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)
    return command, [int((folder / str(r)).read_text()) for r in range(2)]


def test_a_hangup_that_nohup_ignores_ends_nothing(tmp_path: Path) -> None:
    command, ranks = staying(tmp_path, "nohup")
    command.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert command.poll() is None and all(map(lives, ranks))
    command.terminate()
    command.communicate(timeout=30)
    assert command.returncode == 128 + signal.SIGTERM and all_end(ranks)


def test_two_signals_end_it_as_one_does(tmp_path: Path) -> None:
    command, ranks = staying(tmp_path)
    command.send_signal(signal.SIGTERM)  # as systemd sends both
    command.send_signal(signal.SIGHUP)
    _, err = command.communicate(timeout=30)
    assert command.returncode in (128 + signal.SIGTERM, 128 + signal.SIGHUP) and "Traceback" not in err
    assert all_end(ranks)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL]
)
def test_ranks_do_not_outlive_the_command(tmp_path: Path, number: int) -> None:
    command, ranks = staying(tmp_path)
    command.send_signal(number)
    command.communicate(timeout=30)
    assert command.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert all_end(ranks)


def test_options_that_mean_nothing_here_are_refused(script: Path) -> None:
    for words, error, says in (
        (["--nproc-per-node", "0"], ValueError, "(0) is no positive number"),
        (["--nproc-per-node", "gpu"], ValueError, "(gpu) is no positive number"),
        (["--nnodes", "2"], NotImplementedError, "names several machines"),
        (["--max-restarts", "1"], NotImplementedError, "last checkpoint"),
        (["--tee", "3"], NotImplementedError, "--tee is not there"),
        (["--no-python", "-m"], ValueError, "exclude each other"),
        (["--master-port", "70000"], ValueError, "cannot be listened on"),
    ):
        with pytest.raises(error) as raised:
            launcher.run(launcher.get_args_parser().parse_args([*words, str(script)]))
        assert says in str(raised.value)
    status, _, err = ran("--nnodes", "2", str(script))
    assert status == 2 and "names several machines" in err and "Traceback" not in err
    assert ran("--master-port", "x", str(script))[0] == 2


@pytest.mark.skipif(not dist.is_gloo_available(), reason="the library Gloo is not here")
def test_a_torch_program_under_the_shim(tmp_path: Path) -> None:
    """The store that the command serves outlives rank 0, so that the others can say who was silent."""
    (tmp_path / "train.py").write_text("""
import sys, os, datetime, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
x = torch.ones(2) * dist.get_rank()
dist.all_reduce(x)
sys.stdout.write(f"{x.tolist()} {dist.group.WORLD.size()}\\n")
sys.stdout.flush()
if sys.argv[1:] and dist.get_rank() == 0:
    os._exit(3)
dist.barrier()
dist.destroy_process_group()
""")
    command = [sys.executable, "-m", "mica.torch", "-m", "torch.distributed.run", "--nproc-per-node=2"]
    done = subprocess.run([*command, str(tmp_path / "train.py")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "[1.0, 1.0] 2\n" * 2)
    done = subprocess.run(
        [*command, str(tmp_path / "train.py"), "die"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "rank (0), process" in done.stderr


@pytest.mark.skipif(not dist.is_gloo_available(), reason="the library Gloo is not here")
def test_the_programs_of_torchs_tutorial_run(tmp_path: Path) -> None:
    """DistributedDataParallel in processes of torch.multiprocessing.spawn, with the names that such programs import."""
    (tmp_path / "tutorial.py").write_text(f"""
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

def demo(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "{free_port()}"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(10, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    torch.nn.functional.mse_loss(model(torch.randn(20, 10)), torch.randn(20, 5)).backward()
    optimizer.step()
    every = [torch.empty(5, 10) for _ in range(world_size)]
    dist.all_gather(every, model.module.weight.detach())
    assert all(torch.equal(one, every[0]) for one in every)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(demo, args=(2,), nprocs=2, join=True)
    print("done")
""")
    command = [sys.executable, "-m", "mica.torch", str(tmp_path / "tutorial.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr

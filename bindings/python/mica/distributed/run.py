"""`python -m mica.distributed.run`: starts the ranks of a program on this machine, as torchrun does.

    python -m mica.distributed.run --nproc-per-node 2 train.py --epochs 3

Each rank is a process with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, so that the
program's init_process_group finds the others. This process serves their store. When a rank fails, the others are
ended, and so is every rank when this process is; the exit status is 0 where all ranks ended well, else 1.

Ranks on several machines are started by Slurm, Open MPI or Kubernetes.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

__all__ = ["get_args_parser", "main", "run"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_GRACE = 10.0  # seconds between asking a rank to end and killing it
_DEATH_SIGNAL = 1  # of prctl: what a process gets when its parent dies
# torchrun's, which say how machines of a cluster find each other, or where output goes.
_TAKEN = (
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "rdzv-conf",
    "local-addr",
    "monitor-interval",
    "node-rank",
    "role",
)
_LATER = ("redirects", "tee", "log-dir", "local-ranks-filter")


def get_args_parser() -> argparse.ArgumentParser:
    """Makes the parser of the command's arguments.

    As `torch.distributed.run.get_args_parser`.

    Returns:
        ArgumentParser: Every option is spelled with hyphens or underscores.

    Example:
        >>> from mica.distributed import run
        >>> args = run.get_args_parser().parse_args(["--nproc-per-node", "2", "train.py", "--epochs", "3"])
        >>> args.nproc_per_node, args.training_script, args.training_script_args
        ('2', 'train.py', ['--epochs', '3'])
    """
    parser = argparse.ArgumentParser(
        prog="python -m mica.distributed.run",
        description="Starts the ranks of a program on this machine, as torchrun does.",
        allow_abbrev=False,
    )

    def option(name: str, **options: Any) -> None:
        spellings = [f"--{name}", f"--{name.replace('-', '_')}"]
        parser.add_argument(*dict.fromkeys(spellings), **options)

    option("nproc-per-node", default="1", help="ranks: a number, or auto or cpu for the number of cores")
    option(
        "nnodes", default="1", help="1, as other machines' ranks are started by Slurm, Open MPI or Kubernetes"
    )
    option("standalone", action="store_true", help="choose a free port")
    option("master-addr", default="localhost", help="where the ranks find their store")
    option("master-port", type=int, default=0, help="its port; 0 for a free one")
    option("max-restarts", type=int, default=0, help="0, as ranks that failed are not started again")
    option("start-method", default="spawn", help="taken and not used")
    option("no-python", action="store_true", help="the program is a command, not a Python script")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module's name")
    for name in _TAKEN:
        option(name, default=None, help="taken and not used")
    for name in _LATER:
        option(name, default=None, help="not there yet")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _ranks(args: argparse.Namespace) -> int:
    given = args.nproc_per_node
    if given in ("auto", "cpu"):
        return os.cpu_count() or 1
    if not str(given).isdecimal() or int(given) < 1:
        raise ValueError(f"--nproc-per-node ({given}) is no positive number, nor auto or cpu.")
    return int(given)


def _check(args: argparse.Namespace) -> None:
    if args.nnodes not in ("1", "1:1"):
        raise NotImplementedError(
            f"--nnodes ({args.nnodes}) names several machines; start their ranks by Slurm, Open MPI or Kubernetes, "
            "whose variables env:// understands."
        )
    if args.max_restarts:
        raise NotImplementedError(
            f"--max-restarts ({args.max_restarts}) is not there: start the command again, and let the program go on "
            "from its last checkpoint."
        )
    for name in _LATER:
        if getattr(args, name.replace("-", "_")) is not None:
            raise NotImplementedError(f"--{name} is not there yet; redirect the output of the command.")


def _command(args: argparse.Namespace) -> list[str]:
    if args.no_python and args.module:
        raise ValueError("--no-python and --module exclude each other; give one of them.")
    how = [] if args.no_python else [sys.executable, "-u", *["-m"] * args.module]
    return [*how, args.training_script, *args.training_script_args]


def _environment(args: argparse.Namespace, ranks: int, port: int) -> dict[str, str]:
    """What all ranks have."""
    shared = {
        "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "ROLE_WORLD_SIZE": ranks, "ROLE_NAME": args.role or "default",
        "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1, "MASTER_ADDR": args.master_addr, "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_RUN_ID": args.rdzv_id or "none", "TORCHELASTIC_USE_AGENT_STORE": "True",
    }  # fmt: skip
    if ranks > 1 and "OMP_NUM_THREADS" not in os.environ:
        shared["OMP_NUM_THREADS"] = 1  # else each rank computes with all cores
    return {**os.environ, **{name: str(value) for name, value in shared.items()}}


def _start(command: list[str], environment: dict[str, str], rank: int) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None)

    def die_with_parent() -> None:
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)

    own = {name: str(rank) for name in ("RANK", "LOCAL_RANK", "ROLE_RANK")}
    # A session of its own, so that what the rank starts can be ended with it.
    return subprocess.Popen(
        command, env={**environment, **own}, start_new_session=True, preexec_fn=die_with_parent
    )


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """How the process ended, as a Popen says it; its number stays taken, so that no stranger's is signalled."""
    try:
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # SIGCHLD is ignored: the number is free again as soon as it ends
        return process.poll()
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Asks what still runs to end, with what it started, and kills what does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        deadline = time.monotonic() + _GRACE
        while None in map(_status, processes) and time.monotonic() < deadline:
            time.sleep(0.02)


def _why(status: int) -> str:
    if status >= 0:
        return f"with status ({status})"
    with contextlib.suppress(ValueError):
        return f"by signal ({-status}, {signal.Signals(-status).name})"
    return f"by signal ({-status})"


def _watch(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """The exit status, when all ranks have ended or one of them failed."""
    while True:
        found = [_status(process) for process in processes]
        failed = [(rank, status) for rank, status in enumerate(found) if status]
        if failed:
            rank, status = failed[0]
            still = sum(one is None for one in found)
            print(
                f"mica.distributed.run: rank ({rank}), process ({processes[rank].pid}), ended {_why(status)}; the "
                f"({still}) ranks that still run are ended.",
                file=sys.stderr,
            )
            return 1
        if None not in found:
            return 0
        time.sleep(0.02)


def _listen(args: argparse.Namespace) -> socket.socket:
    port = 0 if args.standalone else args.master_port
    try:
        return socket.create_server(("", port), backlog=2048)
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"--master-port ({port}) cannot be listened on: {error}; choose another one, or 0."
        ) from error


class _Ended(BaseException):
    """A signal asks this process to end."""


def _go_on(number: int, frame: FrameType | None) -> None:
    """Another signal must not break off the ending; SIG_IGN in the place of this is an error for one that waits."""


def _heard() -> list[signal.Signals]:
    """The signals that end the ranks: what nohup ignores stays ignored."""
    return [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]


def _hear_no_more() -> None:
    for number in _heard():
        signal.signal(number, _go_on)


def _stop(number: int, frame: FrameType | None) -> None:
    _hear_no_more()
    raise _Ended(number)


def run(args: argparse.Namespace) -> int:
    """Starts the ranks and waits for them.

    As `torch.distributed.run.run`.

    Args:
        args (Namespace): Of `get_args_parser`.

    Returns:
        int: 0 where all ranks ended well, else 1.

    Raises:
        NotImplementedError: An option asks for something that is not there.
        ValueError: An option has no such value.

    Example:
        >>> from mica.distributed import run
        >>> args = run.get_args_parser().parse_args(["--nproc-per-node", "2", "--no-python", "true"])
        >>> run.run(args)
        0
    """
    _check(args)
    ranks, command = _ranks(args), _command(args)
    listening = _listen(args)
    environment = _environment(args, ranks, listening.getsockname()[1])
    before = {number: signal.signal(number, _stop) for number in _heard()}
    processes: list[subprocess.Popen[bytes]] = []
    status = 1
    try:
        for rank in range(ranks):
            processes.append(_start(command, environment, rank))
        # After the ranks were forked, as it has threads; until then they wait to be accepted.
        from mica.distributed._store_tcp import TCPStore

        store = TCPStore("127.0.0.1", 0, is_master=True, master_listen_fd=listening.detach())
        status = _watch(processes)
        del store
    except _Ended as ended:
        status = 128 + int(ended.args[0])
    finally:
        _hear_no_more()
        if status:
            _end(processes)
        for process in processes:
            process.poll()
        for number, handler in before.items():
            signal.signal(number, handler)
    return status


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command; ends this process where a rank failed.

    As `torch.distributed.run.main`.

    Args:
        args (sequence of str, optional): The arguments. Default: None, those of this process.

    Example:
        >>> import glob
        >>> from mica.distributed import run
        >>> run.main(["--nproc-per-node", "2", "--no-python", "sh", "-c", "echo $WORLD_SIZE > rank$RANK.txt"])
        >>> sorted(glob.glob("rank*.txt"))
        ['rank0.txt', 'rank1.txt']
    """
    parser = get_args_parser()
    parsed = parser.parse_args(args)
    try:
        status = run(parsed)
    except (ValueError, NotImplementedError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()

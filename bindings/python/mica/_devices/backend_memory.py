"""What a backend's module says of memory: statistics, snapshots, limits, and giving idle memory back.

As backend_module.py, which installs these: without a device, queries answer 0 or nothing.
"""

from __future__ import annotations

from typing import Any

from mica import _C, _devices
from mica._devices.numbered import needed, numbered, present, python_name

_QUERIES = {  # and what each says
    "memory_allocated": "Returns how many bytes the tensors of a device use.",
    "memory_reserved": "Returns how many bytes the program has taken from a device, idle ones included.",
    "max_memory_allocated": "Returns how many bytes the tensors of a device used at most.",
    "max_memory_reserved": "Returns how many bytes the program had taken from a device at most, idle ones included.",
}


def _segments(backend: str, index: int) -> list[dict[str, Any]]:
    """The segments of one device, as memory_snapshot() lists them."""
    segments: list[dict[str, Any]] = []
    for address, size, requested, begins, stream, pool, small, state in _C._memory_snapshot(
        _C.device(f"{backend}:{index}")
    ):
        if begins:
            segments.append(
                {
                    "device": index,
                    "address": address,
                    "total_size": 0,
                    "allocated_size": 0,
                    "active_size": 0,
                    "requested_size": 0,
                    "stream": stream,
                    "segment_type": "small" if small else "large",
                    "segment_pool_id": (0, pool),
                    "blocks": [],
                }
            )
        segment = segments[-1]
        segment["total_size"] += size
        segment["allocated_size"] += size if state == "active_allocated" else 0
        segment["active_size"] += size if state != "inactive" else 0
        segment["requested_size"] += requested if state == "active_allocated" else 0
        segment["blocks"].append(
            {"address": address, "size": size, "requested_size": requested, "state": state}
        )
    return segments


def functions(backend: str) -> dict[str, Any]:
    """The functions for one backend, by name."""

    def query(name: str) -> Any:
        def ask(device: Any = None) -> int:
            """WHAT

            As `torch.cuda.NAME`.

            Args:
                device (int, str or device, optional): The device that is meant. Default: None, the current one.

            Returns:
                int: Bytes; 0 where there is no device.

            Example:
                >>> mica.cuda.NAME() >= 0
                True
            """
            if not present(backend):
                return 0
            return int(getattr(_devices, name)(numbered(backend, device)))

        ask.__name__ = ask.__qualname__ = name
        ask.__doc__ = (ask.__doc__ or "").replace("WHAT", _QUERIES[name]).replace("NAME", name)
        return ask

    def empty_cache() -> None:
        """Gives idle memory that the caching allocator keeps back to the devices, for other programs.

        As `torch.cuda.empty_cache`. Without a device it does nothing.

        Example:
            >>> mica.cuda.empty_cache()
        """
        for i in range(_C._device_count(backend)):
            _C._empty_cache(_C.device(f"{backend}:{i}"))

    def memory_stats(device: Any = None) -> dict[str, int]:
        """Returns what a device's caching allocator holds, in bytes, and how many requests it has met.

        As `torch.cuda.memory_stats`, without its parts for small and large blocks.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            dict of str to int: What `mica.memory_stats()` says; empty where there is no device.

        Example:
            >>> in_use = mica.cuda.memory_stats().get("allocated_bytes.all.current", 0)
        """
        return _devices.memory_stats(numbered(backend, device)) if present(backend) else {}

    def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
        """Returns `memory_stats()` with a dict for each part of a name.

        As `torch.cuda.memory_stats_as_nested_dict`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            dict: `memory_stats()["segment.all.peak"]` is `["segment"]["all"]["peak"]` here.

        Example:
            >>> segments = mica.cuda.memory_stats_as_nested_dict().get("segment", {})
        """
        nested: dict[str, Any] = {}
        for name, value in memory_stats(device).items():
            *parts, last = name.split(".")
            place = nested
            for part in parts:
                place = place.setdefault(part, {})
            place[last] = value
        return nested

    def memory_snapshot() -> list[dict[str, Any]]:
        """Lists the pieces of memory that the devices' caching allocators have, and the blocks in them.

        As `torch.cuda.memory_snapshot`, without the frames that made them.

        Returns:
            list of dict: The segments, by device and address: "device", "address", "total_size", "allocated_size"
            (in blocks that tensors hold), "active_size" (with those that streams use still), "requested_size",
            "stream", "segment_type" ("small" or "large"), "segment_pool_id" (of a graph, else (0, 0)) and
            "blocks": dicts with "address", "size", "requested_size" and "state" ("active_allocated",
            "active_pending_free" or "inactive"). Sizes are bytes.

        Example:
            >>> held = sum(segment["total_size"] for segment in mica.cuda.memory_snapshot())
        """
        return [segment for i in range(_C._device_count(backend)) for segment in _segments(backend, i)]

    def host_memory_stats() -> dict[str, int]:
        """Returns what the cache of the backend's pinned memory holds, as `memory_stats()`.

        As `torch.cuda.host_memory_stats`.

        Returns:
            dict of str to int: What `memory_stats()` says of a device; empty where there is none.

        Example:
            >>> pinned = mica.cuda.host_memory_stats().get("allocated_bytes.all.current", 0)
        """
        return _C._pinned_memory_stats(_C.device(backend)) if present(backend) else {}

    def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
        """Writes `memory_stats()` as text, a line for each number.

        As `torch.cuda.memory_summary`, in a plainer form.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.
            abbreviated (bool): Ignored. Default: False.

        Returns:
            str: The lines; "" where there is no device.

        Example:
            >>> text = mica.cuda.memory_summary()
        """
        return "\n".join(f"{name}: {value}" for name, value in memory_stats(device).items())

    def mem_get_info(device: Any = None) -> tuple[int, int]:
        """Returns the free and the total memory of a device, in bytes.

        As `torch.cuda.mem_get_info`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            tuple of 2 int: Free and total bytes; -1 if the device does not know.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if mica.cuda.is_available():
            ...     free, total = mica.cuda.mem_get_info()
        """
        needed(backend)
        found = _devices.device_properties(numbered(backend, device))
        return int(found["free_memory"]), int(found["total_memory"])

    def reset_peak_memory_stats(device: Any = None) -> None:
        """Makes `max_memory_allocated()` count from now on.

        As `torch.cuda.reset_peak_memory_stats`. Without a device it does nothing. Also called
        `reset_max_memory_allocated`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Example:
            >>> mica.cuda.reset_peak_memory_stats()
        """
        if present(backend):
            _devices.reset_peak_memory_stats(numbered(backend, device))

    def reset_accumulated_memory_stats(device: Any = None) -> None:
        """Makes the numbers of `memory_stats()` that only grow count from 0: "allocated", "freed" and "num_...".

        As `torch.cuda.reset_accumulated_memory_stats`. Without a device it does nothing.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Example:
            >>> mica.cuda.reset_accumulated_memory_stats()
        """
        if present(backend):
            _C._reset_memory_totals(numbered(backend, device))

    def ipc_collect() -> None:
        """Does nothing where there is a device: Mica's processes share no memory of devices.

        As `torch.cuda.ipc_collect`.

        Raises:
            RuntimeError: There is no device.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.ipc_collect()
        """
        needed(backend)

    def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
        """Limits the memory that this process takes from a device.

        As `torch.cuda.set_per_process_memory_fraction`. Beyond the limit, making a tensor raises
        `mica.OutOfMemoryError`.

        Args:
            fraction (float): Of the device's memory, in [0, 1]; 0 lets no tensor have any.
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Raises:
            ValueError: The fraction is not in [0, 1].
            RuntimeError: There is no such device, or it does not say how much memory it has.

        Example:
            >>> if mica.cuda.is_available():
            ...     mica.cuda.set_per_process_memory_fraction(0.9)
        """
        if not 0 <= fraction <= 1:
            raise ValueError(f"The fraction ({fraction}) must be between 0 and 1.")
        limit = int(fraction * total_memory(device, "set_per_process_memory_fraction"))
        _devices.set_memory_limit(max(limit, 1), numbered(backend, device))  # 0 would be no limit

    def get_per_process_memory_fraction(device: Any = None) -> float:
        """Returns the part of a device's memory that this process may take.

        As `torch.cuda.get_per_process_memory_fraction`.

        Args:
            device (int, str or device, optional): The device that is meant. Default: None, the current one.

        Returns:
            float: In [0, 1]; 1 where there is no limit.

        Raises:
            RuntimeError: There is no such device, or it does not say how much memory it has.

        Example:
            >>> if mica.cuda.is_available():
            ...     part = mica.cuda.get_per_process_memory_fraction()
        """
        total = total_memory(device, "get_per_process_memory_fraction")
        return (_C._memory_limit(numbered(backend, device)) or total) / total

    def total_memory(device: Any, call: str) -> int:
        total = mem_get_info(device)[1]
        if total <= 0:
            raise RuntimeError(
                f"The device ({numbered(backend, device)}) does not say how much memory it has, so that "
                f"mica.{python_name(backend)}.{call}() has no part of it; use mica.set_memory_limit()."
            )
        return total

    made = {k: v for k, v in locals().items() if k not in ("backend", "query", "total_memory")}
    made.update({name: query(name) for name in _QUERIES})
    made["reset_max_memory_allocated"] = reset_peak_memory_stats
    made["memory_cached"] = made["memory_reserved"]
    return made

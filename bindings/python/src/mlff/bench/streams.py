# SPDX-License-Identifier: MIT
"""Streams of GPUs, and time between two moments."""
from __future__ import annotations

from typing import Any

from .. import _core
from ..device import device_name
from ..errors import ArgumentError


class Stream:
    """A stream of a GPU for other libraries: `cupy.cuda.ExternalStream(stream.ptr)`, `torch.cuda.ExternalStream(stream.ptr)`.

    Leaving the `with` block waits for the work in the stream and frees it. On the CPU, `ptr` is 0 and there is nothing to wait for.
    """

    def __init__(self, device: str = "auto") -> None:
        self._handle: _core.Stream | None = _core.Stream(device_name(device))

    @property
    def ptr(self) -> int:
        """A cudaStream_t as a number"""
        return self._open().handle()

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which other libraries ask for the stream: its version, and the pointer."""
        return 0, self.ptr

    def synchronize(self) -> None:
        """Waits until all work in the stream has finished."""
        self._open().synchronize()

    def _open(self) -> _core.Stream:
        if self._handle is None:
            raise ArgumentError("the stream is closed")
        return self._handle

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self._handle = None


class Timer:
    """The time of a `with` block, in `seconds`: of the CPU's steady clock, or between two events in a stream of a GPU.

    The events take place when all earlier work in the stream has finished, so `seconds` is the time that the GPU needed. May be used again.

    stream: the default stream if None; a `Stream`, a stream of CuPy or PyTorch, or a cudaStream_t as a number
    """

    def __init__(self, device: str = "cpu", stream: Any = None) -> None:
        # The stream must live as long as the timer, also when its `with` block has ended.
        self._stream = stream._open() if isinstance(stream, Stream) else stream
        self._handle = _core.Timer(device_name(device), _stream_pointer(stream))

    def start(self) -> None:
        self._handle.start()

    def stop(self) -> None:
        self._handle.stop()

    @property
    def seconds(self) -> float:
        """From start to stop; waits for the GPU."""
        return self._handle.seconds()

    def __enter__(self) -> Timer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _stream_pointer(stream: Any) -> int:
    if stream is None:
        return 0
    pointer = getattr(stream, "ptr", getattr(stream, "cuda_stream", stream))  # of ours and CuPy's; of PyTorch's; a number
    if isinstance(pointer, bool) or not isinstance(pointer, int) or pointer < 0:
        raise ArgumentError(f"stream is {stream!r}, expected a stream or its pointer")
    return pointer


def stream(device: str = "auto") -> Stream:
    """`with mlff.bench.stream("cuda") as stream:`; see `Stream`."""
    return Stream(device)


def timer(device: str = "cpu", stream: Any = None) -> Timer:
    """`with mlff.bench.timer("cuda") as timer:`; see `Timer`."""
    return Timer(device, stream)

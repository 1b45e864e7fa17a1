#!/usr/bin/env python3
"""What a graphics card can do, measured through its driver alone: needs Python and nothing else.

    python3 bench/gpu_ceilings.py [--probe]

With --probe it only says whether there is a card. Prints one JSON object, or says why there is no card: bytes a second that a copy within its memory
reads and writes, and that rows of 1 KiB gathered from all over it do; float32 multiply-adds a second,
two operations each; seconds that a launch of nothing takes when many are queued, and from the host
and back; seconds of a small copy to it and back. Each is the best of several.
"""

import ctypes
import json
import random
import struct
import sys
import time

PTX = b"""
.version 7.0
.target sm_70
.address_size 64

.visible .entry nothing(.param .u64 unused)
{
    ret;
}

// Sixteen chains of multiply-adds a thread, as many steps as are asked for.
.visible .entry multiply_add(.param .u64 out, .param .u64 steps)
{
    .reg .pred %more;
    .reg .b32 %thread, %block, %threads, %place, %left;
    .reg .b64 %at, %offset;
    .reg .f32 %scale, %a<16>;
    ld.param.u64 %at, [out];
    ld.param.u32 %left, [steps];
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mad.lo.u32 %place, %block, %threads, %thread;
    cvt.rn.f32.u32 %scale, %thread;
    mul.f32 %scale, %scale, 0f3A800000;
INIT
STEPS:
BODY
    sub.u32 %left, %left, 1;
    setp.ne.u32 %more, %left, 0;
    @%more bra STEPS;
SUM
    mul.wide.u32 %offset, %place, 4;
    add.u64 %at, %at, %offset;
    st.global.f32 [%at], %a0;
    ret;
}

// A block of 64 threads copies a row of 1 KiB, whose number is in a list.
.visible .entry gather(.param .u64 to, .param .u64 from, .param .u64 list)
{
    .reg .b32 %thread, %block, %row, %w<4>;
    .reg .b64 %to, %from, %list, %offset;
    ld.param.u64 %to, [to];
    ld.param.u64 %from, [from];
    ld.param.u64 %list, [list];
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mul.wide.u32 %offset, %block, 4;
    add.u64 %list, %list, %offset;
    ld.global.u32 %row, [%list];
    mul.wide.u32 %offset, %row, 1024;
    add.u64 %from, %from, %offset;
    mul.wide.u32 %offset, %block, 1024;
    add.u64 %to, %to, %offset;
    mul.wide.u32 %offset, %thread, 16;
    add.u64 %from, %from, %offset;
    add.u64 %to, %to, %offset;
    ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%from];
    st.global.v4.u32 [%to], {%w0, %w1, %w2, %w3};
    ret;
}
"""
CHAINS = 16
# Times the chains of a step, so that counting steps costs little.
UNROLLED = 8
INIT = "\n".join(f"    add.f32 %a{k}, %scale, 0f3F80000{k:X};" for k in range(CHAINS))
BODY = "\n".join(f"    fma.rn.f32 %a{k}, %a{k}, %scale, %a{k};" for k in range(CHAINS))
SUM = "\n".join(f"    add.f32 %a0, %a0, %a{k};" for k in range(1, CHAINS))
PTX = PTX.replace(b"INIT", INIT.encode()).replace(b"SUM", SUM.encode())
PTX = PTX.replace(b"BODY", "\n".join([BODY] * UNROLLED).encode()) + b"\0"

ROW = 1024
MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT


class Absent(Exception):
    """There is no card to measure; the message is why."""


class Card:
    """The first card of the driver, with a stream."""

    def __init__(self):
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise Absent("there is no NVIDIA driver (libcuda.so.1) on this machine") from None
        status = self.driver.cuInit(0)
        if status:
            raise Absent(f"the NVIDIA driver has no usable device (error {status})")
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        self.name = name.value.decode()
        count = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), MULTIPROCESSORS, device)
        self.multiprocessors = max(count.value, 1)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX)
        self.events = [ctypes.c_void_p() for _ in range(2)]
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise Absent(f"{name} failed with error {status}")

    def memory(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def free(self, address):
        self.call("cuMemFree_v2", address)

    def function(self, name):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        return function

    def launch(self, function, blocks, threads, *arguments):
        words = [ctypes.c_uint64(getattr(a, "value", a)) for a in arguments]
        pointers = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        sizes = (blocks, 1, 1, threads, 1, 1, 0)
        self.call("cuLaunchKernel", function, *sizes, self.stream, pointers, None)

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)

    def seconds(self, work, times=5):
        """The least seconds on the card of some queued work, by events."""
        best = float("inf")
        for _ in range(times):
            self.call("cuEventRecord", self.events[0], self.stream)
            work()
            self.call("cuEventRecord", self.events[1], self.stream)
            self.wait()
            taken = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(taken), *self.events)
            best = min(best, taken.value * 1e-3)
        return best

    def host_seconds(self, work, times=50):
        """The least seconds of some work from the host and back."""
        best = float("inf")
        for _ in range(times):
            began = time.perf_counter()
            work()
            self.wait()
            best = min(best, time.perf_counter() - began)
        return best


def copy_bandwidth(card, size):
    """Bytes a second, read and written, of a copy within the memory."""
    a, b = card.memory(size), card.memory(size)
    length = ctypes.c_size_t(size)
    seconds = card.seconds(lambda: card.call("cuMemcpyDtoDAsync_v2", a, b, length, card.stream))
    card.free(a)
    card.free(b)
    return 2 * size / seconds


def gather_bandwidth(card, size):
    """The same of rows that lie anywhere."""
    rows = size // ROW
    numbers = list(range(rows))
    random.Random(0).shuffle(numbers)
    a, b, listed = card.memory(size), card.memory(size), card.memory(4 * rows)
    text = struct.pack(f"<{rows}I", *numbers)
    card.call("cuMemcpyHtoDAsync_v2", listed, text, ctypes.c_size_t(len(text)), card.stream)
    gather = card.function("gather")
    seconds = card.seconds(lambda: card.launch(gather, rows, 64, a, b, listed))
    for block in (a, b, listed):
        card.free(block)
    return 2 * size / seconds


def multiply_adds(card, steps):
    """Operations a second of float32 multiply-adds, two each."""
    blocks, threads = 16 * card.multiprocessors, 256
    out = card.memory(4 * blocks * threads)
    function = card.function("multiply_add")
    seconds = card.seconds(lambda: card.launch(function, blocks, threads, out, steps))
    card.free(out)
    return 2 * CHAINS * UNROLLED * steps * blocks * threads / seconds


def measure(size=1 << 30, steps=4096, launches=1000):
    """The ceilings by name, and the card's name."""
    card = Card()
    nothing = card.function("nothing")

    def many():
        for _ in range(launches):
            card.launch(nothing, 1, 32, 0)

    small, host = card.memory(1 << 16), ctypes.create_string_buffer(1 << 16)
    few = ctypes.c_size_t(4096)
    card.seconds(many, 1)  # Warms up.
    return {
        "card": card.name,
        "copy_bytes": copy_bandwidth(card, size),
        "gather_bytes": gather_bandwidth(card, size // 4),
        "multiply_add_flops": multiply_adds(card, steps),
        "queued_launch_seconds": card.seconds(many) / launches,
        "launch_seconds": card.host_seconds(lambda: card.launch(nothing, 1, 32, 0)),
        "to_device_seconds": card.host_seconds(
            lambda: card.call("cuMemcpyHtoDAsync_v2", small, host, few, card.stream)
        ),
        "to_host_seconds": card.host_seconds(
            lambda: card.call("cuMemcpyDtoHAsync_v2", host, small, few, card.stream)
        ),
    }


def main():
    try:
        print(Card().name if "--probe" in sys.argv else json.dumps(measure()))
    except Absent as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()

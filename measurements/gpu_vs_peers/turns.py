# SPDX-License-Identifier: MIT
"""Engines that are called in turns."""
import time

ROUNDS, CALLS, WARM_UP = 4, 5, 5  # every engine is called CALLS times in turn, ROUNDS times


def time_in_turns(engines):
    """Seconds of every call, by engine: {name: (place or None, call)}. Slow engines are called less, but ten times at least (three times
    where a call takes more than five seconds)."""
    seconds, counts = {name: [] for name in engines}, {}
    for name, (place, call) in engines.items():
        for index in range(WARM_UP):
            place(index)
            begin = time.perf_counter()
            call()
            last = time.perf_counter() - begin
            if last > 5:
                break
        counts[name] = CALLS if last < 0.5 else 3 if last < 5 else 1
    for turn in range(ROUNDS):
        for name, (place, call) in engines.items():
            for index in range(counts[name]):
                place(turn * CALLS + index)
                begin = time.perf_counter()
                call()
                seconds[name].append(time.perf_counter() - begin)
    return seconds

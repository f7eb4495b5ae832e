# SPDX-License-Identifier: MIT
"""What a committee costs: boxes of water evaluated by one model, by a committee of several members like it with its spread, and by the same without the spread. The three take
turns, and every call has other positions than the one before. Prints JSON: medians, and the ratio of committee and one model.

  python measure.py LIBRARY [MODEL] [--members 3] [--device cuda] [--precision mixed] [--atoms 192 12288] [--seconds 20] [--threads 1] [--processor-time]

--processor-time counts the time of this process instead of the time that passes: for CPUs that are shared with other work."""
import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import native


def session_of(arguments, model, atoms, has_spread):
    session = native.Session(arguments.library, model, native.water(atoms), arguments.device, arguments.precision, 1.0 if arguments.device != "cpu" else 0.0, arguments.threads)
    if has_spread:
        session.sigma_energy, session.sigma_forces, session.sigma_max = np.full(1, np.nan), np.full(atoms, np.nan), np.full(1, np.nan)
        session.result.sigma_energy_per_atom = session.sigma_energy.ctypes.data
        session.result.sigma_forces = session.sigma_forces.ctypes.data
        session.result.sigma_max_force = session.sigma_max.ctypes.data
    return session


def measure(arguments, atoms):
    clock = time.process_time if arguments.processor_time else time.perf_counter
    committee = ",".join([arguments.model] * arguments.members)
    sessions = {"one": session_of(arguments, arguments.model, atoms, False), "committee": session_of(arguments, committee, atoms, True),
                "mean_alone": session_of(arguments, committee, atoms, False)}
    positions = sessions["one"].shaken()
    seconds = {name: [] for name in sessions}
    for session in sessions.values():
        for place in positions:
            session.place(place)
            session.evaluate()
    end, rounds = time.monotonic() + arguments.seconds, 0
    while rounds < 10 or time.monotonic() < end:
        for name in list(sessions)[::1 if rounds % 2 == 0 else -1]:
            sessions[name].place(positions[rounds % len(positions)])
            begin = clock()
            sessions[name].evaluate()
            seconds[name].append(clock() - begin)
        rounds += 1
    one, together = sessions["one"], sessions["committee"]
    assert np.array_equal(one.forces, together.forces) and not together.sigma_forces.any()  # members that agree
    median = {name: statistics.median(values) for name, values in seconds.items()}
    for session in sessions.values():
        session.free()
    return {"atoms": atoms, **{name: native.spread(values) for name, values in seconds.items()}, "ratio": median["committee"] / median["one"],
            "ratio_without_spread": median["mean_alone"] / median["one"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("model", nargs="?", default="self-test")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="mixed")
    parser.add_argument("--atoms", type=int, nargs="+", default=[192, 12288])
    parser.add_argument("--seconds", type=float, default=20, help="for each size")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processor-time", action="store_true")
    arguments = parser.parse_args()
    print(json.dumps({"gpu": native.gpu_state(), "model": arguments.model, "members": arguments.members, "device": arguments.device, "precision": arguments.precision,
                      "threads": arguments.threads, "sizes": [measure(arguments, atoms) for atoms in arguments.atoms]}, indent=1))


if __name__ == "__main__":
    main()

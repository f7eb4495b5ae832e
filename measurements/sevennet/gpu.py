# SPDX-License-Identifier: MIT
"""SevenNet on one GPU: mlff (energy, forces, stress, neighbour list, copies from and to the host) beside the network of the package sevenn in fp32, plain ("e3nn") and with
cuEquivariance ("cueq"). The package is timed kindly: its graph of neighbours is made beforehand and lies on the device, and results stay there. Engines are called in turns. Forces are
compared, and the run fails if they differ by more than --tolerance of the largest, or are NaN.

  python gpu.py LIBRARY --models FOLDER --output FILE [--cases MODEL:ATOMS:PRECISION[:PEER,...]...] [--device cuda]

FOLDER holds the checkpoints that the package ships (pretrained_potentials). Needs a CUDA build of torch with sevenn and, for cueq, cuequivariance-torch and its operations; cases without
peers need numpy alone. Entries of FILE that are not measured again stay."""
import argparse
import datetime
import importlib
import importlib.metadata
import pathlib
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mace_cpu"), str(HERE.parent / "gpu_vs_peers")]
import native
import package
import report
import systems
from store import Store, is_within
from turns import time_in_turns

CASES = [f"{model}:{atoms}:mixed:e3nn" for model in ("SevenNet-0", "SevenNet-l3i5") for atoms in (8, 192, 1536, 12288)]
PACKAGES = ["sevenn", "torch", "e3nn", "cuequivariance", "cuequivariance-torch", "cuequivariance-ops-torch-cu13"]


def structure(atoms):
    """A cell of silicon, or a box of water."""
    return systems.silicon(1) if atoms == 8 else native.water(atoms)


class Peer:
    def __init__(self, checkpoint, kind, system, device):
        import sevenn._keys as keys
        import torch
        from ase import Atoms
        from sevenn.atom_graph_data import AtomGraphData
        from sevenn.calculator import SevenNetCalculator
        from sevenn.train.dataload import unlabeled_atoms_to_graph
        if kind == "cueq":
            importlib.import_module("cuequivariance_ops_torch")  # without its kernels cuEquivariance falls back to slow ones, with a warning
        self.torch, self.keys, self.device = torch, keys, device
        calculator = SevenNetCalculator(checkpoint, device=device, enable_cueq=kind == "cueq")
        numbers, positions, cell = system
        atoms = Atoms(numbers, positions=positions, cell=cell, pbc=True)
        self.model = calculator.model
        self.data = AtomGraphData.from_numpy_dict(unlabeled_atoms_to_graph(atoms, calculator.cutoff, with_shift=False)).to(device)
        self.edges = int(self.data[keys.EDGE_IDX].shape[1])

    def evaluate(self):
        self.output = self.model(self.data.clone())
        if self.device.startswith("cuda"):
            self.torch.cuda.synchronize()

    def results(self):
        keys = self.keys
        return float(self.output[keys.PRED_TOTAL_ENERGY]), self.output[keys.PRED_FORCE].detach().cpu().double().numpy()


def versions():
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def measure(options, case, store, failures):
    model, atoms, precision, *peers = case.split(":")
    atoms, peers = int(atoms), [peer for peer in (peers[0].split(",") if peers else []) if peer]
    checkpoint = str(options.models / package.CHECKPOINTS[model])
    system = structure(atoms)
    ours = native.Session(options.library, checkpoint, system, options.device, precision, options.skin)
    shaken = ours.shaken()
    for positions in (*shaken[:2], ours.positions):  # the last call is what is compared: a step like those that are timed
        ours.place(positions)
        ours.evaluate()
    energy, forces = float(ours.energy[0]), ours.forces.copy()
    row = {"model": model, "atoms": atoms, "precision": precision, "model_sha256": report.sha256(checkpoint), "commit": options.commit, "date": datetime.date.today().isoformat(),
           "largest_force": float(np.abs(forces).max()), "differences": {}}
    if not np.isfinite(forces).all():
        failures.append(f"{case}: our forces are not finite")
    engines = {"mlff": (lambda index: ours.place(shaken[index % len(shaken)]), ours.evaluate)}
    for kind in peers:
        try:
            peer = Peer(checkpoint, kind, system, options.device)
            peer.evaluate()
            their_energy, their_forces = peer.results()
            difference = float(np.abs(forces - their_forces).max()) / row["largest_force"]
            row["edges"] = peer.edges
            row["differences"][kind] = {"forces_relative": difference, "energy_ev_per_atom": abs(energy - their_energy) / atoms}
            if not is_within(difference, options.tolerance):
                failures.append(f"{case}: forces differ from {kind} by {difference:.2e} of the largest")
            engines[kind] = (lambda index: None, peer.evaluate)
        except Exception as error:  # a peer that fails must not cost our figures
            row[kind] = {"error": repr(error)[:300]}
            failures.append(f"{case}: {kind}: {error!r}"[:400])
    for name, seconds in time_in_turns(engines).items():
        row[name] = native.spread(seconds)
        print(f"{case}: {name} {row[name]['median_ms']:.3f} ms ({row[name]['min_ms']:.3f} to {row[name]['max_ms']:.3f}), {1e3 * row[name]['median_ms'] / atoms:.2f} us/atom", flush=True)
    print(f"{case}: differences {row['differences']}", flush=True)
    ours.free()
    store.put("speed", f"{model}:{atoms}:{precision}", {**row, "gpu": native.gpu_state()})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--skin", type=float, default=0.0)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the largest force: the package computes in fp32")
    parser.add_argument("--commit")
    options = parser.parse_args()
    options.commit = options.commit or subprocess.run(["git", "-C", str(HERE), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip() or "unknown"
    store, failures = Store(options.output), []
    store.update(what="mlff: energy, forces, stress, neighbour list and copies from and to the host; the package: energy, forces and stress, neighbours not counted",
                 gpu=native.gpu_state(), versions=versions(), skin_angstrom=options.skin)
    for case in options.cases:
        try:
            measure(options, case, store, failures)
        except Exception as error:
            failures.append(f"{case}: {error!r}"[:400])
    store.update(failures=failures)
    sys.exit(f"{len(failures)} failed:\n  " + "\n  ".join(failures) if failures else 0)


if __name__ == "__main__":
    main()

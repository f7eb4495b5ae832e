# SPDX-License-Identifier: MIT
"""The data of the student model: splits, shards, the sample; and, where RDKit and tblite are installed, sampling and labels."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

# Threads that wait for each other cost more than molecules of this size take.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models" / "student" / "data"))
from split import ALWAYS_TRAIN, SPLITS, molecule_split, system_split


def missing(*names):
    """The first module that cannot be imported, or None."""
    for name in names:
        try:
            __import__(name)
        except ImportError:
            return name
    return None


def skip_without(*names):
    absent = missing(*names)
    return unittest.skipIf(absent is not None, f"needs {absent}")


class Split(unittest.TestCase):
    def test_simulated_molecules_are_for_training(self):
        for smiles in ("O", "CCO", "c1ccccc1", "CNC(=O)C(C)NC(C)=O"):
            self.assertIn(smiles, ALWAYS_TRAIN)
            self.assertEqual(molecule_split(smiles), "train")

    def test_shares_are_ninety_five_five(self):
        drawn = [molecule_split("C" * i) for i in range(2, 4002)]
        for split, share in zip(SPLITS, (.90, .05, .05)):
            self.assertAlmostEqual(drawn.count(split) / len(drawn), share, delta=.015)

    def test_split_never_changes(self):
        # A changed rule would put test molecules of old data into new training data.
        held_out = {length: molecule_split("C" * length) for length in range(2, 60) if molecule_split("C" * length) != "train"}
        self.assertEqual(held_out, {10: "test", 14: "validation", 19: "validation", 25: "validation", 38: "test", 55: "test"})

    def test_cluster_with_a_held_out_molecule_is_held_out(self):
        molecule = {split: next("C" * i for i in range(2, 4000) if molecule_split("C" * i) == split) for split in SPLITS}
        for seed in range(20):
            self.assertEqual(system_split([molecule["test"], "O"], seed), "test")
            self.assertEqual(system_split(["O", molecule["test"], molecule["validation"]], seed), "test")
            self.assertEqual(system_split(["CCO", molecule["validation"]], seed), "validation")
            self.assertEqual(system_split([molecule["test"]], seed), "test")

    def test_cluster_of_training_molecules_follows_the_set_of_its_molecules(self):
        train = ["C" * i for i in range(2, 300) if molecule_split("C" * i) == "train"]
        found = set()
        for a, b in zip(train, train[1:]):
            split = system_split([a, b], 1)
            found.add(split)
            self.assertEqual(split, system_split([b, a], 2))
            self.assertEqual(split, system_split([b, a, b], 3))
        self.assertEqual(found, set(SPLITS))

    def test_waters_are_split_by_size_and_seed(self):
        drawn = [system_split(["O"] * size, seed) for size in range(2, 22) for seed in range(200)]
        for split, share in zip(SPLITS, (.90, .05, .05)):
            self.assertAlmostEqual(drawn.count(split) / len(drawn), share, delta=.015)
        self.assertEqual(system_split(["O"], 5), "train")


@skip_without("numpy")
class Shards(unittest.TestCase):
    def frames(self, count):
        import numpy as np
        rng = np.random.default_rng(0)
        for index in range(count):
            atoms = 1 + index % 5
            yield {"numbers": rng.choice([1, 6, 17], atoms), "positions": rng.normal(size=(atoms, 3)).astype(np.float32),
                   "forces": rng.normal(size=(atoms, 3)).astype(np.float32), "energy": -1000 / 3 * index, "system": "C" * atoms,
                   "split": index % 3, "kind": index % 8, "temperature": 300.0, "task": index // 2}

    def test_what_is_written_is_read(self):
        import numpy as np
        from shards import frames_of, read_shard, shard_paths, write_shard
        frames = list(self.frames(17))
        with tempfile.TemporaryDirectory() as folder:
            write_shard(pathlib.Path(folder) / "shard-0-0000000.npz", frames, {"tasks": [0, 1], "rejected": {"xTB failed": 2}})
            (path,) = shard_paths(folder)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [path])
            shard = read_shard(path)
        self.assertEqual(shard["meta"]["tasks"], [0, 1])
        self.assertEqual(shard["meta"]["rejected"], {"xTB failed": 2})
        read = list(frames_of(shard))
        self.assertEqual(len(read), len(frames))
        for before, after in zip(frames, read):
            for name, value in before.items():
                self.assertTrue(np.array_equal(value, after[name]), name)

    def test_xyz_holds_the_same_values(self):
        import numpy as np
        from shards import KINDS
        from to_xyz import frame_text
        for frame in self.frames(8):
            count, comment, *lines = frame_text(frame).splitlines()
            self.assertEqual(int(count), len(lines))
            self.assertEqual(float(re.search(r"energy=(\S+)", comment)[1]), round(frame["energy"], 10))
            self.assertIn(f'split={SPLITS[frame["split"]]} kind={KINDS[frame["kind"]]}', comment)
            values = np.array([line.split()[1:] for line in lines], np.float32)
            self.assertTrue(np.array_equal(values[:, :3], frame["positions"]))
            self.assertTrue(np.array_equal(values[:, 3:], frame["forces"]))

    def test_draw_takes_every_kind_and_new_systems_first(self):
        from to_xyz import drawn
        frames = [{"kind": kind, "system": str(system), "copy": copy} for kind in (0, 3) for system in range(10) for copy in range(5)]
        chosen = drawn(frames, 20, seed=1)
        self.assertEqual(len({(frame["kind"], frame["system"]) for frame in chosen}), 20)
        self.assertEqual(len(drawn(frames, 1000, seed=1)), 100)


@skip_without("numpy")
class Sample(unittest.TestCase):
    """tests/data/student_frames.xyz, made by to_xyz.py from the test split."""

    @classmethod
    def setUpClass(cls):
        import numpy as np
        cls.frames = []
        lines = iter((ROOT / "tests" / "data" / "student_frames.xyz").read_text().splitlines())
        for count in lines:
            comment = next(lines)
            rows = [next(lines).split() for _ in range(int(count))]
            cls.frames.append((comment, [row[0] for row in rows], np.array([row[1:] for row in rows], float)))

    def test_every_frame_is_of_the_test_split_and_sane(self):
        import numpy as np
        self.assertEqual(len(self.frames), 200)
        for comment, symbols, values in self.frames:
            self.assertLessEqual(set(symbols), {"H", "C", "N", "O", "F", "S", "Cl"})
            self.assertEqual(re.search(r"split=(\S+)", comment)[1], "test")
            members = re.search(r'molecule="(.*)" pbc', comment)[1].split(".")
            if set(members) != {"O"}:
                self.assertEqual(system_split(members, None), "test")
            forces = values[:, 3:]
            self.assertTrue((np.sqrt((forces * forces).sum(-1)) <= 30).all())
            self.assertTrue((np.abs(forces.sum(0)) < 1e-3).all(), "forces of a free molecule add up to nothing")
            gap = values[:, None, :3] - values[None, :, :3]
            distance = np.sqrt((gap * gap).sum(-1)) + 10 * np.eye(len(values))
            self.assertTrue((distance >= 0.5).all())
            self.assertLess(float(re.search(r"energy=(\S+)", comment)[1]), 0)

    @skip_without("tblite")
    def test_labels_repeat(self):
        import numpy as np
        from labelling import Labeller
        number = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9, "S": 16, "Cl": 17}
        for comment, symbols, values in self.frames[::20]:
            energy, forces = Labeller([number[symbol] for symbol in symbols])(values[:, :3])
            self.assertAlmostEqual(energy, float(re.search(r"energy=(\S+)", comment)[1]), delta=1e-5)
            self.assertTrue((np.abs(forces - values[:, 3:]) < 1e-3).all())


@skip_without("numpy", "rdkit")
class Molecules(unittest.TestCase):
    def test_list_is_repeatable_and_grown_molecules_are_acceptable(self):
        from rdkit import Chem
        from make_molecules import acceptable, canonical, make
        molecules = make(2600, seed=3)
        self.assertEqual(molecules, make(2600, seed=3))
        smiles = [molecule["smiles"] for molecule in molecules]
        self.assertEqual(len(set(smiles)), 2600)
        self.assertLessEqual(ALWAYS_TRAIN, set(smiles))
        for molecule in molecules:
            self.assertEqual(molecule["split"], molecule_split(molecule["smiles"]))
            read = Chem.MolFromSmiles(molecule["smiles"])
            self.assertEqual(canonical(read), molecule["smiles"])
            self.assertEqual(Chem.GetFormalCharge(read), 0)
            if molecule["source"] != "known":
                self.assertTrue(acceptable(read), molecule["smiles"])

    def test_absurd_groups_are_found(self):
        from rdkit import Chem
        from make_molecules import acceptable
        for smiles in ("COOOC", "CNNNNC", "C1CC=C=C1", "C1CC#CC1", "C[N+](C)(F)[O-]", "COOF"):
            self.assertFalse(acceptable(Chem.MolFromSmiles(smiles)), smiles)
        for smiles in ("CCO", "CC(=O)N", "C[N+](=O)[O-]", "CS(C)(=O)=O", "c1nn[nH]n1", "CC(O)OC", "COOC", "CN=[N+]=[N-]", "C=C=C=O", "CSSC", "CNF", "C[N+](C)(C)[O-]"):
            self.assertTrue(acceptable(Chem.MolFromSmiles(smiles)), smiles)


@skip_without("numpy", "rdkit", "tblite")
class Sampling(unittest.TestCase):
    def test_mmff_forces_belong_to_the_positions_given(self):
        import numpy as np
        from sampling import KCAL_PER_MOL, System, conformer
        rng = np.random.default_rng(0)
        system = System(["CCO"])
        positions = conformer(system.members[0], rng)
        system.field_forces(positions)
        positions = positions + rng.normal(0, .05, positions.shape)
        forces, step = system.field_forces(positions), 1e-4
        for place in np.ndindex(positions.shape):
            energies = []
            for sign in (1, -1):
                moved = positions.copy()
                moved[place] += sign * step
                energies.append(system.field_of_force().CalcEnergy(moved.ravel().tolist()))
            self.assertAlmostEqual(-(energies[0] - energies[1]) / (2 * step) * KCAL_PER_MOL, forces[place], delta=1e-5)

    def test_dynamics_has_the_temperature_asked_for(self):
        import numpy as np
        from sampling import BOLTZMANN, langevin
        # Independent oscillators: <k x^2> = kT.
        stiffness, temperature = 5.0, 400.0
        seen = [x for x in langevin(lambda x: -stiffness * x, np.zeros((300, 3)), np.full(300, 12.0), temperature, 20, 60,
                                    np.random.default_rng(1), settle=300)]
        self.assertAlmostEqual(stiffness * np.mean(np.square(seen)) / (BOLTZMANN * temperature), 1, delta=.04)

    def test_placed_molecules_touch_as_asked(self):
        import numpy as np
        from sampling import System, assemble, contact
        system = System(["CCO", "O"])
        x, n = assemble(system, [1.9], np.random.default_rng(2)), system.sizes[0]
        self.assertAlmostEqual(contact(system.numbers[:n], x[:n], system.numbers[n:], x[n:]), 1.9, delta=1e-6)

    def test_labels_are_the_slope_of_the_energy(self):
        import numpy as np
        from labelling import Labeller
        from sampling import System, conformer
        system = System(["CC(N)=O"])
        labeller, step = Labeller(system.numbers), 2e-3
        positions = conformer(system.members[0], np.random.default_rng(0))
        forces = labeller(positions)[1]
        for place in ((0, 0), (2, 1), (5, 2)):
            energies = []
            for sign in (1, -1):
                moved = positions.copy()
                moved[place] += sign * step
                energies.append(labeller(moved)[0])
            self.assertAlmostEqual(-(energies[0] - energies[1]) / (2 * step), forces[place], delta=1e-3)

    def test_bad_frames_are_rejected_by_name(self):
        import numpy as np
        from labelling import Labeller, Rejected
        for gap, reason in ((0.3, "closer"), (0.6, "force above"), (float("nan"), "not finite")):
            with self.assertRaisesRegex(Rejected, reason):
                Labeller([7, 7])(np.array([[0, 0, 0], [0, 0, gap]]))

    def test_tasks_repeat_and_cover_every_kind(self):
        import json
        import numpy as np
        from tasks import TASKS, Molecules as Order, Task, plan
        names = ("C", "O", "CO", "CCO", "CC#N", "CS", "CF")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "molecules.jsonl"
            path.write_text("".join(json.dumps({"smiles": name, "heavy": len(name) - name.count("#"), "source": "grown"}) + "\n" for name in names))
            order, kinds = Order(path, 1), {}
            for index in range(400):
                kind, members, rng = plan(index, order, 1)
                if kind not in kinds and len(members) <= 6:
                    kinds[kind] = index
            self.assertEqual(set(kinds), set(TASKS))
            for index in kinds.values():
                made = []
                for _ in range(2):
                    kind, members, rng = plan(index, order, 1)
                    task = Task(index, kind, members, rng, 1)
                    task.run()
                    made.append(task.frames)
                self.assertGreater(len(made[0]), 0, kind)
                self.assertEqual(len(made[0]), len(made[1]))
                for one, two in zip(*made):
                    self.assertTrue(np.array_equal(one["positions"], two["positions"]))
                    self.assertAlmostEqual(one["energy"], two["energy"], delta=1e-6)


if __name__ == "__main__":
    unittest.main()

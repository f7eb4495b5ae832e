# SPDX-License-Identifier: MIT
"""What measurements/kappa computes itself: errors of conductivities, shares of modes, options, files. Neither phono3py nor a network is needed."""
import json
import math
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "measurements" / "kappa"))
import metrics

MODES = {"weights": [1, 3], "modes": [[2.0, 6.0], [12.0, 4.0]]}  # 24 in 4 wave vectors: 6


class Errors(unittest.TestCase):
    def test_sre_is_symmetric_and_relative(self):
        self.assertAlmostEqual(metrics.sre(3.0, 1.0), 1.0, delta=1e-15)
        self.assertAlmostEqual(metrics.sre(1.0, 3.0), 1.0, delta=1e-15)
        self.assertEqual(metrics.sre(5.0, 5.0), 0.0)
        self.assertEqual(metrics.sre(0.0, 5.0), 2.0)

    def test_sre_is_that_of_the_published_table(self):
        for row in json.loads((ROOT / "measurements" / "kappa" / "published.json").read_text())["rows"]:
            self.assertAlmostEqual(metrics.sre(row["sevennet"], row["dft"]), row["sre"], delta=1e-4, msg=row["formula"])
            self.assertLessEqual(row["sre"], row["srme"], row["formula"])

    def test_no_conductivity_is_the_largest_error(self):
        for found in (None, math.nan, math.inf, -1.0):
            self.assertEqual(metrics.sre(found, 5.0), 2.0)
        self.assertEqual(metrics.srme(None, MODES), 2.0)
        self.assertEqual(metrics.srme({"weights": [1, 3], "modes": [[2.0, math.nan], [12.0, 4.0]]}, MODES), 2.0)

    def test_reference_must_be_a_conductivity(self):
        for reference in (None, math.nan, 0.0, -1.0):
            with self.assertRaises(ValueError):
                metrics.sre(1.0, reference)

    def test_srme_sees_errors_that_cancel_in_the_total(self):
        self.assertEqual(metrics.total_of_modes(**MODES), 6.0)
        self.assertEqual(metrics.srme(MODES, MODES), 0.0)
        other = {"weights": [1, 3], "modes": [[6.0, 2.0], [4.0, 12.0]]}
        self.assertEqual(metrics.sre(metrics.total_of_modes(**other), 6.0), 0.0)
        self.assertAlmostEqual(metrics.srme(other, MODES), 2 * 24 / 4 / 12, delta=1e-15)

    def test_srme_is_at_least_the_sre(self):
        other = {"weights": [1, 3], "modes": [[1.0, 5.0], [9.0, 6.0]]}
        self.assertAlmostEqual(metrics.srme(other, MODES), 2 * 7 / 4 / 11.25, delta=1e-15)
        self.assertGreaterEqual(metrics.srme(other, MODES), metrics.sre(metrics.total_of_modes(**other), 6.0))

    def test_srme_needs_the_same_wave_vectors_and_modes(self):
        for other in ({"weights": [2, 2], "modes": MODES["modes"]}, {"weights": [1, 3], "modes": [[2.0], [12.0, 4.0]]}):
            with self.assertRaises(ValueError):
                metrics.srme(other, MODES)


class Modes(unittest.TestCase):
    def test_shares_add_up_and_follow_heat_capacities(self):
        pairs = [[5.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 2.0]]
        shares = metrics.share_of_modes(pairs, [1.0, 3.0, 1.0])
        self.assertEqual(shares, [5.0 + 2.0 / 4 + 0.5, 3.0 + 1.5, 2.0 + 0.5])
        self.assertAlmostEqual(sum(shares), sum(map(sum, pairs)), delta=1e-14)

    def test_average_is_of_the_diagonal(self):
        self.assertEqual(metrics.average([1.0, 2.0, 6.0, 9.0, 9.0, 9.0]), 3.0)

    def test_imaginary_modes(self):
        self.assertFalse(metrics.has_imaginary_modes([[-0.005, 0.0, 0.001, 4.0], [1.0, 1.0, 2.0, 4.0]], [True, False]))
        for frequencies in ([[-0.02, 0.0, 0.0, 4.0], [1.0, 1.0, 2.0, 4.0]], [[0.0, 0.0, 0.0, 4.0], [-0.005, 1.0, 2.0, 4.0]]):
            self.assertTrue(metrics.has_imaginary_modes(frequencies, [True, False]))


class Text(unittest.TestCase):
    def test_counts(self):
        self.assertEqual(metrics.three_counts("4"), [4, 4, 4])
        self.assertEqual(metrics.three_counts("3,3,2"), [3, 3, 2])
        for text in ("", "2,2", "0", "2,2,-1", "x", "1.5"):
            with self.assertRaisesRegex(ValueError, "2 or 3,3,2"):
                metrics.three_counts(text)

    def test_temperatures(self):
        self.assertEqual(metrics.temperatures("300,100.5"), [300.0, 100.5])
        for text in ("", "0", "300,-1", "nan", "warm"):
            with self.assertRaisesRegex(ValueError, "temperatures in K"):
                metrics.temperatures(text)

    def test_frames_keep_all_digits(self):
        text = metrics.frame([[0.1 + 0.2, 0, 0], [0, 1 / 3, 0], [0, 0, 2]], ["Na", "Cl"], [[0, 0, 0], [1e-17, 2 / 3, -1]])
        lines = text.splitlines()
        self.assertEqual(lines[0], "2")
        lattice = [float(word) for word in re.search(r'Lattice="(.*?)"', lines[1]).group(1).split()]
        self.assertEqual(lattice, [0.1 + 0.2, 0, 0, 0, 1 / 3, 0, 0, 0, 2])
        self.assertEqual([float(word) for word in lines[3].split()[1:]], [1e-17, 2 / 3, -1])

    def test_forces(self):
        answer = {"frames": [{"forces": [[1.0, 2.0, 3.0]]}, {"forces": [[4.0, 5.0, 6.0]]}]}
        self.assertEqual(metrics.forces_of_frames(answer, 1, 2), [[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]])
        for atoms, frames in ((1, 3), (2, 2)):
            with self.assertRaises(ValueError):
                metrics.forces_of_frames(answer, atoms, frames)
        with self.assertRaises(ValueError):
            metrics.forces_of_frames({"frames": [{"forces": [[1.0, math.nan, 3.0]]}]}, 1, 1)


class Documentation(unittest.TestCase):
    def test_the_page_has_what_was_measured(self):
        page = (ROOT / "docs" / "thermal-conductivity.md").read_text()
        measured = json.loads((ROOT / "measurements" / "results" / "kappa.json").read_text())
        published = {row["formula"]: row for row in json.loads((ROOT / "measurements" / "kappa" / "published.json").read_text())["rows"]}
        for item in measured["structures"]:
            row = [cell.strip() for cell in re.search(rf"^\| {item['formula']} .*$", page, re.MULTILINE).group().strip("|").split("|")]
            reference = published.get(item["formula"])
            self.assertAlmostEqual(float(row[2]), item["kappa"][0], delta=0.5 * 10 ** -len(row[2].partition(".")[2]) + 1e-12)
            self.assertEqual(row[3:5], [f"{reference['sevennet']:g}", f"{reference['dft']:g}"] if reference else ["", ""])
            if reference:
                self.assertAlmostEqual(float(row[5]), metrics.sre(item["kappa"][0], reference["dft"]), delta=0.00051)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""mlff serve, driven by i-PI itself: NVE and a path-integral run. Usage: test_ipi.py MLFF GOLDEN_DIR SYSTEMS_DIR README"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from numbers_test import MLFF, SYSTEMS_DIR, NumbersTest, command_frames

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "ipi.md")
BOHR, HARTREE = 0.529177210903, 27.211386245988
SECONDS = 120
EXACT = ("--device", "cpu", "--precision", "fp64")


MORE_OUTPUT = "<trajectory filename='f' stride='%d' format='xyz'> forces </trajectory> <checkpoint filename='chk' stride='%d' overwrite='false'/>"


def input_of_page():
    with open(PAGE) as file:
        (text,) = re.findall(r"```xml\n(.*?)```", file.read(), re.S)
    return text


class Ipi(NumbersTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("water_box", "benzene"):
            shutil.copy(os.path.join(SYSTEMS_DIR, name + ".xyz"), self.folder)
        # Not the socket of another test that runs on this machine.
        self.address = "mlff_test_%d" % os.getpid()

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_ipi(self, text, file, clients=1, options=(), connection=None):
        """Clients begin before the server, and must wait for it. Their outputs."""
        with open(self.path("input.xml"), "w") as out:
            out.write(text)
        command = [MLFF, "serve", file, *(connection or ("--unix", self.address)), *EXACT, "--threads", "1", *options]
        processes = [subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(clients)]
        for process in processes:
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.kill)
        server = subprocess.run([os.path.join(os.path.dirname(sys.executable), "i-pi"), "input.xml"], cwd=self.folder, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(server.returncode, 0, server.stdout + server.stderr)
        outputs = []
        for process in processes:
            out, err = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, err), (0, ""), out)
            outputs.append(out)
        return outputs

    def checkpoints(self, prefix, template):
        """[bead][frame] of what `mlff eval` says about the positions in i-PI's checkpoints, which have all digits, and the positions themselves, in angstrom."""
        with open(self.path(template)) as file:
            lines = file.readlines()
        atoms, frames = int(lines[0]), []
        for name in sorted(name for name in os.listdir(self.folder) if name.startswith(prefix + ".chk_")):
            with open(self.path(name)) as file:
                (numbers,) = re.findall(r"<q [^>]*>\s*\[(.*?)\]", file.read(), re.S)
            frames.append(BOHR * np.array([float(x) for x in numbers.replace("\n", " ").split(",")]).reshape(-1, atoms, 3))
        with open(self.path("frames.xyz"), "w") as file:
            for frame in frames:
                for bead in frame:
                    file.writelines(lines[:2])
                    file.writelines("%s %.14f %.14f %.14f\n" % (line.split()[0], *row) for line, row in zip(lines[2:], bead))
        wanted = command_frames(self.path("frames.xyz"), "--precision", "fp64", "--device", "cpu")
        beads = len(frames[0])
        return [wanted[bead::beads] for bead in range(beads)], frames

    def forces(self, name):
        """Of all frames that i-PI wrote, in eV/angstrom. It writes six digits, in atomic units: those that it has for angstrom and electronvolt are rounded."""
        with open(self.path(name)) as file:
            lines = file.readlines()
        size = int(lines[0]) + 2
        return [np.array([[float(x) for x in line.split()[1:4]] for line in lines[k + 2:k + size]]) * HARTREE / BOHR for k in range(0, len(lines), size)]

    def check_forces(self, found, wanted):
        self.assertEqual(len(found), len(wanted))
        for forces, frame in zip(found, wanted):
            largest = np.abs(frame["forces"]).max()
            self.assertGreater(largest, 0.1)
            self.assert_close(forces, frame["forces"], 2e-5 * max(1, largest))  # the angstrom of i-PI is 1.3e-8 off, which its cell shows

    def test_the_example_of_the_page(self):
        text = input_of_page().replace("<address> water </address>", "<address> %s </address>" % self.address)
        text = text.replace("</output>", MORE_OUTPUT % (10, 10) + "<properties stride='10' filename='exact'> [ potential ] </properties></output>")
        (out,) = self.run_ipi(text, "water_box.xyz")
        self.assertIn("i-PI said EXIT after 41 evaluations", out)
        table = np.loadtxt(self.path("water.out"))
        self.assertEqual(table.shape, (41, 5))
        self.assertTrue(np.isfinite(table).all())
        conserved, kinetic = table[:, 2], table[:, 4]
        self.assertGreater(np.ptp(kinetic), 0.5)  # eV: energy is exchanged
        self.assertLess(np.abs(conserved - conserved[0]).max(), 0.02 * np.ptp(kinetic))
        (wanted,), _ = self.checkpoints("water", "water_box.xyz")
        self.assertEqual(len(wanted), 5)
        self.assert_close(np.loadtxt(self.path("water.exact")) * HARTREE, [frame["energy"] for frame in wanted], 1e-4)  # i-PI writes 9 digits
        self.check_forces(self.forces("water.f_0.xyz"), wanted)
        with open(self.path("water.pos_0.xyz")) as file:
            self.assertEqual(len(file.readlines()), 5 * 194)

    def test_four_beads_by_two_clients_over_tcp(self):
        text = """<simulation verbosity='low'>
          <output prefix='ring'>
            <properties stride='1' filename='out'> [ step, conserved{electronvolt}, potential ] </properties>
            %s
          </output>
          <total_steps> 10 </total_steps> <prng> <seed> 3 </seed> </prng>
          <ffsocket name='mlff' mode='inet' pbc='false'> <address> localhost </address> <port> %d </port> </ffsocket>
          <system>
            <initialize nbeads='4'>
              <file mode='xyz' units='angstrom'> benzene.xyz </file>
              <cell mode='abc' units='angstrom'> [ 30, 30, 30 ] </cell>
              <velocities mode='thermal' units='kelvin'> 1200 </velocities>
            </initialize>
            <forces> <force forcefield='mlff'/> </forces>
            <ensemble> <temperature units='kelvin'> 300 </temperature> </ensemble>
            <motion mode='dynamics'>
              <dynamics mode='nvt'> <timestep units='femtosecond'> 0.25 </timestep>
                <thermostat mode='pile_g'> <tau units='femtosecond'> 25 </tau> </thermostat> </dynamics>
            </motion>
          </system>
        </simulation>"""
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        outputs = self.run_ipi(text % (MORE_OUTPUT % (5, 5), port), "benzene.xyz", clients=2, connection=("--ipi", "localhost:%d" % port))
        counts = [int(re.search(r"EXIT after (\d+) evaluations", out).group(1)) for out in outputs]
        self.assertEqual(sum(counts), 4 * 11)
        self.assertGreater(min(counts), 0)
        table = np.loadtxt(self.path("ring.out"))
        self.assertTrue(np.isfinite(table).all())
        self.assertLess(np.ptp(table[:, 1]), 0.05)  # eV, beads and thermostat included
        wanted, frames = self.checkpoints("ring", "benzene.xyz")
        self.assertEqual((len(wanted), len(wanted[0])), (4, 3))
        for bead in range(4):
            self.check_forces(self.forces("ring.f_%d.xyz" % bead), wanted[bead])
        self.assertGreater(np.abs(frames[-1][0] - frames[-1][1]).max(), 1e-3)  # they have moved apart
        energies = [[frame["energy"] for frame in bead] for bead in wanted]
        # i-PI's potential is the mean over the beads.
        self.assert_close(table[::5, 2] * HARTREE, np.mean(energies, axis=0), 1e-4)

    def test_a_skewed_cell_and_the_virial(self):
        """Stress and cell of i-PI, whose lattice vectors are columns, against those of the command."""
        text = input_of_page().replace("<address> water </address>", "<address> %s </address>" % self.address).replace("<total_steps> 40 </total_steps>", "<total_steps> 1 </total_steps>")
        text = text.replace("<cell mode='abc' units='angstrom'> [ 12.4172, 12.4172, 12.4172 ] </cell>",
                            "<cell mode='manual' units='angstrom'> [ 12.6, 0.9, -0.7, 0, 12.5, 1.1, 0, 0, 12.4172 ] </cell>")
        text = text.replace("</output>", "<properties stride='1' filename='virial'> [ potential, virial_md ] </properties></output>")
        self.run_ipi(text, "water_box.xyz")
        table = np.loadtxt(self.path("water.virial"))
        with open(self.path("water_box.xyz")) as file:
            lines = file.readlines()
        lines[1] = 'Lattice="12.6 0 0 0.9 12.5 0 -0.7 1.1 12.4172" Properties=species:S:1:pos:R:3 pbc="T T T"\n'
        with open(self.path("skewed.xyz"), "w") as file:
            file.writelines(lines)
        (wanted,) = command_frames(self.path("skewed.xyz"), "--precision", "fp64", "--device", "cpu")
        self.assert_close(table[0, 0] * HARTREE, wanted["energy"], 1e-4)
        self.assertGreater(np.abs(wanted["stress"]).max(), 1e-3)
        # xx yy zz xy xz yz, minus the stress, in hartree/bohr^3.
        order = [0, 1, 2, 5, 4, 3]
        self.assert_close(table[0, 1:7] * HARTREE / BOHR**3, [-wanted["stress"][k] for k in order], 1e-7)

    def test_a_server_that_goes_and_a_signal(self):
        """A server of our own: it hangs up, comes back, and has other atoms."""
        path = self.path("socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(SECONDS)
            listener.bind(path)
            listener.listen()
            client = subprocess.Popen([MLFF, "serve", "benzene.xyz", "--unix", path, *EXACT, "--wait", "30"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(client.kill)
            listener.accept()[0].close()
            with listener.accept()[0] as connection:  # it tries again
                connection.sendall(b"STATUS      ")
                self.assertEqual(connection.recv(12, socket.MSG_WAITALL), b"NEEDINIT    ")
                connection.sendall(b"POSDATA     " + np.zeros(18).tobytes() + np.int32(11).tobytes())
                out, err = client.communicate(timeout=SECONDS)
            self.assertEqual(client.returncode, 3, out + err)
            self.assertEqual(err, "mlff: the i-PI server sent 11 atoms, expected 12\n")
            self.assertIn("connected again", out)

            client = subprocess.Popen([MLFF, "serve", "benzene.xyz", "--unix", path, *EXACT], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(client.kill)
            with listener.accept()[0] as connection:
                connection.sendall(b"STATUS      ")
                connection.recv(12, socket.MSG_WAITALL)
                client.send_signal(signal.SIGINT)
                out, err = client.communicate(timeout=SECONDS)
            self.assertEqual((client.returncode, err), (130, ""))
            self.assertIn("stopped by a signal after 0 evaluations", out)

            client = subprocess.Popen([MLFF, "serve", "benzene.xyz", "--unix", path, *EXACT, "--wait", "0"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(client.kill)
            connection = listener.accept()[0]
            listener.close()
            os.remove(path)
            connection.close()
            out, err = client.communicate(timeout=SECONDS)
            self.assertEqual(client.returncode, 3, out + err)
            self.assertEqual(err, "mlff: the server at %s closed the connection after 0 evaluations and requested none in the last 0 s\n" % path)

    def test_errors(self):
        def serve(*arguments):
            return subprocess.run([MLFF, "serve", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=SECONDS)

        for arguments, code, words in (
            (("benzene.xyz", "--unix", self.address, "--wait", "0"), 3, "no i-PI server at /tmp/ipi_" + self.address),
            (("benzene.xyz", "--ipi", "localhost:1", "--wait", "0"), 3, "no i-PI server at localhost:1"),
            (("benzene.xyz", "--ipi", "localhost"), 2, "is not HOST:PORT"),
            (("benzene.xyz",), 2, "--ipi HOST:PORT or --unix NAME"),
            (("benzene.xyz", "--ipi", "localhost:1", "--unix", "a"), 2, "excludes"),
            (("nowhere.xyz", "--unix", self.address), 3, "nowhere.xyz"),
        ):
            result = serve(*arguments)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

# SPDX-License-Identifier: MIT
"""What the tests of the command have in common: a folder for each test, and errors that are one sentence."""
import os
import tempfile
import unittest


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
        return path

    def assert_fails(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, "one sentence: " + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        if code == 2:  # bad usage
            self.assertRegex(result.stderr, r" \(try 'mlff( [a-z]+)* --help'\)\n$")

# SPDX-License-Identifier: MIT
"""Parts of teachers.py that need no torch. Usage: test_teachers.py TEACHERS"""
import importlib.util
import os
import sys
import tempfile
import unittest

TEACHERS = sys.argv.pop(1)
specification = importlib.util.spec_from_file_location("teachers", TEACHERS)
teachers = importlib.util.module_from_spec(specification)
specification.loader.exec_module(teachers)


class CuEquivarianceWithoutNvml(unittest.TestCase):
    """A package that behaves at its import as cuEquivariance before 0.9 does under WSL 2, or otherwise."""

    def setUp(self):
        self.lines = []
        teachers.log = lambda level, line: self.lines.append((level, line))
        self.folder = tempfile.TemporaryDirectory()
        sys.path.insert(0, self.folder.name)

    def tearDown(self):
        sys.path.remove(self.folder.name)
        sys.modules.pop("cuequivariance_torch", None)
        self.folder.cleanup()

    def try_import(self, source):
        with open(os.path.join(self.folder.name, "cuequivariance_torch.py"), "w") as file:
            file.write(source)
        importlib.invalidate_caches()
        arguments = {"cueq": True}
        with teachers.e3nn_instead(arguments):
            teachers.import_for("cuequivariance_torch", "a test")
        return arguments["cueq"]

    def test_nvml_does_not_know(self):
        self.assertFalse(self.try_import("class NVMLError_NotSupported(Exception):\n    pass\nraise NVMLError_NotSupported('Not Supported')\n"))
        (level, line), = self.lines
        self.assertEqual(level, teachers.WARNING)
        for words in "cueq=1", "NVMLError_NotSupported: Not Supported", "WSL 2", "e3nn computes":
            self.assertIn(words, line)

    def test_it_works(self):
        self.assertTrue(self.try_import("VERSION = 1\n"))
        self.assertEqual(self.lines, [])

    def test_other_errors_stay_errors(self):
        with self.assertRaisesRegex(ValueError, "broken"):
            self.try_import("raise ValueError('broken')\n")
        with self.assertRaisesRegex(teachers.TeacherError, "needs the Python module 'no_such_module'"):
            self.try_import("import no_such_module\n")
        self.assertEqual(self.lines, [])


unittest.main()

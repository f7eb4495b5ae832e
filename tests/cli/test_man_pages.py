# SPDX-License-Identifier: MIT
"""--help and the man pages: complete, alike, and without warnings of groff. Usage: test_man_pages.py MLFF"""
import collections
import os
import re
import shutil
import subprocess
import sys
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
# Options that mean something else in some commands, or say more there.
DIFFERENT = {"--calibrate", "--dt", "--forces", "--licence", "--no-relax", "--output", "--pressure", "--quick", "--smax", "--steps", "--temperature", "--temperatures"}


def run(*arguments):
    return subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=60)


def entries(text, heading):
    """The entries of a group of --help: (title, description)."""
    found, is_inside = [], False
    for line in text.splitlines():
        if re.match(r"\S", line):
            is_inside = line.lower() == heading.lower() + ":"
        elif is_inside and re.match(r"  \S", line):
            title, _, description = line.strip().partition("  ")
            found.append([title, description.strip()])
        elif is_inside and line.strip():
            found[-1][1] = (found[-1][1] + " " + line.strip()).strip()
    return found


def options(text):
    """All options of --help, whatever their group: (title, description)."""
    headings = re.findall(r"^(\S.*):$", text.split("\n\nExamples:")[0], re.MULTILINE)
    return [entry for heading in headings for entry in entries(text, heading) if entry[0].startswith("-")]


def plain(page):
    """The text of a page without its roff."""
    for escape, character in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\fB", ""), (r"\fI", ""), (r"\fR", ""), (r"\&", ""), (r"\e", "\\")):
        page = page.replace(escape, character)
    return page


class Help(CommandTest):
    def setUp(self):
        super().setUp()
        self.folder_of_pages = self.path("man")
        written = run("--write-man-pages", self.folder_of_pages)
        self.assertEqual((written.returncode, written.stdout, written.stderr), (0, "", ""))
        self.commands = [name for name, _ in entries(run("--help").stdout, "Commands")]
        self.assertGreater(len(self.commands), 12)

    def page(self, name):
        with open(os.path.join(self.folder_of_pages, name)) as file:
            return file.read()

    def all_help(self):
        """(arguments before --help, page, text of --help) of every command and of those below it."""
        yield [], "mlff.1", run("--help").stdout
        for command in self.commands:
            text = run(command, "--help").stdout
            yield [command], f"mlff-{command}.1", text
            for nested, _ in entries(text, "Commands"):
                yield [command, nested], f"mlff-{command}.1", run(command, nested, "--help").stdout

    def test_every_command_has_a_page(self):
        self.assertEqual(sorted(os.listdir(self.folder_of_pages)), sorted(["mlff.1"] + [f"mlff-{command}.1" for command in self.commands]))
        for name in os.listdir(self.folder_of_pages):
            sections = re.findall(r"^\.SH (.*)$", self.page(name), re.MULTILINE)
            self.assertEqual([section for section in sections if section not in ("COMMANDS", "ENVIRONMENT")],
                             ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"], name)
            for section, text in re.findall(r"^\.SH (.*)\n((?:(?!\.SH ).*\n)+)", self.page(name), re.MULTILINE):
                self.assertTrue(text.strip(), f"{section} of {name}")

    def test_a_page_has_what_help_has(self):
        for arguments, page, text in self.all_help():
            with self.subTest(command=" ".join(arguments)):
                found = plain(self.page(page))
                shown = options(text) + entries(text, "Arguments")
                self.assertIn("-h, --help", [title for title, _ in shown])
                for title, description in shown:
                    self.assertTrue(description, title)
                    self.assertIn(f".TP\n{title}\n{description}\n", found)
                for line in text.split("Examples:\n")[-1].splitlines() if "Examples:" in text else []:
                    self.assertIn(line.strip().removeprefix("# "), found)

    def test_examples_are_commands_with_known_options(self):
        known = {tuple(arguments): {name for title, _ in options(text) for name in re.findall(r"--[\w-]+", title)} for arguments, _, text in self.all_help()}
        for arguments, _, text in self.all_help():
            self.assertEqual("Examples:" in text, len(arguments) < 2)
            for line in text.split("Examples:\n")[-1].splitlines() if "Examples:" in text else []:
                if line.startswith("  mlff "):
                    words = re.sub(r'"[^"]*"', "TEXT", line).split()[1:]
                    command = tuple(words[:2]) if tuple(words[:2]) in known else tuple(words[:1])
                    self.assertLessEqual({word for word in words if word.startswith("--")}, known[command], line)

    def test_the_same_option_has_the_same_words(self):
        texts = collections.defaultdict(set)
        for arguments, _, text in self.all_help():
            for title, description in options(text):
                name = re.sub(r"-[ab]$", "", title.split()[0]) if arguments == ["compare"] else title.split()[0]
                texts[name].add(re.sub(r" \((default|not with).*", "", description))
        for name, descriptions in texts.items():
            if name not in DIFFERENT:
                self.assertEqual(len(descriptions), 1, f"{name}: {descriptions}")
        self.assertGreater(len(texts), 60)

    def test_help_fits_into_100_columns(self):
        for arguments, _, text in self.all_help():
            for line in text.split("Examples:\n")[0].splitlines():
                self.assertLessEqual(len(line), 100, f"{arguments}: {line}")

    def test_the_hidden_option_is_hidden_and_tells_errors(self):
        self.assertNotIn("man-pages", run("--help").stdout + self.page("mlff.1").split("\n", 1)[1])
        self.assert_fails(run("--write-man-pages", self.path("file", "text")), 3, "file")
        self.assert_fails(run("--write-man-pages"), 2)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_groff_has_no_warnings(self):
        for name in os.listdir(self.folder_of_pages):
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-c", os.path.join(self.folder_of_pages, name)], capture_output=True, text=True, timeout=60)
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)
            self.assertIn("EXAMPLES", re.sub(".\b", "", result.stdout))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

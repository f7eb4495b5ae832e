# SPDX-License-Identifier: MIT
"""The pages for users say what the command does. Usage: test_documented_pages.py MLFF SOURCE_DIR

Every `$ mlff ...` in a block of quick-start.md, quick-reference.md, gallery.md and reaction-paths.md is run, in order, in a folder with examples and a MACE model X.model, without GPUs.
It must succeed, and print the lines that follow it up to a blank line, a comment or the next command. A line `...` stands for any lines, and `...` in a line for any
text; whole numbers are the same, others within a tolerance. Blocks ```sh-notest have what a test cannot run: downloads, what waits for other programs, and what needs a better
model.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
SOURCE = pathlib.Path(sys.argv[2])
DOCS = SOURCE / "docs"
RUN_PAGES = ("quick-start.md", "quick-reference.md", "gallery.md", "reaction-paths.md")
PAGES = [DOCS / name for name in (*RUN_PAGES, "cuda-and-wsl2.md", "troubleshooting.md")] + [SOURCE / "examples" / "README.md"]
STAND_IN = SOURCE / "tests" / "golden" / "mace" / "p02_mp0like_l1_c3_f32.model"  # for X.model: small, knows most elements
MOST_UNTESTED = 5
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
ANY = "..."


def blocks(text):
    """(language, lines) of every block between ```."""
    return [(language, block.splitlines()) for language, block in re.findall(r"^```(.*)\n((?:(?!```).*\n)*)```$", text, re.MULTILINE)]


def commands(lines):
    """(command, expected lines of output) of every `$ mlff ...`."""
    found, output = [], None
    for line in lines:
        if line.startswith("$ "):
            output = []
            if line.startswith("$ mlff "):
                found.append((line[2:], output))
        elif line.startswith("#"):
            output = None
        elif line and output is not None:
            output.append(line)
    return found


def is_close(found, expected):
    if re.fullmatch(r"[-+]?\d+", expected):
        return found == expected
    digits = re.match(r"[-+]?\d+\.?(\d*)(?:e([-+]?\d+))?$", expected)
    last_digit = 10.0 ** (int(digits.group(2) or 0) - len(digits.group(1)))
    return abs(float(found) - float(expected)) <= 1e-5 + 1e-6 * abs(float(expected)) + 1.01 * last_digit  # false for NaN


def is_line(found, expected):
    pattern, numbers, end = "", [], 0
    for match in re.finditer(rf"{NUMBER.pattern}|{re.escape(ANY)}", expected.rstrip()):
        pattern += re.escape(expected[end:match.start()])
        if match.group() == ANY:
            pattern += ".*?"
        else:
            pattern += rf"({NUMBER.pattern})"
            numbers.append(match.group())
        end = match.end()
    pattern = re.sub(r"(\\ )+", r"\\s+", pattern + re.escape(expected.rstrip()[end:]))
    match = re.fullmatch(r"\s*" + pattern.removeprefix(r"\s+"), found.rstrip())
    return bool(match) and all(map(is_close, match.groups(), numbers))


def is_output(found, expected):
    if not expected:
        return not found
    if expected[0].strip() == ANY:
        return any(is_output(found[start:], expected[1:]) for start in range(len(found) + 1))
    return bool(found) and is_line(found[0], expected[0]) and is_output(found[1:], expected[1:])


def listed_commands(*arguments):
    text = subprocess.run([MLFF, *arguments, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    return re.findall(r"^  (\w+)", re.search(r"^Commands:\n((?:  .*\n)+)", text, re.MULTILINE).group(1), re.MULTILINE)


def messages(text):
    """The code in the first column of tables that are headed `message`."""
    for table in re.findall(r"^\| message \|.*\n\|-.*\n((?:\|.*\n)+)", text, re.MULTILINE):
        for row in table.splitlines():
            yield from re.findall(r"`([^`]+)`", row.split("|")[1])


def source_texts():
    """What src, apps and scripts say: without lines of comments, and texts that continue on the next line in one piece."""
    for folder in ("src", "apps", "scripts"):
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.is_file() and path.suffix in (".cpp", ".h", ".cu", ".cuh", ".py", ".sh", ""):
                text = re.sub(r"^\s*(//|#).*$", "", path.read_text(errors="replace"), flags=re.MULTILINE)
                yield re.sub(r'"\s+"', "", text).replace('\\"', '"')


class Comparison(unittest.TestCase):
    """What the other tests compare with can fail."""

    def test_lines(self):
        self.assertTrue(is_line("energy  -137.97398563 of 3 atoms", "energy -137.97398560 of 3 atoms"))
        self.assertTrue(is_line("     0   3  1.50e-07 ", " 0 3 1.51e-07"))
        for found in ("energy -137.98 of 3 atoms", "energy -137.97398563 of 4 atoms", "energy nan of 3 atoms", "energy -137.97398563 of 3 atoms, no"):
            self.assertFalse(is_line(found, "energy -137.97398560 of 3 atoms"), found)
        self.assertTrue(is_line("step 4 of 4, 12.5 ns/day, 303.8 K", "step 4 of 4, ... ns/day, 303.8 K"))
        self.assertFalse(is_line("step 4 of 4, 12.5 ns/day, 305.8 K", "step 4 of 4, ... ns/day, 303.8 K"))

    def test_omitted_lines(self):
        found = ["first", "second", "third"]
        for expected in (found, ["..."], ["first", "..."], ["...", "third"], ["first", "...", "third"], ["...", "second", "..."]):
            self.assertTrue(is_output(found, expected), expected)
        for expected in (["first"], ["first", "third"], ["...", "second"], ["second", "..."], []):
            self.assertFalse(is_output(found, expected), expected)

    def test_parsing(self):
        text = "```\n$ mlff a b\n1\n\n# c\n$ scripts/x\n2\n$ mlff d\n```\n```sh-notest\n$ mlff e\n```\n"
        self.assertEqual([(language, commands(lines)) for language, lines in blocks(text)], [("", [("mlff a b", ["1"]), ("mlff d", [])]), ("sh-notest", [("mlff e", [])])])


class Pages(CommandTest):
    def run_page(self, name, least):
        shutil.copytree(SOURCE / "examples", self.path("examples"))
        shutil.copy(STAND_IN, self.path("X.model"))
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("MLFF_", "XDG_")) and key != "VIRTUAL_ENV"}
        environment.update(HOME=self.folder, CUDA_VISIBLE_DEVICES="-1")
        count = 0
        for language, lines in blocks((DOCS / name).read_text()):
            for command, expected in commands(lines):
                if language == "sh-notest":
                    continue
                count += 1
                with self.subTest(command=command):
                    words = shlex.split(command, comments=True)
                    result = subprocess.run([MLFF, *words[1:]], capture_output=True, text=True, timeout=60, cwd=self.folder, env=environment)
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                    if expected:
                        self.assertTrue(is_output([line for line in result.stdout.splitlines() if line], expected), f"printed:\n{result.stdout}\nthe page has:\n" + "\n".join(expected))
        self.assertGreaterEqual(count, least)

    def test_quick_start(self):
        self.run_page("quick-start.md", 9)

    def test_quick_reference(self):
        self.run_page("quick-reference.md", 18)

    def test_reaction_paths(self):
        self.run_page("reaction-paths.md", 3)

    def test_gallery(self):
        self.run_page("gallery.md", 5)
        page = (DOCS / "gallery.md").read_text()
        pictures = sorted((DOCS / "images").glob("gallery_*.png"))
        self.assertEqual(sorted(re.findall(r"\]\(images/(\S+)\)", page)), [path.name for path in pictures])
        reports = re.findall(r"^\$ mlff .* --report (\w+)", page, re.MULTILINE)
        for path in pictures:
            self.assertIn(path.stem.split("_")[1], reports, "which command made it")
            self.assertLess(path.stat().st_size, 150_000)

    def test_few_commands_are_not_run(self):
        pages = [blocks((DOCS / name).read_text()) for name in RUN_PAGES]
        languages = {language for page in pages for language, _ in page}
        self.assertEqual(languages, {"", "sh-notest"})
        self.assertLessEqual(sum(len(commands(lines)) for page in pages for language, lines in page if language == "sh-notest"), MOST_UNTESTED)

    def test_quick_reference_is_complete(self):
        text = (DOCS / "quick-reference.md").read_text()
        shown = [shlex.split(command, comments=True)[1:] for _, lines in blocks(text) for command, _ in commands(lines)]
        names = listed_commands()
        self.assertGreater(len(names), 12)
        self.assertEqual({words[0] for words in shown}, set(names))
        self.assertEqual({words[1] for words in shown if words[0] == "model"}, set(listed_commands("model")))
        scripts = {path.name for path in (SOURCE / "scripts").iterdir() if os.access(path, os.X_OK) and path.is_file()}
        self.assertEqual(set(re.findall(r"^\| `scripts/([\w-]+)", text, re.MULTILINE)), scripts)

    def test_messages_are_those_of_the_sources(self):
        sources = list(source_texts())
        self.assertGreater(len(sources), 300)
        shown = list(messages((DOCS / "troubleshooting.md").read_text()))
        self.assertGreater(len(shown), 100)
        self.assertEqual(len(shown), len(set(shown)), "a message is there twice")
        for message in shown:
            parts = [part for part in message.split(ANY) if part]
            with self.subTest(message=message):
                self.assertGreaterEqual(max(len(part.strip()) for part in parts), 8, "too short to search for")
                pattern = re.compile(r".{0,300}?".join(map(re.escape, parts)), re.DOTALL)
                self.assertTrue(any(pattern.search(text) for text in sources), "no source has this message")

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")

    def test_examples_are_the_built_in_systems(self):
        files = sorted((SOURCE / "examples").glob("*.xyz"))
        self.assertGreaterEqual(len(files), 4)
        for path in files:
            self.assertEqual(path.read_bytes(), (SOURCE / "src" / "tools" / "validate" / "systems" / path.name).read_bytes(), path.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

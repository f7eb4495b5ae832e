# SPDX-License-Identifier: MIT
"""Folders of src/ include only what the table in CONTRIBUTING.md allows, and the table goes from low to high: no circles.

  python test_layers.py PROJECT_FOLDER"""
import pathlib
import re
import sys
import tempfile

SOURCES = {".h", ".cpp", ".cu", ".cuh", ".inc", ".c"}


def read_table(text):
    """[(folder, [folders that it may use])] of the rows `src/FOLDER`, in their order."""
    rows = []
    for folder, used in re.findall(r"^\| `src/([\w/]+)` \|[^|]*\|([^|]*)\|$", text, re.M):
        rows.append((folder, [name.strip() for name in used.split(",") if name.strip()]))
    return rows


def upward_rows(rows):
    """What the table itself does wrong: a folder that is there twice, or one that may use what does not stand above it."""
    wrong, seen = [], set()
    for folder, used in rows:
        wrong += [f"the table has {folder} twice"] if folder in seen else []
        wrong += [f"the table lets {folder} use {name}, which is not above it" for name in used if name not in seen]
        seen.add(folder)
    return wrong


def folder_of(path, folders):
    """The deepest folder of the table that a path is in; None if it is in none."""
    inside = [folder for folder in folders if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def wrong_includes(source, rows):
    """Includes that the table does not allow, and files in folders that it does not know."""
    allowed, wrong = dict(rows), []
    for file in sorted(path for path in source.rglob("*") if path.suffix in SOURCES):
        path = file.relative_to(source).as_posix()
        folder = folder_of(path, allowed)
        if folder is None or folder != path.rpartition("/")[0]:
            wrong.append(f"{path}: its folder has no row in the table")
            continue
        for included in re.findall(r'^\s*#\s*include "([^"]+)"', file.read_text(), re.M):
            target = folder_of(included, allowed)
            if target is None and not (source / included).exists():
                continue  # a public header
            if target != folder and target not in allowed[folder]:
                wrong.append(f"{path}: includes {included}; {folder} may use {', '.join(allowed[folder]) or 'nothing'}")
    return wrong


def check_the_check():
    """A table and sources that are right, and each way in which they can be wrong."""
    rows = [("core", []), ("gpu", ["core"]), ("gpu/engine", ["core", "gpu"])]
    table = "".join(f"| `src/{folder}` | words | {', '.join(used)} |\n" for folder, used in rows)
    assert read_table(table) == rows and not upward_rows(rows)
    assert len(upward_rows([("core", ["gpu"]), ("gpu", ["core"]), ("core", [])])) == 2
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder)
        for path, text in {"core/a.h": '#include <vector>\n', "gpu/b.h": '#include "core/a.h"\n', "gpu/engine/c.cu": '#include "gpu/b.h"\n#include "mlff/mlff.h"\n'}.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text)
        assert wrong_includes(source, rows) == []
        (source / "core/a.h").write_text('#include "gpu/b.h"\n')
        assert len(wrong_includes(source, rows)) == 1
        (source / "gpu/b.h").write_text('  #  include "gpu/engine/c.cu"\n')
        assert len(wrong_includes(source, rows)) == 2
        (source / "new").mkdir()
        (source / "new/d.cpp").write_text("")
        assert len(wrong_includes(source, rows)) == 3


def main():
    check_the_check()
    project = pathlib.Path(sys.argv[1])
    rows = read_table((project / "CONTRIBUTING.md").read_text())
    assert len(rows) >= 20, f"only {len(rows)} folders are in the table"
    wrong = upward_rows(rows) + wrong_includes(project / "src", rows)
    wrong += [f"the table has src/{folder}, which does not exist" for folder, _ in rows if not (project / "src" / folder).is_dir()]
    print("\n".join(wrong) or f"{len(rows)} folders, no arrow upwards")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

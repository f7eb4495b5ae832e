# SPDX-License-Identifier: MIT
"""The pages of models say where each formula is: "`function`, `file`". The files are there, and have the functions.

  test_named_sources.py PROJECT_FOLDER"""
import pathlib
import re
import sys

PAGES = {"docs/mace.md": "src/mace", "docs/nequip.md": "src/nequip", "docs/painn.md": "src/painn"}
FILE = r"`((?:[a-z0-9_]+/)+[a-z0-9_]+\.(?:cpp|h|cu|cuh))`"


def main(project):
    faults, count = [], 0
    for page, folder in PAGES.items():
        for line in (project / page).read_text().splitlines():
            for part in re.split(r"[;|]|, by ", line):
                found = re.search(FILE, part)
                if not found:
                    continue
                name = found.group(1)
                path = project / name if name.startswith("src/") else project / folder / name
                if not path.is_file():
                    faults.append(f"{page}: there is no {name}")
                    continue
                for function in re.findall(r"`([A-Za-z_:]+)`(?=,)", part[:found.start()]) if line.startswith("|") else []:
                    count += 1
                    if function.split("::")[-1] not in path.read_text():
                        faults.append(f"{page}: {name} has no {function}")
    print("\n".join(faults) if faults else f"{count} functions are where the pages say")
    return 1 if faults or count < 50 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

# SPDX-License-Identifier: MIT
"""The file that holds what was measured, written after every entry: a run that is cut off keeps what it has, and a run of one part
leaves the others as they were."""
import json
import os


class Store:
    def __init__(self, path):
        self.path = path
        self.content = {}
        if os.path.exists(path):
            with open(path) as file:
                self.content = json.load(file)

    def put(self, section, key, entry):
        self.content.setdefault(section, {})[key] = entry
        self.write()

    def update(self, **entries):
        self.content.update(entries)
        self.write()

    def write(self):
        part = self.path + ".part"
        with open(part, "w") as file:
            json.dump(self.content, file, indent=1)
            file.write("\n")
        os.replace(part, self.path)


def is_within(difference, tolerance):
    """False for NaN and for a difference that could not be computed."""
    return difference is not None and bool(abs(difference) <= tolerance)

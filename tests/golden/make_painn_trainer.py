# SPDX-License-Identifier: MIT
"""Makes tests/golden/painn_trainer with mlff-train: random models, and energies, forces and stresses in double precision.

    make_painn_trainer.py MLFF_TRAIN

For each model NAME.safetensors and frames FRAMES.xyz there is NAME.FRAMES.json in the form of `mlff eval --json`. An engine in double
precision agrees to 1e-9 eV, 1e-8 eV/A and 1e-10 eV/A^3; one in single precision to 1e-5 eV per atom and 1e-4 eV/A.
"""
import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).with_name("painn_trainer")
FRAMES = {
    "molecule": """9
Properties=species:S:1:pos:R:3
C -0.748 -0.015 0.024
C 0.558 0.420 -0.278
O 1.570 -0.466 0.157
H -1.293 -0.202 -0.901
H -1.263 0.754 0.600
H -0.699 -0.934 0.609
H 0.716 1.404 0.137
H 0.605 0.443 -1.370
H 1.532 -0.578 1.112
""",
    # Atoms outside the cell, a skewed cell that is shorter than twice the cutoff, and a contact within the repulsion.
    "box": """8
Lattice="5.2 0 0 1.1 4.9 0 -0.7 0.6 5.5" pbc="T T T" Properties=species:S:1:pos:R:3
O 0.1 0.2 0.3
H 0.9 0.5 0.4
H -0.3 0.9 0.1
C 2.6 2.4 2.9
O 3.3 2.8 3.1
H 2.2 1.9 3.8
H 9.1 -3.2 1.4
H 8.5 -3.0 1.2
""",
    # One atom alone, and two beyond the cutoff: nothing but atomic energies and the readout of the embedding.
    "alone": "1\nProperties=species:S:1:pos:R:3\nC 0 0 0\n2\nProperties=species:S:1:pos:R:3\nH 0 0 0\nO 0 0 7.5\n",
}
MODELS = {
    "f32_b2_r8": ["--hidden", "32", "--blocks", "2", "--radial", "8", "--seed", "1"],
    "f32_b3_r20_no_repulsion": ["--hidden", "32", "--blocks", "3", "--radial", "20", "--seed", "2", "--cutoff", "4.5", "--no-repulsion"],
}


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, text in FRAMES.items():
        (FOLDER / f"{name}.xyz").write_text(text)
    for model, options in MODELS.items():
        path = FOLDER / f"{model}.safetensors"
        subprocess.run([sys.argv[1], "random", path, "--elements", "1,6,8", *options], check=True)
        for name in FRAMES:
            done = subprocess.run([sys.argv[1], "predict", path, FOLDER / f"{name}.xyz", "--fp64"], check=True, capture_output=True, text=True)
            result = json.loads(done.stdout)
            result["model"] = path.name
            (FOLDER / f"{model}.{name}.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

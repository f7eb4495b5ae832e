# SPDX-License-Identifier: MIT
"""The student in PyTorch, python:student:FILE, against the native one. Usage: test_torch_student.py MLFF TRAINER_LIBRARIES; torch is that of the trainer,
without the small packages that its Python part needs."""
import json
import os
import subprocess
import sys
import tempfile

MLFF, LIBRARIES = sys.argv[1:3]
if not os.path.exists(LIBRARIES):  # trainer_install was skipped
    print("skipped: there is no trainer")
    sys.exit(77)
PACKAGES = ["numpy", "typing-extensions", "filelock", "sympy", "networkx", "jinja2", "fsspec", "setuptools"]


def run(*arguments, code=0):
    done = subprocess.run([MLFF, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def make_environment(folder):
    python = os.path.realpath(os.path.join(LIBRARIES, "bin", "python3"))  # the version that mlff embeds
    subprocess.run([python, "-m", "venv", folder], check=True)
    subprocess.run([os.path.join(folder, "bin", "python3"), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    (site,) = (os.path.join(folder, "lib", name, "site-packages") for name in os.listdir(os.path.join(folder, "lib")))
    torch = site.replace(folder, LIBRARIES)
    assert os.path.isdir(os.path.join(torch, "torch")), torch
    with open(os.path.join(site, "trainer.pth"), "w") as file:
        file.write(torch + "\n")


with tempfile.TemporaryDirectory() as folder:
    environment, student = os.path.join(folder, "environment"), os.path.join(folder, "student.safetensors")
    make_environment(environment)
    run("model", "convert", "builtin", student)

    # Clusters and a box: errors of energies and forces, in both precisions and ways to run.
    names = [f"python:student:{student}?mode={mode}&env={environment},precision={precision}" for mode, precision in (("eager", "fp64"), ("script", "fp64"), ("eager", "fp32"))]
    compared = [word for name in (student, *names) for word in ("--compare", name)]
    result = json.loads(run("bench", "--quick", "--device", "cpu", "--sizes", "3,21,300", *compared, "--json", "-").stdout)
    assert result["passed"] and result["left_out"] == [], result["left_out"]
    labels = [one["label"] for one in result["implementations"]]
    assert labels[1:] == ["python:student:student.safetensors?mode=eager, cpu, fp64", "python:student:student.safetensors?mode=script, cpu, fp64", "python:student:student.safetensors?mode=eager, cpu, fp32"], labels
    assert len(result["sizes"]) == 3 and "periodic" in result["sizes"][2]["name"]
    for size in result["sizes"]:
        for label, row in zip(labels, size["entries"]):
            figures, (check,) = row["figures"], row["checks"]
            most_force, most_energy = (1e-10, 1e-8) if "python" in label and "fp64" in label else (2e-5, 1e-3)
            print(f"{size['name']:22} {label:60} {figures}")
            assert 0 <= check["value"] < most_force and 0 <= figures["eV/A RMSE of the forces"] <= check["value"], (size["name"], label, check)
            assert 0 <= figures["meV/atom error of the energy"] < most_energy, (size["name"], label, figures)

    # The stress: of a box, against the native one.
    box = os.path.join(folder, "box.xyz")
    with open(box, "w") as file:
        file.write('3\nLattice="6 0 0 1 6.5 0 0 0.5 7" pbc="T T T"\nO 0 0 0\nH 0.9 0.1 0\nH -0.3 0.9 0.2\n')
    ways = [json.loads(run("eval", box, "--device", "cpu", "--precision", "fp64", "--model", model, "--json", "-").stdout)["frames"][0] for model in (student, f"python:student:{student}?env={environment}")]
    native, torch = (frame["stress"] for frame in ways)
    assert len(native) == 6 and max(abs(x) for x in native) > 1e-4, native
    assert all(abs(a - b) < 1e-9 for a, b in zip(native, torch)), (native, torch)
    assert all(abs(a - b) < 1e-6 for rows in zip(*(frame["forces"] for frame in ways)) for a, b in zip(*rows))

    # What cannot be read says so.
    broken = os.path.join(folder, "broken.safetensors")
    with open(broken, "wb") as file:
        file.write(b"\x02\0\0\0\0\0\0\0{}")
    for path, words in ((broken, "do not say that it is a student"), (os.path.join(folder, "nothing"), "mlff model convert builtin")):
        error = run("eval", box, "--model", f"python:student:{path}?env={environment}", code=3).stderr
        assert words in error, error
    error = run("eval", box, "--model", f"python:student:{student}?mode=fast", code=2).stderr
    assert "expected eager, compile or script" in error, error

# SPDX-License-Identifier: MIT
"""Runs models that are Python programs for mlff: mace-torch, and whatever has ASE's calculator interface.

This file is part of libmlff_python.so, which sets `log` and `student_source`, and calls redirect_output(), load() and the methods of Teacher."""
import contextlib
import gc
import importlib
import importlib.util
import io
import json
import linecache
import logging
import os
import sys
import threading
import traceback
import types
import warnings

# Values of mlff_status.
FILE, FORMAT, UNSUPPORTED, SYSTEM, DEVICE, MEMORY = 2, 3, 4, 5, 6, 7
# Values of mlff_log_level.
WARNING, INFO, DEBUG = 1, 2, 3

ALL_CHANGES = ["positions", "numbers", "cell", "pbc", "initial_charges", "initial_magmoms"]


class TeacherError(Exception):
    """An error whose message is sufficient: shown without a traceback."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


# ---- Python's output goes to the log ----


class LogStream(io.TextIOBase):
    """Replaces sys.stdout and sys.stderr: whole lines go to the log."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, log, level):
        self.log, self.level, self.line = log, level, ""

    def write(self, text):
        lines = (self.line + str(text)).replace("\r", "\n").split("\n")
        self.line = lines.pop()
        for line in lines:
            if line.strip():
                self.log(self.level, line)
        return len(text)

    def writable(self):
        return True


class LogHandler(logging.Handler):
    def __init__(self, log):
        super().__init__()
        self.send = log

    def emit(self, record):
        level = WARNING if record.levelno >= logging.WARNING else INFO if record.levelno >= logging.INFO else DEBUG
        try:
            self.send(level, "%s: %s" % (record.name, record.getMessage().replace("\n", " ")))
        except Exception:  # a record that cannot be formatted must not stop an evaluation
            self.send(level, record.name + ": a message that cannot be formatted")


def plain(text):
    """Replaces lone surrogates, which cannot be encoded as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def redirect_output(to_host):
    """Redirects output to the log. Only in our own interpreter; a host program's is left as it is."""

    def log(level, line):
        to_host(level, plain(line))

    sys.stdout, sys.stderr = LogStream(log, INFO), LogStream(log, WARNING)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    logging.getLogger().addHandler(LogHandler(log))
    logging.getLogger().setLevel(logging.INFO)

    def show_warning(message, category, filename, lineno, file=None, line=None):
        log(WARNING, "%s: %s (%s:%d)" % (category.__name__, str(message).replace("\n", " "), filename, lineno))

    warnings.showwarning = show_warning


def explain(error, log):
    """(status, one line) for an exception; the whole traceback goes to the log."""
    if isinstance(error, TeacherError):
        return error.status, plain(str(error))
    log(DEBUG, plain(" | ".join(line for line in "".join(traceback.format_exception(type(error), error, error.__traceback__)).split("\n") if line.strip())))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    places = ", ".join("%s:%d in %s" % (os.path.basename(frame.filename), frame.lineno, frame.name) for frame in reversed(frames[-5:]))
    what = type(error).__name__ + (": " + str(error) if str(error) else "")
    what = " ".join(what.split())
    if len(what) > 700:
        what = what[:500] + " ... " + what[-180:]
    return status_of(error), plain(what + (" [traceback: %s]" % places if places else ""))


def status_of(error):
    name = type(error).__name__
    if isinstance(error, MemoryError) or name == "OutOfMemoryError":  # the second is torch's, for GPU memory
        return MEMORY
    if isinstance(error, FileNotFoundError):
        return FILE
    if name in ("AcceleratorError", "CudaError") or "CUDA error" in str(error):
        return DEVICE
    return UNSUPPORTED


# ---- Atoms ----


class PlainAtoms:
    """The part of ase.Atoms that calculators use, for environments without ASE."""

    def __init__(self, numbers, positions, cell, pbc):
        self.numbers, self.positions, self.cell, self.pbc, self.info = numbers, positions, cell, pbc, {}
        self.charges = self.moments = [0.0] * len(numbers)

    def __len__(self):
        return len(self.numbers)

    def get_atomic_numbers(self):
        return self.numbers.copy()

    def get_positions(self):
        return self.positions.copy()

    def get_cell(self):
        return self.cell.copy()

    def get_pbc(self):
        return self.pbc.copy()

    def set_positions(self, positions):
        self.positions[:] = positions

    def set_cell(self, cell):
        self.cell = cell.copy()

    def set_pbc(self, pbc):
        self.pbc = pbc.copy()

    def set_initial_charges(self, charges):
        self.charges = list(charges)

    def get_initial_charges(self):
        return list(self.charges)

    def set_initial_magnetic_moments(self, moments):
        self.moments = list(moments)

    def get_initial_magnetic_moments(self):
        return list(self.moments)

    def get_volume(self):
        import numpy

        return abs(numpy.linalg.det(self.cell))

    def copy(self):
        twin = PlainAtoms(self.numbers.copy(), self.positions.copy(), self.cell.copy(), self.pbc.copy())
        twin.info, twin.charges, twin.moments = dict(self.info), list(self.charges), list(self.moments)
        return twin


def make_atoms(numbers, positions, cell, pbc):
    try:
        from ase import Atoms
    except ImportError:
        return PlainAtoms(numbers.copy(), positions.copy(), cell.copy(), pbc.copy())
    return Atoms(numbers=numbers, positions=positions, cell=cell, pbc=pbc)


# ---- Loading ----


def import_for(name, needed_by):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        raise TeacherError(
            UNSUPPORTED, "%s needs the Python module '%s', which is not in the environment %s (Python %d.%d)" % (needed_by, missing, sys.prefix, *sys.version_info[:2])
        ) from None


def module_of(name, model):
    """An installed module, or a file by its path."""
    if not name.endswith(".py"):
        return import_for(name, "'%s'" % model)
    if not os.path.isfile(name):
        raise TeacherError(FILE, "'%s': there is no file %s" % (model, name))
    folder, file = os.path.split(os.path.abspath(name))
    if folder not in sys.path:
        sys.path.append(folder)  # for its own imports; searched last
    spec = importlib.util.spec_from_file_location(file[:-3], name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def class_name(thing):
    return type(thing).__name__


class Teacher:
    """A calculator, loaded and described. prepare() sets it up for a device."""

    calculator = None
    atoms = None
    state = None  # total charge and spin of the last evaluation

    def evaluate(self, numbers, positions, cell, pbc, charge, spin, energy, forces, virial, atom_energies):
        import numpy

        numbers = numpy.frombuffer(numbers, dtype=numpy.int32)
        positions = numpy.frombuffer(positions, dtype=numpy.float64).reshape(-1, 3)
        cell = numpy.array(cell, dtype=numpy.float64).reshape(3, 3)
        pbc = numpy.array(pbc, dtype=bool)
        atoms = self.atoms
        if atoms is None or len(atoms) != len(numbers) or not numpy.array_equal(atoms.numbers, numbers):
            atoms = self.atoms = make_atoms(numbers, positions, cell, pbc)
        else:
            atoms.set_positions(positions)
            atoms.set_cell(cell)
            atoms.set_pbc(pbc)
        atoms.info.update({"charge": charge, "spin": spin})

        wanted = ["energy"]
        if forces is not None:
            wanted.append("forces")
        if virial is not None:
            if not pbc.all():
                raise TeacherError(SYSTEM, "a virial or stress was requested, but Python calculators provide it only for systems that are periodic in three directions")
            wanted.append("stress")
        if atom_energies is not None:
            wanted.append("energies")
        for name in wanted:
            if name not in self.properties:
                names = {"energies": "atomic energies", "stress": "stress"}
                raise TeacherError(UNSUPPORTED, "the calculator %s does not provide %s, only %s" % (class_name(self.calculator), names.get(name, name), ", ".join(self.properties)))
        results = self.calculate(atoms, wanted)

        # Check all before writing any.
        checked = []
        if energy is not None:
            checked.append((energy, checked_array(results, "energy", ())))
        if forces is not None:
            checked.append((forces, checked_array(results, "forces", (len(numbers), 3))))
        if atom_energies is not None:
            checked.append((atom_energies, checked_array(results, "energies", (len(numbers),))))
        if virial is not None:
            stress = numpy.asarray(results["stress"], dtype=numpy.float64)
            if stress.shape == (6,):  # ASE's order: xx yy zz yz xz xy
                stress = stress[[0, 5, 4, 5, 1, 3, 4, 3, 2]].reshape(3, 3)
            checked.append((virial, -abs(numpy.linalg.det(cell)) * checked_array({"stress": stress}, "stress", (3, 3))))
        for target, value in checked:
            numpy.frombuffer(target, dtype=numpy.float64)[:] = value.reshape(-1)

    def calculate(self, atoms, wanted):
        """Like ase.calculators.calculator.Calculator.get_property(), but for all requested properties at once."""
        calculator = self.calculator
        if hasattr(calculator, "check_state"):
            changes = calculator.check_state(atoms)
            state = (atoms.info.get("charge"), atoms.info.get("spin"))  # ASE does not compare these
            if changes or state != self.state:
                calculator.reset()
            self.state = state
            missing = [name for name in wanted if name not in calculator.results]
        else:
            changes, missing = ALL_CHANGES, wanted
        if missing:
            calculator.calculate(atoms, missing, changes)
        for name in wanted:
            if calculator.results.get(name) is None:
                raise TeacherError(UNSUPPORTED, "the calculator %s returned no '%s' for these atoms" % (class_name(calculator), name))
        return calculator.results


def checked_array(results, name, shape):
    import numpy

    value = numpy.asarray(results[name], dtype=numpy.float64)
    if name == "energy" and value.size == 1:
        value = value.reshape(())
    if value.shape != shape:
        raise TeacherError(UNSUPPORTED, "the calculator returned '%s' of shape %s, expected %s" % (name, value.shape, shape))
    if not numpy.isfinite(value).all():
        raise TeacherError(SYSTEM, "the calculator returned a '%s' that is not finite" % name)
    return value


# ---- mace-torch ----


@contextlib.contextmanager
def default_dtype(torch, name):
    """mace-torch creates some numbers (those of its pair repulsion) in torch's default dtype, float32, so fp64 would not be fp64. The default dtype is shared
    by all threads, so they take turns."""
    with default_dtype_lock:
        before = torch.get_default_dtype()
        torch.set_default_dtype(getattr(torch, name))
        try:
            yield
        finally:
            torch.set_default_dtype(before)


default_dtype_lock = threading.RLock()


@contextlib.contextmanager
def e3nn_instead(arguments):
    """Under WSL 2, NVML does not know all figures of a GPU, and versions of cuEquivariance that insist on them cannot be used (0.13 does not insist). Then e3nn
    computes, and the log says so."""
    try:
        yield
    except Exception as error:
        if not type(error).__name__.startswith("NVML"):
            raise
        reason = " ".join(("%s: %s" % (type(error).__name__, error)).split())[:200]
        log(WARNING, "cueq=1: cuEquivariance does not work here, because NVML does not answer (%s), as under WSL 2; e3nn computes the same, more slowly" % plain(reason))
        arguments["cueq"] = False


class MaceTeacher(Teacher):
    CUEQ_CLASSES = ("ScaleShiftMACE", "MACELES", "PolarMACE")
    MODEL_TYPES = {"EnergyDipolesMACE": "EnergyDipoleMACE", "PolarMACE": "PolarMACE"}

    def __init__(self, request):
        self.path, self.arguments = request["path"], request["arguments"]
        if not os.path.isfile(self.path):
            raise TeacherError(FILE, "%s: there is no such file" % self.path)
        self.torch = import_for("torch", "python:mace")
        import_for("mace.calculators", "python:mace")
        if self.arguments.get("cueq"):
            with e3nn_instead(self.arguments):
                import_for("cuequivariance_torch", "python:mace with cueq=1")
        self.model = self.read()
        if self.arguments.get("cueq") and class_name(self.model) not in self.CUEQ_CLASSES:
            raise TeacherError(UNSUPPORTED, "%s: cueq=1 is for models that mace-torch converts to cuEquivariance (%s), not for a %s" % (self.path, ", ".join(self.CUEQ_CLASSES), class_name(self.model)))
        self.properties = ["energy", "forces", "stress", "energies"]

    def read(self):
        try:
            # A .model file is a pickle: loading it runs the code in it, as in mace-torch.
            model = self.torch.load(self.path, map_location="cpu", weights_only=False)
        except ModuleNotFoundError as error:
            raise TeacherError(UNSUPPORTED, "%s: the model uses classes of the Python module '%s', which is not in mace-torch's environment" % (self.path, error.name)) from None
        except Exception as error:
            raise TeacherError(FORMAT, "%s: torch cannot read it as a model (%s: %s)" % (self.path, type(error).__name__, " ".join(str(error).split())[:300])) from None
        name = class_name(model)
        if not all(hasattr(model, needed) for needed in ("r_max", "atomic_numbers", "num_interactions")):
            raise TeacherError(FORMAT, "%s: the file contains a %s, expected a MACE model of mace-torch" % (self.path, name))
        if name in ("AtomicDipolesMACE", "AtomicDielectricMACE") or not hasattr(model, "atomic_energies_fn"):
            raise TeacherError(UNSUPPORTED, "%s: a %s predicts no energies" % (self.path, name))
        return model

    def describe(self):
        from mace import __version__ as mace_version

        model, torch = self.model, self.torch
        dtype = str(next(model.parameters()).dtype).replace("torch.", "")
        heads = getattr(model, "heads", None) or ["Default"]
        return {
            "class": class_name(model),
            "elements": sorted(int(z) for z in model.atomic_numbers),
            "cutoff": float(model.r_max),
            "layers": int(model.num_interactions),
            "heads": [str(head) for head in heads],
            "dtype": dtype,
            "precisions": ["float64", "float32"],
            "parameters": sum(p.numel() for p in model.parameters()),
            "properties": self.properties,
            "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
            "why_no_gpu": "torch %s in %s finds no CUDA device" % (torch.__version__, sys.prefix),
            "versions": {"mace-torch": mace_version, "torch": torch.__version__},
        }

    def prepare(self, choice):
        if self.arguments.get("cueq"):
            with e3nn_instead(self.arguments):
                return self.make_calculator(choice)
        return self.make_calculator(choice)

    def make_calculator(self, choice):
        from mace.calculators import MACECalculator

        model, self.model = self.model or self.read(), None  # MACECalculator modifies its model, so each needs its own
        heads = getattr(model, "heads", None) or ["Default"]
        self.dtype = choice["dtype"]
        with default_dtype(self.torch, self.dtype):
            self.calculator = MACECalculator(
                models=[model],
                device=choice["device"],
                default_dtype=self.dtype,
                enable_cueq=bool(self.arguments.get("cueq", 0)),
                model_type=self.MODEL_TYPES.get(class_name(model), "MACE"),
                head=str(heads[choice["head"]]),
            )
        return {}

    def calculate(self, atoms, wanted):
        with default_dtype(self.torch, self.dtype):
            return super().calculate(atoms, wanted)


# ---- Students in PyTorch ----


def student_module():
    """student.py, whose source is that of this library too."""
    with student_lock:
        if "_mlff_student" not in sys.modules:
            name = "<mlff>/student.py"
            module = types.ModuleType("_mlff_student")
            module.__file__ = name
            linecache.cache[name] = (len(student_source), None, student_source.splitlines(keepends=True), name)  # TorchScript compiles from the source
            sys.modules["_mlff_student"] = module  # where classes are looked for while they are made
            try:
                exec(compile(student_source, name, "exec"), module.__dict__)
            except BaseException:
                del sys.modules["_mlff_student"]
                raise
        return sys.modules["_mlff_student"]


student_lock = threading.Lock()


class StudentTeacher(Teacher):
    """The PaiNN of a student's file in PyTorch, to measure the native one against."""

    def __init__(self, request):
        self.path, self.mode = request["path"], request["arguments"].get("mode", "eager")
        if not os.path.isfile(self.path):
            raise TeacherError(FILE, "%s: there is no such file; mlff model convert builtin FILE writes that of the student inside mlff" % self.path)
        self.torch = import_for("torch", "python:student")
        self.properties = ["energy", "forces", "stress", "energies"]
        self.student = student_module()
        try:
            self.config, self.tensors = self.student.read_file(self.path)
        except self.student.NotAStudent as error:
            raise TeacherError(FORMAT, "%s: %s" % (self.path, error)) from None

    def describe(self):
        torch = self.torch
        return {
            "class": "PaiNN in PyTorch, " + self.mode,
            "elements": [int(z) for z in self.tensors["atomic_numbers"]],
            "cutoff": float(self.config["cutoff"]),
            "layers": int(self.config["blocks"]),
            "heads": ["Default"],
            "dtype": str(self.tensors["embedding"].dtype).replace("torch.", ""),
            "precisions": ["float64", "float32"],
            "parameters": sum(tensor.numel() for name, tensor in self.tensors.items() if name.endswith((".weight", ".bias")) or name == "embedding"),
            "properties": self.properties,
            "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
            "why_no_gpu": "torch %s in %s finds no CUDA device" % (torch.__version__, sys.prefix),
            "versions": {"torch": torch.__version__},
        }

    def prepare(self, choice):
        self.calculator = self.student.StudentCalculator(self.path, choice["device"], getattr(self.torch, choice["dtype"]), self.mode)
        return {}


# ---- Any ASE calculator ----


def existing_file(path):
    if not os.path.isfile(str(path)):
        raise TeacherError(FILE, "%s: there is no such file" % path)
    return str(path)


@contextlib.contextmanager
def downloading(what, advice):
    """For packages that download weights on first use: in all of them a failure, such as a missing network, is an OSError."""
    try:
        yield
    except OSError as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise TeacherError(FILE, "%s could not be downloaded (%s): %s" % (what, reason, advice)) from None


def make_orb(model="orb_v3_conservative_inf_omat", weights_path=None, device="cpu", precision="float32-high", compile=False, **arguments):
    """Does not compile the network: Orb's default does, which needs a compiler and delays the first result."""
    from orb_models.forcefield import pretrained

    model = str(model).replace("-", "_")
    known = sorted(name for name in vars(pretrained) if name.startswith("orb_") and not name.endswith("_architecture"))
    if model not in known:
        raise TeacherError(UNSUPPORTED, "orb-models has no model '%s'; it has %s" % (model, ", ".join(known)))
    make, options = getattr(pretrained, model), {"device": device, "precision": precision, "compile": compile}
    if weights_path is not None:
        network = make(weights_path=existing_file(weights_path), **options)
    else:
        with downloading("the weights of " + model, "download them elsewhere and give the file: python:orb?model=%s&weights_path=PATH" % model):
            network = make(**options)
    if isinstance(network, tuple):  # releases for Python 3.12 also return an adapter for atoms
        from orb_models.forcefield.inference.calculator import ORBCalculator

        return ORBCalculator(network[0], network[1], device=device, **arguments)
    from orb_models.forcefield.calculator import ORBCalculator

    return ORBCalculator(network, device=device, **arguments)


def make_fennol(model=None, **arguments):
    if not model:
        raise TeacherError(UNSUPPORTED, "python:fennol needs a model file, which FeNNol does not include: python:fennol?model=PATH")
    path = existing_file(model)
    from fennol import ase

    class FENNIXCalculator(ase.FENNIXCalculator):
        def calculate(self, atoms=None, properties=("energy",), system_changes=tuple(ALL_CHANGES)):
            if "pbc" in system_changes:
                self._raw_inputs = None  # FeNNol updates the periodicity only when the cell changes
            super().calculate(atoms, list(properties), system_changes)

    return charges_from_info(FENNIXCalculator(model=path, **arguments))


def make_tblite(method="GFN2-xTB", verbosity=0, **arguments):
    from tblite.ase import TBLite

    return charges_from_info(TBLite(method=method, verbosity=verbosity, **arguments))


def make_sevennet(model="7net-0", device="cpu", **arguments):
    from sevenn.calculator import SevenNetCalculator

    model = str(model)
    if "/" in model or model.endswith(".pth"):
        return SevenNetCalculator(model=existing_file(model), device=device, **arguments)
    with downloading("the SevenNet model '%s'" % model, "sevenn includes 7net-0 and 7net-l3i5; download others elsewhere and give the file: python:sevennet?model=PATH"):
        return SevenNetCalculator(model=model, device=device, **arguments)


def make_chgnet(device="cpu", **arguments):
    from chgnet.model.dynamics import CHGNetCalculator

    arguments.setdefault("use_device", device)
    arguments.setdefault("return_site_energies", True)  # it declares that it provides them
    return CHGNetCalculator(**arguments)


def charges_from_info(calculator):
    """For calculators that read total charge and unpaired electrons as in ASE: as sums of initial charges and moments over atoms."""
    calculator.reads_initial_charges = True
    return calculator


SHORT_NAMES = {"orb": make_orb, "fennol": make_fennol, "tblite": make_tblite, "sevennet": make_sevennet, "chgnet": make_chgnet}


class AseTeacher(Teacher):
    def __init__(self, request):
        name, arguments = request["model"], request["arguments"]
        if request["factory"]:
            module = module_of(request["module"], name)
            factory = module
            for part in request["factory"].split("."):
                factory = getattr(factory, part, None)
            if not callable(factory):
                raise TeacherError(UNSUPPORTED, "'%s': the module %s has no callable '%s'" % (name, request["module"], request["factory"]))
        else:
            factory = SHORT_NAMES.get(request["module"])
            if factory is None:
                raise TeacherError(
                    UNSUPPORTED, "'%s': expected python:mace:PATH, python:MODULE:FACTORY or one of the short names %s" % (name, ", ".join("python:" + short for short in sorted(SHORT_NAMES)))
                )
        try:
            self.calculator = factory(**arguments)
        except ModuleNotFoundError as error:
            raise TeacherError(UNSUPPORTED, "'%s' needs the Python module '%s', which is not in the environment %s" % (name, error.name, sys.prefix)) from None
        if not hasattr(self.calculator, "calculate"):
            raise TeacherError(UNSUPPORTED, "'%s' returned a %s, which is not an ASE calculator: it has no calculate()" % (name, class_name(self.calculator)))
        properties = [str(p) for p in getattr(self.calculator, "implemented_properties", ["energy", "forces"])]
        self.properties = [p for p in ("energy", "forces", "stress", "energies") if p in properties]
        if "energy" not in self.properties:
            raise TeacherError(UNSUPPORTED, "'%s' returned a %s, which provides no energy" % (name, class_name(self.calculator)))

    def describe(self):
        return {
            "class": class_name(self.calculator),
            "elements": None,  # not known: the calculator decides
            "cutoff": 0,
            "layers": 0,
            "heads": ["Default"],
            "dtype": "float64",
            "precisions": [],  # fixed by the calculator
            "parameters": 0,
            "properties": self.properties,
            "gpus": 0,
            "why_no_gpu": "a calculator chooses its own device: pass it as an argument to the factory, for instance ?device=cuda, if the factory accepts one",
            "versions": {},
        }

    def prepare(self, choice):
        return {}

    def calculate(self, atoms, wanted):
        if getattr(self.calculator, "reads_initial_charges", False) and len(atoms) > 0:
            others = [0] * (len(atoms) - 1)
            atoms.set_initial_charges([atoms.info["charge"]] + others)
            atoms.set_initial_magnetic_moments([atoms.info["spin"] - 1] + others)
        return super().calculate(atoms, wanted)


def load(text):
    request = json.loads(text)
    teacher = {"mace": MaceTeacher, "student": StudentTeacher, "ase": AseTeacher}[request["kind"]](request)
    description = teacher.describe()
    description["python"] = "%d.%d.%d" % sys.version_info[:3]
    description["environment"] = sys.prefix
    return teacher, json.dumps(description)


def prepare(teacher, text):
    return json.dumps(teacher.prepare(json.loads(text)))


def unload(teacher):
    teacher.__dict__.clear()
    gc.collect()  # calculators and networks are full of reference cycles

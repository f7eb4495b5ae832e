# SPDX-License-Identifier: MIT
"""The student of docs/painn.md in PyTorch, with the weights of a model file: python:student:FILE.

It is what `mlff bench --compare` measures the native student against, and written as such models usually are: neighbours are found on the device and kept with a
skin, sums over edges are index_add, and forces come from autograd. Distances and radial functions are in double precision. Part of libmlff_python.so, as
teachers.py; needs torch and numpy."""
import json
import math

import torch

NORM_FLOOR = 1e-8  # under the square root of the norms of V v
COULOMB, BOHR = 14.3996454784255, 0.529177210903  # eV angstrom, angstrom
SHARES, DECAYS = (0.18175, 0.50986, 0.28022, 0.02817), (3.19980, 0.94229, 0.40290, 0.20162)
SKIN = 1.0  # angstrom, as in the native student on a GPU
DTYPES = {"F64": torch.float64, "F32": torch.float32, "I64": torch.int64}


class NotAStudent(Exception):
    """The file is not one that can be read here."""


def read_file(path):
    """The metadata and the tensors of a safetensors file."""
    with open(path, "rb") as file:
        content = file.read()
    size = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + size])
        metadata = header.pop("__metadata__", {})
        if metadata.get("format") != "mlff-painn" or metadata.get("painn_layout") != "1":
            raise NotAStudent("its metadata do not say that it is a student")
        tensors = {}
        for name, entry in header.items():
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = torch.frombuffer(bytearray(content[begin:end]), dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
        return json.loads(metadata["config"]), tensors
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise NotAStudent("it is not a safetensors file of mlff (%s: %s)" % (type(error).__name__, error)) from None


def linear(tensors, name, dtype):
    weight, bias = tensors[name + ".weight"], tensors.get(name + ".bias")
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=dtype)
    layer.weight.data = weight.to(dtype)
    if bias is not None:
        layer.bias.data = bias.to(dtype)
    return layer


def two_layers(tensors, name, dtype):
    return torch.nn.Sequential(linear(tensors, name + ".hidden", dtype), torch.nn.SiLU(), linear(tensors, name + ".output", dtype))


class Block(torch.nn.Module):
    def __init__(self, tensors, name, dtype):
        super().__init__()
        self.norm_floor = NORM_FLOOR
        self.filter_weight = torch.nn.Parameter(tensors[name + "filter.weight"].to(dtype))
        self.filter_bias = torch.nn.Parameter(tensors[name + "filter.bias"].to(dtype))
        self.message = two_layers(tensors, name + "message", dtype)
        self.mix = linear(tensors, name + "update.mix", dtype)
        self.update = two_layers(tensors, name + "update", dtype)

    def forward(self, s: torch.Tensor, v: torch.Tensor, basis: torch.Tensor, fade: torch.Tensor, direction: torch.Tensor, receivers: torch.Tensor, senders: torch.Tensor):
        width = s.shape[1]
        filters = torch.nn.functional.linear(basis, self.filter_weight) + fade * self.filter_bias
        along = self.message(s)[senders] * filters
        to_s, to_v, to_u = along.split(width, dim=1)
        s = s.index_add(0, receivers, to_s)
        v = v.index_add(0, receivers, to_v.unsqueeze(1) * v[senders] + to_u.unsqueeze(1) * direction.unsqueeze(2))
        first, second = self.mix(v).split(width, dim=2)
        norm = torch.sqrt((second * second).sum(dim=1) + self.norm_floor)
        to_s, to_dot, to_v = self.update(torch.cat([s, norm], dim=1)).split(width, dim=1)
        return s + to_s + to_dot * (first * second).sum(dim=1), v + to_v.unsqueeze(1) * first


class Student(torch.nn.Module):
    """Energies of atoms. Distances and sums are in double precision, everything else in `dtype`."""

    def __init__(self, config, tensors, dtype):
        super().__init__()
        self.cutoff = float(config["cutoff"])
        self.embedding = torch.nn.Parameter(tensors["embedding"].to(dtype))
        self.blocks = torch.nn.ModuleList(Block(tensors, "blocks.%d." % b, dtype) for b in range(config["blocks"]))
        self.readout = two_layers(tensors, "readout", dtype)
        self.register_buffer("atomic_energies", tensors["atomic_energies"].double())
        self.register_buffer("scales", tensors["scales"].double())
        z = tensors["atomic_numbers"].double()
        nothing = torch.zeros(len(z), len(z), dtype=torch.float64)
        radii = tensors["repulsion_radii"].double() if "repulsion_radii" in tensors else None
        self.register_buffer("reach", nothing if radii is None else radii[:, None] + radii[None, :])
        self.register_buffer("strength", COULOMB * z[:, None] * z[None, :])
        self.register_buffer("length", 0.8854 * BOHR / (z[:, None] ** 0.23 + z[None, :] ** 0.23))
        self.register_buffer("closest", tensors["closest"].double() if "closest" in tensors else nothing)
        self.register_buffer("shares", torch.tensor(SHARES, dtype=torch.float64))
        self.register_buffer("decays", torch.tensor(DECAYS, dtype=torch.float64))
        self.register_buffer("waves", torch.arange(1, config["radial"] + 1, dtype=torch.float64) * (math.pi / self.cutoff))

    def forward(self, elements: torch.Tensor, vectors: torch.Tensor, receivers: torch.Tensor, senders: torch.Tensor):
        distance = torch.sqrt((vectors * vectors).sum(dim=1))
        one, other = elements[receivers], elements[senders]
        closest = self.closest[one, other]
        x = ((closest - distance) / (0.3 * closest).clamp(min=1e-9)).clamp(max=1.0)
        seen = torch.where(distance < closest, closest - 0.3 * closest * x * (1 + x * x * (0.5 * x - 1)), distance).unsqueeze(1)
        fade = 0.5 * (1 + torch.cos(self.waves[0] * seen))
        s = self.embedding[elements]
        basis = (torch.sin(seen * self.waves) / seen * fade).to(s.dtype)
        fade = fade.to(s.dtype)
        direction = (vectors / distance.unsqueeze(1)).to(s.dtype)
        v = torch.zeros([s.shape[0], 3, s.shape[1]], dtype=s.dtype, device=s.device)
        for block in self.blocks:
            s, v = block(s, v, basis, fade, direction, receivers, senders)
        energies = self.atomic_energies[elements] + self.scales[elements] * self.readout(s).squeeze(1).double()

        reach = self.reach[one, other]
        t = (distance / reach.clamp(min=1e-9)).clamp(max=1.0)
        screening = (self.shares * torch.exp(-distance.unsqueeze(1) / self.length[one, other].unsqueeze(1) * self.decays)).sum(dim=1)
        repulsion = self.strength[one, other] / distance * screening * (1 + t * t * t * (-10 + t * (15 - 6 * t)))
        return energies.index_add(0, receivers, 0.5 * torch.where(distance < reach, repulsion, torch.zeros_like(repulsion)))


class Neighbors:
    """All pairs within the cutoff plus a skin, found on the device and kept while that is exact."""

    def __init__(self, cutoff, device):
        self.cutoff, self.reach, self.device = cutoff, cutoff + SKIN, device
        self.cell = self.pbc = self.found_at = None

    def update(self, positions, cell, pbc):
        """Receivers and senders of the candidates, and the shifts of the senders in lattice vectors."""
        is_same = self.found_at is not None and self.found_at.shape == positions.shape and (self.cell == cell).all() and (self.pbc == pbc).all()
        if not is_same or 2 * float((positions - self.found_at).square().sum(dim=1).max().sqrt()) > SKIN:
            self.search(positions, cell, pbc)
        return self.receivers, self.senders, self.shifts

    def search(self, positions, cell, pbc):
        import numpy

        self.found_at, self.cell, self.pbc = positions.clone(), cell.copy(), pbc.copy()
        whole = cell.copy()
        whole[~pbc] = numpy.linalg.svd(cell[pbc])[2][pbc.sum() :] if pbc.any() else numpy.eye(3)  # perpendicular to the periodic directions
        inverse = numpy.linalg.inv(whole)
        heights = 1 / numpy.linalg.norm(inverse, axis=0)
        lattice, inverse = (torch.as_tensor(matrix, device=self.device) for matrix in (whole, inverse))
        periodic = torch.as_tensor(pbc.astype(float), device=self.device)
        ranges = [range(-n, n + 1) for n in (int(self.reach / heights[k] + 0.5) if pbc[k] else 0 for k in range(3))]
        images = torch.tensor([[i, j, k] for i in ranges[0] for j in ranges[1] for k in ranges[2]], dtype=torch.float64, device=self.device)
        count = len(positions)
        rows = max(1, (1 << (25 if self.device.type == "cuda" else 21)) // max(1, count))
        found = []
        for begin in range(0, count, rows):
            between = positions[None, :, :] - positions[begin : begin + rows, None, :]
            nearest = -torch.round(between @ inverse) * periodic
            for image in images:
                shift = nearest + image
                squared = (between + shift @ lattice).square().sum(dim=2)
                near = squared < self.reach**2
                if not bool(image.any()):
                    own = torch.arange(begin, min(begin + rows, count), device=self.device)
                    near[own - begin, own] &= (nearest[own - begin, own] != 0).any(dim=1)
                receiver, sender = near.nonzero(as_tuple=True)
                found.append((receiver + begin, sender, shift[receiver, sender]))
        self.receivers, self.senders, self.shifts = (torch.cat(parts) for parts in zip(*found))


class StudentCalculator:
    """ASE's calculator interface."""

    implemented_properties = ["energy", "forces", "stress", "energies"]

    def __init__(self, path, device, dtype, mode):
        config, tensors = read_file(path)
        self.results, self.device = {}, torch.device(device)
        self.model = Student(config, tensors, dtype).to(self.device)
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        self.neighbors = Neighbors(self.model.cutoff, self.device)
        self.element_of = {int(z): index for index, z in enumerate(tensors["atomic_numbers"])}
        self.numbers = None
        if mode == "compile":
            self.model = torch.compile(self.model, dynamic=True)
        elif mode == "script":
            self.model = torch.jit.script(self.model)

    def calculate(self, atoms, properties, changes=None):
        import numpy

        numbers = atoms.get_atomic_numbers()
        if self.numbers is None or not numpy.array_equal(numbers, self.numbers):
            self.numbers = numbers
            self.elements = torch.tensor([self.element_of[int(z)] for z in numbers], dtype=torch.int64, device=self.device)
        positions = torch.as_tensor(atoms.get_positions(), device=self.device)
        cell = numpy.asarray(atoms.get_cell(), dtype=numpy.float64)
        receivers, senders, shifts = self.neighbors.update(positions, cell, numpy.asarray(atoms.get_pbc()))
        lattice = torch.as_tensor(cell, device=self.device)
        vectors = positions[senders] - positions[receivers] + shifts @ lattice
        kept = (vectors.square().sum(dim=1) < self.neighbors.cutoff**2).nonzero(as_tuple=True)[0]
        receivers, senders, vectors = receivers[kept], senders[kept], vectors[kept].requires_grad_()
        energies = self.model(self.elements, vectors, receivers, senders)
        by_vector, = torch.autograd.grad([energies.sum()], [vectors])
        forces = torch.zeros_like(positions).index_add(0, receivers, by_vector).index_add(0, senders, -by_vector)
        energies = energies.detach()
        self.results = {"energy": float(energies.sum()), "energies": energies.cpu().numpy(), "forces": forces.cpu().numpy()}
        if "stress" in properties:
            self.results["stress"] = (vectors.detach().T @ by_vector).cpu().numpy() / abs(numpy.linalg.det(cell))

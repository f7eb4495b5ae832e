#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the seeds of the fuzz targets zip, pickle, torch_archive, nqx, safetensors and trust into corpus/ next to this file.

Needs only Python's standard library: the classes of torch, e3nn and mace are stand-ins with the right names.
"""
import collections
import copyreg
import io
import json
import pathlib
import pickle
import struct
import sys
import types
import zipfile

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def stand_in(path):
    """A class that pickle finds under the given dotted path."""
    module_name, name = path.rsplit(".", 1)
    parts = module_name.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    found = getattr(sys.modules[module_name], name, None)
    if found is None:
        found = type(name, (), {"__module__": module_name, "__qualname__": name})
        setattr(sys.modules[module_name], name, found)
    return found


class Call:
    """Pickles as a call of a global."""

    def __init__(self, path, *arguments, state=None):
        self.parts = (stand_in(path), arguments) if state is None else (stand_in(path), arguments, state)

    def __reduce__(self):
        return self.parts


class New(Call):
    """Pickles as an object made by __new__, with a state."""

    def __reduce__(self):
        return (copyreg.__newobj__, (self.parts[0],) + self.parts[1]) + self.parts[2:]


class Storage:
    def __init__(self, kind, key, count, location="cpu"):
        self.id = ("storage", stand_in("torch." + kind), key, location, count)


class Pickler(pickle._Pickler):  # the C version requires that a new object is of its class
    def persistent_id(self, value):
        return value.id if isinstance(value, Storage) else None

    def save_reduce(self, func, args, state=None, *rest, obj=None):
        if getattr(func, "__name__", "") == "__newobj__":
            self.save(args[0])
            self.save(args[1:])
            self.write(pickle.NEWOBJ)
            if obj is not None and id(obj) not in self.memo:
                self.memoize(obj)
            if state is not None:
                self.save(state)
                self.write(pickle.BUILD)
            return
        super().save_reduce(func, args, state, *rest, obj=obj)


def pickled(value, protocol=2):
    output = io.BytesIO()
    Pickler(output, protocol).dump(value)
    return output.getvalue()


def tensor(storage, shape, strides, offset=0):
    return Call("torch._utils._rebuild_tensor_v2", storage, offset, shape, strides, False, collections.OrderedDict())


def parameter(value):
    return Call("torch._utils._rebuild_parameter", value, True, collections.OrderedDict())


def module(path, parameters=(), buffers=(), children=(), **attributes):
    state = {"training": False, "_parameters": dict(parameters), "_buffers": dict(buffers), "_modules": dict(children)}
    return New(path, state={**state, **attributes})


def irreps(*terms):
    return New("e3nn.o3._irreps.Irreps", tuple(
        New("e3nn.o3._irreps._MulIr", (mul, New("e3nn.o3._irreps.Irrep", (degree, parity)))) for mul, degree, parity in terms))


FLOATS = struct.pack("<16f", *range(16))  # 64 bytes, as in the storages that fuzz_torch_archive adds to a pickle


def archive(data, members=(), compression=zipfile.ZIP_STORED):
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", compression) as file:
        for name, contents in [("a/data.pkl", data), ("a/data/0", FLOATS), ("a/version", b"3\n"), *members]:
            file.writestr(zipfile.ZipInfo(name), contents, compression)
    return output.getvalue()


def modules():
    floats = Storage("FloatStorage", "0", 16)
    yield "linear", module("a.M", {"w": parameter(tensor(floats, (2, 3), (3, 1), 1)), "bias": None}, {"b": tensor(floats, (4, 2), (1, 4))})
    yield "types", module("a.M", (), {
        "double": tensor(Storage("DoubleStorage", "1", 8, "cuda:0"), (8,), (1,)),
        "long": tensor(Storage("LongStorage", "0", 8), (), ()),
        "half": tensor(Storage("HalfStorage", "0", 32), (0, 3), (3, 1)),
        "wide": Call("torch._utils._rebuild_tensor_v3", Storage("UntypedStorage", "1", 64), 0, (2,), (1,), False,
                     collections.OrderedDict(), stand_in("torch.uint16"))})
    dtype = Call("numpy.dtype", "i8", False, True)
    yield "attributes", module("a.M", x=1.5, y=[1, (True, None), {"k": float("inf")}], z=2**40, s={1, 2}, t="\u00e4", big=2**80,
                               irreps_in=irreps((8, 0, 1), (8, 1, -1)), f=stand_in("torch.nn.functional.silu"), d={1: 2},
                               g=Call("builtins.getattr", stand_in("torch._C._VariableFunctionsClass"), "tanh"),
                               n=Call("numpy.core.multiarray.scalar", dtype, struct.pack("<q", 7)),
                               a=Call("numpy.core.multiarray._reconstruct", state=(1, (2,), dtype, False, struct.pack("<2q", 1, 2))),
                               c=New("cue.Irreps", state={"_mulirreps": [New("cue.M", state={
                                   "mul": 3, "ir": New("cue.I", state={"l": 1, "p": -1})})]}))
    generated = archive(pickled(New("__torch__.m.C", state={"_w3j_1_1_0": tensor(floats, (2,), (1,))})))
    yield "generated", module("a.M", __codegen__={"_compiled_main_left_right": generated})
    yield "graph", Call("torch.fx.graph_module.reduce_graph_module", {"_parameters": {}, "_modules": {}, "_code": "def"}, "import")
    yield "script", New("__torch__.m.___torch_mangle_3.C", state={"w": tensor(floats, (2,), (1,)), "irreps_out": ((8, (0, 1)),)})
    yield "state_dict", {"w": tensor(floats, (2,), (1,))}
    yield "sevennet", {
        "model_state_dict": collections.OrderedDict({"onehot_to_feature_x.linear.weight": tensor(floats, (4,), (1,)), "rescale_atomic_energy.shift": tensor(floats, (), ())}),
        "config": {"_type_map": {1: 0, 8: 1}, "cutoff": 5.0, "channel": 4, "lmax": 1, "is_parity": False, "num_convolution_layer": 2, "version": "0.9.1",
                   "self_connection_type": ["nequip", "linear"], "act_scalar": {"e": "silu", "o": "tanh"}, "cutoff_function": {"cutoff_function_name": "poly_cut"},
                   "optim": stand_in("torch.optim.adam.Adam"), "train_shift_scale": False, "modal_map": {"PBE": 0}},
        "optimizer_state_dict": None}
    yield "mace", module(
        "mace.modules.models.ScaleShiftMACE", (),
        {"atomic_numbers": tensor(Storage("LongStorage", "1", 8), (2,), (1,)), "r_max": tensor(floats, (), (), 2)},
        {"interactions": module("torch.nn.ModuleList", (), (), {"0": module(
            "mace.modules.blocks.RealAgnosticInteractionBlock", (), (),
            {"conv_tp_weights": module("e3nn.nn._fc.FullyConnectedNet", hs=[8, 64, 16])}, avg_num_neighbors=8.5)}),
         "products": module("torch.nn.ModuleList", (), (), {"0": module("mace.P", (), (), {
             "symmetric_contractions": module("mace.S", (), (), {"contractions": module("torch.nn.ModuleList", (), (), {
                 "0": module("mace.C", (), {"U_matrix_1": tensor(floats, (2, 2), (2, 1))}, correlation=1)})})})}),
         "radial_embedding": module("mace.R", (), (), {"bessel_fn": module("mace.BesselBasis"), "cutoff_fn": module("mace.Cut", p=5)},
                                    out_dim=8, apply_cutoff=True)},
        heads=["Default"])


def safetensors(header, data=b"", padding=b""):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text + padding)) + text + padding + data


def safetensors_files():
    def entry(dtype, shape, begin, end):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    yield "empty", safetensors({})
    yield "two", safetensors({"__metadata__": {"k": "v"}, "a": entry("F32", [2, 2], 0, 16), "b": entry("U8", [0, 3], 16, 16)}, bytes(16), b"   ")
    types_of = {"F64": 8, "I64": 8, "F16": 2, "BF16": 2, "F8_E4M3": 1, "BOOL": 1, "C64": 8}
    header, at = {}, 0
    for name, size in types_of.items():
        header[name] = entry(name, [], at, at + size)
        at += size
    yield "types", safetensors(header, bytes(at))
    tree = {"class": "mace.modules.models.MACE", "attributes": {"x": [1, 2.5, {"real": "nan"}], "heads": ["a"]}, "tensors": [["t", "parameter"]],
            "children": [["interactions", {"class": "b", "attributes": {}, "tensors": [], "children": []}]]}
    yield "container", safetensors({"__metadata__": {"format": "mlff", "mlff_layout": "1", "mlff_module": json.dumps(tree)},
                                    "t": entry("F32", [1], 0, 4)}, bytes(4))
    metadata = {"format": "mlff-painn", "painn_layout": "1", "card": '{"name": "seed"}', "config": '{"hidden": 32, "blocks": 1, "radial": 1, "cutoff": 5.0}'}
    painn = {"__metadata__": metadata, "atomic_numbers": entry("I64", [2], 0, 16)}
    for number, name in enumerate(("atomic_energies", "scales", "repulsion_radii")):
        painn[name] = entry("F64", [2], 16 + 16 * number, 32 + 16 * number)
    painn["closest"] = entry("F64", [2, 2], 64, 96)
    painn["embedding"] = entry("F32", [2, 32], 96, 352)
    yield "painn", safetensors(painn, struct.pack("<2q", 1, 8) + bytes(48) + struct.pack("<4d", 0.5, 0.7, 0.7, 1.1) + bytes(256))
    state, data = {"__metadata__": {"format": "mlff-dynamics", "version": "1", "step": "7", "run.dt": "0.5"}}, b""
    for name, dtype, shape, values in [("masses", "F64", [1], [39.9]), ("positions", "F64", [1, 3], [0, 1, 2]), ("velocities", "F64", [1, 3], [0, 0, 0.1]),
                                       ("searched_positions", "F64", [1, 3], [0, 1, 2]), ("cell", "F64", [3, 3], [5, 0, 0, 0, 5, 0, 0, 0, 5]),
                                       ("searched_cell", "F64", [3, 3], [5, 0, 0, 0, 5, 0, 0, 0, 5]), ("thermostat", "F64", [0], []), ("scalars", "F64", [4], [-1, 0, 0, 1]),
                                       ("atomic_numbers", "I32", [1], [18]), ("is_fixed", "U8", [1], [0]), ("periodic", "U8", [3], [1, 1, 1])]:
        more = struct.pack(f"<{len(values)}{ {'F64': 'd', 'I32': 'i', 'U8': 'B'}[dtype]}", *values)
        state[name] = entry(dtype, shape, len(data), len(data) + len(more))
        data += more
    yield "dynamics", safetensors(state, data)
    many = {f"0/{name}": value for name, value in state.items() if name != "__metadata__"}
    many["__metadata__"] = {"format": "mlff-many-dynamics", "version": "1", "count": "2", "run.step": "7", "1/ended": "it broke",
                            **{f"0/{key}": value for key, value in state["__metadata__"].items()}}
    yield "many_dynamics", safetensors(many, data)
    yield "duplicate", safetensors(b'{"a":1,"a":2}')


def trust_files():
    """One of two elements, and its like with numbers that are large."""
    config = {"descriptors": 3, "components": 2, "radius": 3.0, "rest_variance": 0.5, "rest_weight": 0.2, "lowest_score": -6.0, "highest_score": 1.0,
              "own_weight": 0.8, "neighbor_weight": 0.3, "count_weight": -0.05, "outside_error": 0.4, "alarm_error": 0.2}
    for name, size in (("small", 0.25), ("large", 1e29)):
        header, data = {"__metadata__": {"format": "mlff-trust", "trust_layout": "1", "config": json.dumps(config), "model": "0" * 64, "card": '{"frames": 3}'}}, b""
        for key, dtype, shape, count in (("atomic_numbers", "I64", [2], 2), ("variances", "F64", [2], 2), ("limits", "F64", [2], 2), ("offsets", "F64", [2], 2), ("linear", "F64", [2], 2),
                                         ("quadratic", "F64", [3], 3), ("final_offsets", "F64", [2], 2), ("centers", "F32", [2, 3], 6), ("directions", "F32", [3, 2], 6)):
            values = [1, 8] if dtype == "I64" else [size * (1 + i) for i in range(count)]
            more = struct.pack(f"<{count}{ {'F64': 'd', 'F32': 'f', 'I64': 'q'}[dtype]}", *values)
            header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(more)]}
            data += more
        yield name, safetensors(header, data)
    yield "empty", safetensors({"__metadata__": {"format": "mlff-trust", "trust_layout": "1", "config": "{}"}})


def nqx_files():
    """Whole models are among the goldens of tests/golden/nequip."""
    config = {"atomic_numbers": [1, 8], "hidden_irreps": "2x0e+1x1o", "lmax": 1, "cutoff": 4.5, "n_layers": 1, "radial_basis_size": 2, "radial_mlp_size": 2,
              "radial_mlp_layers": 1, "radial_polynomial_p": 6.0, "index_weights": False, "layer_norm": True, "shift": 0.0, "scale": 1.0, "avg_n_neighbors": 9.5}
    line = json.dumps(config).encode() + b"\n"

    def array(descr, shape, count, size):
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(count * size)

    yield "first_line", line
    yield "one_array", line + array("<f4", (2,), 2, 4)
    yield "many_arrays", line + b"".join([array("<f4", (2,), 2, 4), array("<f4", (2, 2), 4, 4), array("<f8", (2, 4), 8, 8), array("<f4", (2, 2), 4, 4)])
    yield "large_array", line + array("<f4", (2**40, 2**40), 2, 4)
    yield "by_columns", line + array("<f4", (2,), 2, 4).replace(b"False", b"True ")
    yield "other_type", line + array("<i8", (2,), 2, 8)


def zip_files():
    for name, compression in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w", compression) as file:
            file.comment = b"a comment"
            for member, contents in (("d/one", b"one" * 40), ("d/none", b""), ("two", bytes(range(256)))):
                info = zipfile.ZipInfo(member)
                info.extra = b"FB\x02\x00zz"
                file.writestr(info, contents, compression)
        yield name, output.getvalue()
    output = io.BytesIO()

    class Pipe:  # cannot seek: sizes follow the data
        write, flush = output.write, output.flush

    with zipfile.ZipFile(Pipe(), "w", zipfile.ZIP_DEFLATED) as file:
        with file.open(zipfile.ZipInfo("late"), "w", force_zip64=True) as member:
            member.write(b"sizes come later" * 9)
    yield "late_sizes", output.getvalue()
    end = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 0, 0, 0, 0) + struct.pack("<4sIQI", b"PK\x06\x07", 0, 0, 1)
    yield "zip64_nothing", end + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, 0)


def pickles():
    loop = []
    loop.append(loop)
    value = [1, -1, 300, 2**40, -2**40, 2**80, 1.5, "text", "\u00e4" * 3, b"bytes\xff", (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {"k": None, 1: True},
             {3, 4}, frozenset([5]), bytearray(b"a"), loop, collections.OrderedDict(a=1), "x" * 300, b"y" * 300]
    for protocol in range(2, 6):
        yield f"protocol{protocol}", pickled(value, protocol)
    for name, value in modules():
        yield name, pickled(value)


def write(folder, items):
    directory = CORPUS / folder
    directory.mkdir(parents=True, exist_ok=True)
    for name, contents in items:
        (directory / name).write_bytes(contents)


def torch_archives():
    for name, value in modules():
        yield name + ".pkl", pickled(value)
        if name in ("linear", "generated", "script", "mace"):
            code = [("a/code/__torch__/m.py", b'class C(Module):\n  __parameters__ = ["w", ]\n')]
            members = [("a/data/1", FLOATS), ("a/byteorder", b"little"), *code]
            yield name + ".model", archive(pickled(value), members)
    yield "deflated.model", archive(pickled(dict(modules())["linear"]), (), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    write("zip", zip_files())
    write("pickle", pickles())
    write("torch_archive", torch_archives())
    write("nqx", nqx_files())
    write("safetensors", safetensors_files())
    write("trust", trust_files())

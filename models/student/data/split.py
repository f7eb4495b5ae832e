# SPDX-License-Identifier: MIT
"""Which frames are for training, validation and test: decided by what the frame is made of, never by the frame.

Needs the standard library only. SMILES are canonical and without stereo marks, so that mirror images fall together.
"""
import hashlib

SPLITS = ("train", "validation", "test")
WATER = "O"

# Run in simulations with the trained model, or too small to stand for a group of molecules.
ALWAYS_TRAIN = frozenset([
    WATER, "CCO", "c1ccccc1", "CNC(=O)C(C)NC(C)=O",
    "[H][H]", "N#N", "F", "Cl", "[C-]#[O+]", "FF", "ClCl", "C", "N", "S",
])


def _hash_split(key):
    """90 % train, 5 % validation, 5 % test, by the SHA-256 of the key."""
    percent = int.from_bytes(hashlib.sha256(("student:" + key).encode()).digest()[:8], "big") % 100
    return "test" if percent < 5 else "validation" if percent < 10 else "train"


def molecule_split(smiles):
    return "train" if smiles in ALWAYS_TRAIN else _hash_split(smiles)


def system_split(smiles_of_members, seed):
    """Split of one molecule or a cluster of several.

    A cluster with a test molecule is test, with a validation molecule validation, so no held-out molecule is ever seen in
    training. A cluster of training molecules follows the hash of the set of its molecules; one of water alone, the hash of
    its size and seed.
    """
    members = set(smiles_of_members)
    if len(smiles_of_members) == 1:
        return molecule_split(smiles_of_members[0])
    if members == {WATER}:
        return _hash_split(f"water:{len(smiles_of_members)}:{seed}")
    of_members = {molecule_split(member) for member in members}
    for held_out in ("test", "validation"):
        if held_out in of_members:
            return held_out
    return _hash_split(".".join(sorted(members)))

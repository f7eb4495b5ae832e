# SPDX-License-Identifier: MIT
"""Writes the list of molecules as JSON lines {smiles, heavy, split, source}: the known ones, then grown ones.

    make_molecules.py [--count 12000] [--seed 1] --out molecules.jsonl

Molecules are grown from a ring or a chain atom by putting fragments on atoms with hydrogens until a drawn size is reached;
what has a group that no chemist would keep in a bottle is dropped. The same seed gives the same list.
"""
import argparse
import json
import pathlib
import random

from rdkit import Chem, RDLogger

from split import ALWAYS_TRAIN, molecule_split

RDLogger.DisableLog("rdApp.*")
ELEMENTS = {1, 6, 7, 8, 9, 16, 17}

# Heavy atoms of a grown molecule and its weight: mostly small, since the cost of a label grows with the cube of the size.
SIZES = {2: .5, 3: 2, 4: 4, 5: 7, 6: 10, 7: 13, 8: 14, 9: 13, 10: 11, 11: 8, 12: 6, 13: 1, 14: .7, 15: .5, 16: .4, 17: .4, 18: .3,
         19: .3, 20: .3, 21: .2, 22: .2, 23: .2, 24: .2, 25: .15, 26: .15, 27: .1, 28: .1, 29: .1, 30: .1}

SEEDS = ("C C C C CC CC CCC CCO CCN C=C C=C C#C C=O CO CN CS O=CN O=CO COC CNC CSC C1CC1 C1CCC1 C1CCCC1 C1CCCC1 C1CCCCC1 C1CCCCC1 "
         "C1CO1 C1CN1 C1CCOC1 C1CCNC1 C1CCSC1 C1CCOCC1 C1CCNCC1 C1COCCN1 C1CNCCN1 C1COCCO1 C1CCSCC1 C1=CCCC1 C1=CCCCC1 C1CCNC1=O "
         "C1CCC(=O)C1 C1CCC(=O)CC1 C1COC(=O)C1 C1CNC(=O)N1 C1CC2CCC1C2 C1CCCCCC1 C1COC1 C1CNC1 C1CSC1 C1CS1 C1CC12CC2 C1CC2CC2C1 "
         "c1ccccc1 c1ccccc1 c1ccccc1 c1ccccc1 c1ccncc1 c1ccncc1 c1cncnc1 c1cnccn1 c1ccnnc1 c1cc[nH]c1 c1ccoc1 c1ccsc1 c1cnc[nH]1 "
         "c1cn[nH]c1 c1cocn1 c1cscn1 c1conc1 c1nc[nH]n1 c1c[nH]nn1 c1nnco1 c1csnc1 c1ccc2[nH]ccc2c1 c1ccc2occc2c1 c1ccc2sccc2c1 "
         "c1ccc2[nH]cnc2c1 c1ccc2ncccc2c1 c1ccc2ccccc2c1 O=c1cccc[nH]1 O=c1cc[nH]c(=O)[nH]1 c1ncc2nc[nH]c2n1 C1=COCCC1 C1=CNC(=O)CC1 "
         "O=C1C=CCCC1 C1CSCN1 C1CN=CN1 C1CC(=O)NC1=O C1=CC(=O)NC1=O").split()

FRAGMENTS = {  # joined by a drawn atom with a hydrogen; weight
    "C": 16, "CC": 4, "CCC": 1, "O": 8, "N": 6, "F": 4, "Cl": 3.5, "S": 2.5, "OC": 3, "NC": 2.5, "CO": 2.5, "CN": 2.5, "SC": 2, "CS": 1, "C=O": 3, "CC=O": 2,
    "OC=O": 2.5, "CC(=O)O": 1.5, "COC=O": 1.5, "NC=O": 3, "CC(N)=O": 1.5, "CNC=O": 1.5, "C#N": 3, "CC#N": .7, "C#C": 1.5, "C=C": 3, "CC=C": 1, "C=N": .5, "C=NO": .5,
    "C[N+](=O)[O-]": .5, "CS(C)(=O)=O": 1.5, "CS(N)(=O)=O": 1, "CS(C)=O": .8, "CC(F)(F)F": .7, "FC(F)F": 1.2, "ClCCl": .4, "FCF": .5, "C1CC1": 1, "C1CCC1": .5, "C1CO1": .4,
    "C1CCCC1": .4, "C1CCNC1": .4, "C1CCOC1": .4, "C1COCCN1": .4, "c1ccccc1": 1.2, "c1ccncc1": .5, "c1ccoc1": .3, "c1ccsc1": .3, "c1cnc[nH]1": .3, "c1cc[nH]c1": .3, "NC(N)=O": .7,
    "NC(N)=S": .3, "NC(N)=N": .3, "CC(C)C": 1, "CC(C)(C)C": .4, "CNC": .7, "CN(C)C": .7, "COC": .7, "CSC": .6, "CSSC": .2, "CC(C)=O": 1, "C=C=O": .05, "CN=C=O": .1, "CC(N)=S": .3,
    "NCC(=O)O": .4, "CC(N)C(N)=O": .3, "CNC(=O)CN": .3,
}
NITRO = "[N+](=O)[O-]"

FORBIDDEN = [Chem.MolFromSmarts(text) for text in (
    "[O,S;X2][O,S;X2][O,S;X2]", "[O;X2][O;X2]", "[N;!a;!$(N(=O)[O-])][N;!a][N;!a]", "[N;!a][N;!a][N;!a][N;!a]", "[N,O,S]-!@[F,Cl]", "[O;X2]-!@[S;X2]", "[O;X2]-[N;!$([N+])][O;X2]",
    "[S;X2]-!@[N;!a]", "[S;X2]-!@[S;X2]-!@[N,O,S]", "[N;!a][N;!a][O;X2]", "[N;!a]-[O]-[N;!a]", "[N;!a]-[O]-[C,S]=[O,S]", "[a;#7,#8,#16]-!@[N,O,S;!a]", "[R]#[R]", "[R]=[R]=[R]", "[r3]=[*]", "[r4]=[r4]", "[r3]-[r3]=*",
    "*=*=*=*", "[C;X4]([OH,NH2,SH])([OH,NH2,SH])[OH,NH2,SH]", "[C;X4]([O,N,S])([O,N,S])([O,N,S])[O,N,S]", "[OH,SH][C;X4][F,Cl]", "[NH2,NH][C;X4][F,Cl]", "C=[C;$(C[OH])][OH]", "[CX3](=O)(O)[O;X2][CX3]=O",
    "[C;X4]([F,Cl])([F,Cl])[OH,NH2]", "[S;X3,X4][S;X3,X4]", "[S;X3,X4][F,Cl]", "[S;X4](=O)(=O)(O)O", "C(=O)[F,Cl]", "[C;X2]=[C;X2]", "N=C=N", "[N+](=O)([O-])[!#6]", "[CX3](=O)[CX3](=O)[CX3](=O)", "[C;X4]([C,N]#*)([C,N]#*)",
    "[NH]=[C;!$(C(N)N)][!#7]", "C#CC#CC#C", "[N,O,S;H1,H2]C#[C,N]", "[N,O,S]C#C")]


def acceptable(molecule):
    return not any(molecule.HasSubstructMatch(pattern) for pattern in FORBIDDEN)


def canonical(molecule):
    return Chem.MolToSmiles(molecule, isomericSmiles=False)


def check(smiles):
    """Canonical SMILES of a neutral closed-shell molecule of our elements; anything else is a mistake in the list."""
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or Chem.GetFormalCharge(molecule) != 0:
        raise ValueError(f"{smiles} is not a neutral molecule that RDKit can read")
    with_hydrogens = Chem.AddHs(molecule)
    if any(atom.GetAtomicNum() not in ELEMENTS or atom.GetNumRadicalElectrons() for atom in with_hydrogens.GetAtoms()):
        raise ValueError(f"{smiles} has another element or an unpaired electron")
    return canonical(molecule)


def atoms_with_hydrogen(molecule):
    return [atom.GetIdx() for atom in molecule.GetAtoms() if atom.GetTotalNumHs() > 0]


def join(molecule, fragment, rng):
    """Puts the fragment in the place of a hydrogen; None where that gives nothing valid."""
    places, hooks = atoms_with_hydrogen(molecule), atoms_with_hydrogen(fragment)
    if not places or not hooks:
        return None
    # Carbon is preferred to a heteroatom as the place: N and O would otherwise fill up first in small molecules.
    weights = [3 if molecule.GetAtomWithIdx(i).GetAtomicNum() == 6 else 1 for i in places]
    place, hook = rng.choices(places, weights)[0], rng.choice(hooks)
    both = Chem.RWMol(Chem.CombineMols(molecule, fragment))
    other = molecule.GetNumAtoms() + hook
    both.AddBond(place, other, Chem.BondType.SINGLE)
    for index in (place, other):
        atom = both.GetAtomWithIdx(index)
        if atom.GetNumExplicitHs() > 0:
            atom.SetNumExplicitHs(atom.GetNumExplicitHs() - 1)
    try:
        Chem.SanitizeMol(both)
    except (Chem.AtomValenceException, Chem.KekulizeException):
        return None
    return both.GetMol()


def raise_bond(molecule, rng):
    """Makes one single bond outside rings between C and C, N or O double."""
    bonds = [bond.GetIdx() for bond in molecule.GetBonds()
             if bond.GetBondType() == Chem.BondType.SINGLE and not bond.IsInRing()
             and bond.GetBeginAtom().GetTotalNumHs() and bond.GetEndAtom().GetTotalNumHs()
             and 6 in (bond.GetBeginAtom().GetAtomicNum(), bond.GetEndAtom().GetAtomicNum())
             and not (bond.GetBeginAtom().GetIsAromatic() or bond.GetEndAtom().GetIsAromatic())]
    if not bonds:
        return None
    edited = Chem.RWMol(molecule)
    edited.GetBondWithIdx(rng.choice(bonds)).SetBondType(Chem.BondType.DOUBLE)
    try:
        Chem.SanitizeMol(edited)
    except (Chem.AtomValenceException, Chem.KekulizeException):
        return None
    return edited.GetMol()


def grow(size, rng, seeds, fragments, weights):
    """A molecule of the given number of heavy atoms, or None."""
    fitting = [seed for seed in seeds if seed.GetNumAtoms() <= size]
    molecule = rng.choice(fitting)
    for _ in range(60):
        room = size - molecule.GetNumAtoms()
        if room <= 0:
            break
        fragment = rng.choices(fragments, weights)[0]
        if room >= 8 and rng.random() < .35:
            fragment = rng.choice(seeds)
        if fragment.GetNumAtoms() <= room:
            molecule = join(molecule, fragment, rng) or molecule
    if rng.random() < .12:
        molecule = raise_bond(molecule, rng) or molecule
    return molecule if molecule.GetNumAtoms() == size and acceptable(molecule) else None


def make(count, seed):
    known = pathlib.Path(__file__).with_name("known_molecules.txt").read_text().splitlines()
    source = {check(smiles): "known" for line in known if not line.startswith("#") for smiles in line.split()}
    missing = ALWAYS_TRAIN - set(source)
    if missing:
        raise ValueError(f"not in known_molecules.txt, or not canonical in split.py: {sorted(missing)}")
    rng = random.Random(seed)
    seeds = [Chem.MolFromSmiles(smiles) for smiles in SEEDS]
    fragments = [Chem.MolFromSmiles(smiles) for smiles in FRAGMENTS]
    weights = list(FRAGMENTS.values())
    tries = 0
    while len(source) < count:
        tries += 1
        if tries > 60 * count:
            raise RuntimeError(f"only {len(source)} molecules after {tries} tries")
        size = rng.choices(list(SIZES), list(SIZES.values()))[0]
        molecule = grow(size, rng, seeds, fragments, weights)
        if molecule is None or any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
            continue
        # Read back, so that what is written is what any reader of the SMILES gets.
        again = Chem.MolFromSmiles(canonical(molecule))
        if again is not None and acceptable(again):
            source.setdefault(canonical(again), "grown")
    return [{"smiles": smiles, "heavy": Chem.MolFromSmiles(smiles).GetNumHeavyAtoms(), "split": molecule_split(smiles), "source": origin}
            for smiles, origin in source.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=12000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    molecules = make(options.count, options.seed)
    options.out.write_text("".join(json.dumps(molecule) + "\n" for molecule in molecules))
    print(f"{len(molecules)} molecules:", {split: sum(m["split"] == split for m in molecules) for split in ("train", "validation", "test")})


if __name__ == "__main__":
    main()

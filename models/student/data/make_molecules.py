# SPDX-License-Identifier: MIT
"""Writes the list of molecules as JSON lines {smiles, heavy, class, split, source}: known, enumerated and grown ones.

    make_molecules.py [--count 24000] [--seed 1] --out molecules.jsonl

Known ones are those of known_molecules.txt. Enumerated ones have 2 to 6 heavy atoms: all graphs of C, N, O, F, S and Cl with up to
three, and a random share of those with four to six. Grown ones begin as a ring or a chain atom; fragments are put on atoms with
hydrogens until a drawn size is reached. Dropped is only what has no neutral closed-shell minimum. The same seed gives the same list.
"""
import argparse
import json
import pathlib
import random

from rdkit import Chem, RDLogger

from split import ALWAYS_TRAIN, molecule_split

RDLogger.DisableLog("rdApp.*")
ELEMENTS = {1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 35, 53}

# Heavy atoms of a grown molecule and its weight: mostly small, since the cost of a label grows with the cube of the size.
SIZES = {3: 2, 4: 6, 5: 10, 6: 13, 7: 14, 8: 13, 9: 10, 10: 7, 11: 4, 12: 3, 13: 1, 14: .6, 15: .4, 16: .4, 17: .3, 18: .3, 19: .2, 20: .2, 22: .15, 24: .15, 26: .1, 28: .1, 30: .1}
RARE_SIZES = {2: 1, 3: 5, 4: 11, 5: 15, 6: 16, 7: 12, 8: 8, 9: 4, 10: 2, 11: 1, 12: .5}

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
RARE_SEEDS = ("OO NN C=C=C C=C=O C=C=N C=C=S CN=[N+]=[N-] C=[N+]=[N-] C[N+](C)(C)[O-] SS OS NO N=N N=NN CS(C)=O CS(C)(=O)=O NS SSS C=NO C1OO1 C1CN1 C1NN1 "
              "C1CS1 C1=CC1 C1=CCC1 C=C1CC1 C1CON1 C1CSS1 C1CSSC1 C1CNN1 C1CNNC1 C1COOC1 [O-][n+]1ccccc1 C=S CC(=S)N N=C=N N=C=O N=C=S [C-]#[N+]C C#[N+][O-] "
              "C=[N+](C)[O-] C=C=C=C O=C=C=C=O CC(=O)Cl CC(=O)F P CP CP(C)C P=O CP(C)(C)=O OP(O)(O)=O COP(OC)OC C=P CPP c1ccpcc1 CBr CI CCBr CCI c1ccccc1 "
              "BrCBr [SiH4] C[SiH3] C[SiH2]C C[Si](C)(C)C [SiH3]O[SiH3] CO[SiH3] [SiH3]N C1CC[SiH2]C1 CB BO OBO OB(O)O CB(O)O CB(C)C NB c1ccccc1 C1OBOC1 "
              "C1COCO1 CN(C)B CC C CCO CCN").split()
# As FRAGMENTS, for molecules with bonds that are rare in well-known organic molecules.
RARE_FRAGMENTS = {
    "C": 22, "CC": 5, "O": 5, "N": 5, "F": 4, "Cl": 4, "S": 3, "OO": 3, "COO": 1.5, "CC(=O)OO": .5, "NN": 3, "CNN": 1, "N=N": 1.5, "NO": 2, "CON": 1, "C=NO": 1,
    "SS": 2.5, "CSS": 1, "SSS": .4, "OS": 1, "NS": 1, "CSO": .5, "CS=O": .8, "CS(C)=O": 1, "CS(C)(=O)=O": 1, "O=S=O": .2, "OS(=O)=O": .6, "CS(=O)(=O)O": .4, "CS(N)(=O)=O": .6, "NS(=O)=O": .5,
    "N=[N+]=[N-]": 2, "CN=[N+]=[N-]": 1, "C=[N+]=[N-]": 1, "C=C=C": 1.5, "C=C=O": 1.5, "C=C=N": .6, "C=C=S": .5, "CC=C=O": .5, "C=C=C=C": .5, "N=C=O": 1.2, "N=C=S": 1, "N=C=N": .8, "CN=C=NC": .3,
    "C[N+](C)(C)[O-]": .8, "C=[N+](C)[O-]": .8, "[O-][n+]1ccccc1": .5, "C#[N+][O-]": .8, "[C-]#[N+]C": .6, "N[N+](=O)[O-]": .6, "O[N+](=O)[O-]": .6, "C[N+](=O)[O-]": 1, "ON=O": .5, "NN=O": .5, "CN=O": .6,
    "C=S": 1.5, "CC=S": .6, "NC(N)=S": .4, "CC(=S)S": .3, "CC(=O)Cl": 1, "CC(=O)F": .8, "O=CCl": .6, "O=CBr": .3, "C#C": 1.2, "C#N": 1.5, "C=O": 2.5, "C=C": 2.5, "C=N": 1, "OC=O": 1, "NC=O": 1,
    "C1CC1": .7, "C1CO1": .7, "C1CN1": .7, "C1CS1": .5, "C1=CC1": .5, "C1NN1": .3, "C1OO1": .3, "C1CCC1": .4, "c1ccccc1": .8, "c1ccncc1": .3, "c1ccoc1": .3, "c1ccsc1": .3,
    "FC(F)F": .6, "ClC(Cl)Cl": .4, "CBr": 3, "Br": 7, "BrCBr": .3, "I": 6, "CI": 2.5, "P": 3, "CP": 2, "CP(C)C": 1, "O=P": 1, "CP(C)(C)=O": 1, "OP(O)(O)=O": .8, "COP(=O)(OC)OC": .4, "COP": .6, "NP": .5, "PP": .3,
    "S=P": .5, "CP(Cl)Cl": .2, "FP(F)F": .1, "[SiH4]": 3, "C[SiH3]": 2, "C[Si](C)(C)C": .8, "O[SiH3]": 1.5, "[SiH3]O[SiH3]": .6, "N[SiH3]": .5, "[SiH3][SiH3]": .4, "Cl[SiH3]": .5, "F[SiH3]": .4, "S[SiH3]": .3,
    "B": 2, "CB": 1, "OBO": 2, "CB(C)C": .8, "NB": 1, "COBOC": .4, "FBF": .4, "ClBCl": .3, "BrBBr": .1,
}
# No neutral closed-shell minimum, or none that molecules of this size keep at 300 K.
FORBIDDEN = [Chem.MolFromSmarts(text) for text in (
    "[O;X2][O;X2][O;X2]", "[O;X2][O;X2][S;X2][O;X2]", "[N;!a][N;!a][N;!a][N;!a]", "[r3,r4,r5,r6,r7]#[*;R]", "[R]=[R]=[R]", "[r3]=[r3]=*", "[a]:[a;r3]", "[r3]1=[r3]~[r3]=1", "[O;X2][C;X2]#[C;X2][O;X2]",
    "[*;r3]=[*;r3]=[*]", "[O,N;X2]([F,Cl,Br,I])[F,Cl,Br,I]", "[O;X2][N;X3][O;X2]", "[O;X2][O;X2][N,F,Cl,Br,I]", "[N;!a]([F,Cl,Br,I])[N,O;!a]", "C#CC#CC#C", "[C-]#[N+][!#6]",
    "[C-]#[N+]C(=O)", "[N+](=O)([O-])[N+](=O)[O-]", "[N;+]([O-])[N;+][O-]", "[N+]=[N-].[N+]=[N-]", "[N+]#[C]-[!#6;!#1]", "[r3](=*)~[r3]=*", "[#8;X2][P,B,Si;r3]", "C=[P]=*", "B=*", "[Si]=*", "[F,Cl,Br,I]C(=O)C(=O)[F,Cl,Br,I]",
    "[S;X3,X4][S;X3,X4]", "O=S(=O)(O)OO", "S(=O)(=O)=*", "[a]1[a][a][a]1", "[P,S;X2]=[O,N,P;R]", "[O;R]=[*;R]")]
CARBENES = [Chem.MolFromSmarts(text) for text in ("[C;X2;v2]", "[C;X1;v1]", "[N;X1;v1]", "[S;v3]", "[S;v5]", "[P;v4]", "[P;v2]", "[N;v5]")]

# The first that a molecule has is its class. Elements first: their bonds differ from all others.
CLASSES = {name: [Chem.MolFromSmarts(text) for text in texts.split()] for name, texts in (
    ("phosphorus", "[#15]"), ("boron", "[#5]"), ("silicon", "[#14]"), ("iodine", "[#53]"), ("bromine", "[#35]"),
    ("azide or diazo", "[#7,#6]=[N+]=[N-] [N-]-[N+]#N"), ("peroxide", "[OX2][OX2]"), ("N-oxide", "[#7+;!$([N+](=O)[O-])][O-]"),
    ("ketene or cumulene", "*=[C;X2]=*"), ("isocyanide", "[C-]#[N+]"), ("halogen on N, O or S", "[#7,#8,#16][F,Cl]"), ("S-S", "[#16]~[#16]"), ("S-O", "[#16]~[#8]"), ("S-N", "[#16;!a]~[#7;!a]"),
    ("N-N", "[#7;!a]~[#7;!a]"), ("N-O", "[#7;!+;!a]~[#8;!a]"), ("acyl halide", "C(=[O,S])[F,Cl]"), ("thiocarbonyl", "[#6]=[#16]"), ("small ring", "[r3] [r4]"))}


def class_of(molecule):
    """The class that tables of errors have a row for."""
    return next((name for name, patterns in CLASSES.items() if any(molecule.HasSubstructMatch(pattern) for pattern in patterns)), "ordinary")


def acceptable(molecule):
    return not any(molecule.HasSubstructMatch(pattern) for pattern in FORBIDDEN + CARBENES)


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


VALENCES = {"C": 4, "N": 3, "O": 2, "S": 2, "F": 1, "Cl": 1}
BONDS = {1: Chem.BondType.SINGLE, 2: Chem.BondType.DOUBLE, 3: Chem.BondType.TRIPLE}


def extensions(molecule):
    """All molecules with one heavy atom more: on a hydrogen or several, or as an oxygen on a lone pair of S or N."""
    hydrogens = [atom.GetTotalNumHs() for atom in molecule.GetAtoms()]
    for place in range(molecule.GetNumAtoms()):
        for symbol, valence in VALENCES.items():
            for order in range(1, min(valence, hydrogens[place], 3) + 1):
                edited = Chem.RWMol(molecule)
                edited.AddBond(place, edited.AddAtom(Chem.Atom(symbol)), BONDS[order])
                yield edited
        atom = molecule.GetAtomWithIdx(place)
        if atom.GetSymbol() == "S" and atom.GetTotalValence() in (2, 4):
            edited = Chem.RWMol(molecule)
            edited.AddBond(place, edited.AddAtom(Chem.Atom("O")), BONDS[2])
            edited.GetAtomWithIdx(place).SetNumExplicitHs(hydrogens[place])
            yield edited
        if atom.GetSymbol() == "N" and atom.GetFormalCharge() == 0 and (hydrogens[place] == 0 or atom.GetDegree() > 1):
            edited = Chem.RWMol(molecule)
            other = edited.AddAtom(Chem.Atom("O"))
            edited.AddBond(place, other, BONDS[1])
            edited.GetAtomWithIdx(place).SetFormalCharge(1)
            edited.GetAtomWithIdx(place).SetNumExplicitHs(hydrogens[place])
            edited.GetAtomWithIdx(other).SetFormalCharge(-1)
            yield edited


def closures(molecule):
    """All molecules with one ring or one bond order more."""
    count = molecule.GetNumAtoms()
    for one in range(count):
        for other in range(one):
            if not (molecule.GetAtomWithIdx(one).GetTotalNumHs() and molecule.GetAtomWithIdx(other).GetTotalNumHs()):
                continue
            edited, bond = Chem.RWMol(molecule), molecule.GetBondBetweenAtoms(one, other)
            if bond is None:
                edited.AddBond(one, other, BONDS[1])
            elif bond.GetBondType() in (BONDS[1], BONDS[2]) and not bond.GetIsAromatic():
                edited.GetBondBetweenAtoms(one, other).SetBondType(BONDS[2 if bond.GetBondType() == BONDS[1] else 3])
            else:
                continue
            yield edited


def readable(edited):
    """SMILES of an edited molecule, read back, so that what is written is what any reader gets; None where it is not valid or not acceptable."""
    try:
        for atom in edited.GetAtoms():
            if not atom.GetFormalCharge():
                atom.SetNumExplicitHs(0)
                atom.SetNoImplicit(False)
        Chem.SanitizeMol(edited)
    except (Chem.AtomValenceException, Chem.KekulizeException, Chem.AtomKekulizeException):
        return None
    again = Chem.MolFromSmiles(canonical(edited))
    if again is None or any(atom.GetNumRadicalElectrons() for atom in again.GetAtoms()) or not acceptable(again):
        return None
    return canonical(again)


def enumerated(whole, shares, rng):
    """SMILES of small molecules: all with up to `whole` heavy atoms, then `shares[n]` of those with n."""
    level, found = sorted(VALENCES), []
    for size in range(2, max(shares) + 1):
        most = shares.get(size)
        parents = level if most is None else rng.choices(level, k=most)
        wide = set()
        for smiles in parents:
            edits = list(extensions(Chem.MolFromSmiles(smiles)))
            if most is not None:  # heteroatoms would make up most of what is drawn evenly
                edits = rng.sample(edits, min(3, len(edits)))
            wide.update(filter(None, map(readable, edits)))
        fresh = sorted(wide)
        while fresh and (most is None or len(wide) < 3 * most):
            drawn = fresh if most is None else rng.sample(fresh, len(fresh) // 3)
            closed = sorted({smiles for parent in drawn for smiles in map(readable, closures(Chem.MolFromSmiles(parent))) if smiles} - wide)
            fresh = closed if most is None else []
            wide.update(closed)
        level = sorted(wide)
        chosen = level
        if most is not None and len(level) > most:
            carbon = [1 + Chem.MolFromSmiles(smiles).GetNumHeavyAtoms() - sum(c in "NOSF" or c == "l" for c in smiles) for smiles in level]
            order = sorted(range(len(level)), key=lambda i: rng.random() ** (1 / carbon[i]), reverse=True)
            chosen = [level[i] for i in order[:most]]
        found += chosen
        level = chosen if most is not None else level
    return found


def growing(rng, sizes, seeds, fragments, tries):
    """SMILES of grown molecules, forever or until `tries` are used up."""
    seeds = [Chem.MolFromSmiles(smiles) for smiles in seeds]
    pieces, weights = [Chem.MolFromSmiles(smiles) for smiles in fragments], list(fragments.values())
    for _ in range(tries):
        molecule = grow(rng.choices(list(sizes), list(sizes.values()))[0], rng, seeds, pieces, weights)
        if molecule is None or any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
            continue
        again = Chem.MolFromSmiles(canonical(molecule))
        if again is not None and acceptable(again):
            yield canonical(again)


def make(count, seed):
    known = pathlib.Path(__file__).with_name("known_molecules.txt").read_text().splitlines()
    source = {check(smiles): "known" for line in known if not line.startswith("#") for smiles in line.split()}
    missing = ALWAYS_TRAIN - set(source)
    if missing:
        raise ValueError(f"not in known_molecules.txt, or not canonical in split.py: {sorted(missing)}")
    rng = random.Random(seed)
    share = count // 8
    for smiles in enumerated(3, {4: share, 5: share, 6: share}, rng):
        source.setdefault(smiles, "enumerated")
    left = max(0, count - len(source))
    for name, sizes, seeds, fragments, wanted in (("rare", RARE_SIZES, RARE_SEEDS, RARE_FRAGMENTS, left * 3 // 5), ("grown", SIZES, SEEDS, FRAGMENTS, left - left * 3 // 5)):
        aim = len(source) + wanted
        for smiles in growing(rng, sizes, seeds, fragments, 60 * count):
            if len(source) >= aim:
                break
            source.setdefault(smiles, name)
        if len(source) < aim:
            raise RuntimeError(f"only {len(source)} molecules of {aim}")
    molecules = []
    for smiles, origin in source.items():
        molecule = Chem.MolFromSmiles(smiles)
        molecules.append({"smiles": smiles, "heavy": molecule.GetNumHeavyAtoms(), "class": class_of(molecule), "split": molecule_split(smiles), "source": origin})
    return molecules


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=24000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    molecules = make(options.count, options.seed)
    options.out.write_text("".join(json.dumps(molecule) + "\n" for molecule in molecules))
    print(f"{len(molecules)} molecules:", {split: sum(m["split"] == split for m in molecules) for split in ("train", "validation", "test")})
    for name in [*CLASSES, "ordinary"]:
        print(f"{name:24}{sum(m['class'] == name for m in molecules):7}")


if __name__ == "__main__":
    main()

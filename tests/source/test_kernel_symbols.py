# SPDX-License-Identifier: MIT
"""No kernel of the CPU passes a vector register to a function that is not inlined, or gets one back: g++ 12 clears the upper lanes before it returns.
Whatever functions there are besides the kernels themselves stands in the object files.

  python test_kernel_symbols.py NM OBJECT_FILE..."""
import re
import subprocess
import sys

REGISTERS = re.compile(r"__vector\(|\b(Registers|AtomChannels|AtomRows|ValueAndSlope|FilterParts|EdgeShares|Factors)<")


def cut_templates(text):
    """Without what stands between < and >."""
    while True:
        shorter = re.sub(r"<[^<>]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def parts_of(signature):
    """What stands before the function's name, which is its return type if it has templates, the name, and the parameters."""
    signature = signature.replace("(anonymous namespace)", "anonymous")
    depth, at = 0, len(signature) - 1
    while at >= 0:
        depth += {")": 1, "(": -1}.get(signature[at], 0)
        if signature[at] == "(" and depth == 0:
            break
        at -= 1
    head, parameters = signature[:at], signature[at:]
    depth, at = 0, len(head) - 1
    while at >= 0 and not (head[at] == " " and depth == 0):
        depth += {">": 1, "<": -1}.get(head[at], 0)
        at -= 1
    return head[:at + 1], head[at + 1:], parameters


def passes_registers(signature):
    returned, name, parameters = parts_of(re.sub(r" \[clone [^]]*\]", "", signature))
    member_of = cut_templates(name).split("::")[-2:-1]
    return bool(REGISTERS.search(returned) or REGISTERS.search(parameters) or (member_of and REGISTERS.search(member_of[0] + "<")))


def main():
    assert passes_registers("mlff::(anonymous namespace)::Registers<float, 1> mlff::(anonymous namespace)::node_value<float>(int)")
    assert passes_registers("void mlff::f<float>(mlff::Registers<float, 2>, int)") and passes_registers("mlff::Registers<float, 1>::load(float const*)")
    assert passes_registers("float __vector(16) mlff::g<float>(int) [clone .constprop.0]")
    assert not passes_registers("void mlff::(anonymous namespace)::multiply<mlff::Registers<float, 1>, float>(float const*, int)")
    assert not passes_registers("mlff::LaneSums<float>::clear(int, int)")
    functions = [line.split(maxsplit=2)[2] for path in sys.argv[2:] for line in subprocess.run([sys.argv[1], "-C", path], check=True, capture_output=True, text=True).stdout.splitlines()
                 if re.match(r"[0-9a-f]+ [tTwW] .*\(", line)]
    assert len(functions) >= 40, f"only {len(functions)} functions were found"
    bad = [f"{function} takes or returns registers, but is not inlined" for function in functions if passes_registers(function)]
    print("\n".join(bad) or f"{len(functions)} functions, none of which takes or returns registers")
    sys.exit(1 if bad else 0)


main()

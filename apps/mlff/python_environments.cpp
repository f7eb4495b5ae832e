// SPDX-License-Identifier: MIT
#include "python_environments.h"

#include <sstream>
#include <vector>

#include "core/error.h"
#include "run_program.h"

namespace mlff::app {
namespace {

// Says what it is about to do before it does it, so that a crash has a name. Lines of others, which some packages
// print, lack the mark.
constexpr const char* kProbe = R"(
import importlib, importlib.metadata, importlib.util, re, sys
def say(*words):
    print("mlff-probe\t" + "\t".join(str(word).replace("\t", " ") for word in words), flush=True)
say("python", "%d.%d.%d" % sys.version_info[:3])
for name in ("cupy", "triton"):
    try:
        if importlib.util.find_spec(name) is None:
            continue
    except Exception:
        continue
    version = "unknown version"
    try:  # CuPy's packages are cupy, cupy-cuda12x and others; Triton's triton, pytorch-triton and others
        version = [found.version for found in importlib.metadata.distributions() if name in re.split("[-_]", (found.metadata["Name"] or "").lower())][0]
    except Exception:
        pass
    say("there", name, version)
for name, module, package in (("torch", "torch", "torch"), ("mace", "mace.calculators", "mace-torch"), ("cuequivariance", "cuequivariance_torch", "cuequivariance-torch"),
                              ("orb", "orb_models.forcefield.pretrained", "orb-models"), ("sevennet", "sevenn.calculator", "sevenn"), ("chgnet", "chgnet.model.dynamics", "chgnet"),
                              ("fennol", "fennol", "FeNNol"), ("tblite", "tblite.interface", "tblite"), ("ase", "ase", "ase")):
    try:
        if importlib.util.find_spec(module.split(".")[0]) is None:
            continue
    except Exception:
        continue
    say("trying", name)
    try:
        importlib.import_module(module)
        try:
            version = importlib.metadata.version(package)
        except Exception:
            version = "unknown version"
        say("works", name, version)
    except BaseException as error:
        say("broken", name, type(error).__name__ + ": " + (str(error).splitlines() or [""])[0])
say("end")
)";

}  // namespace

PythonEnvironment try_python_environment(const std::string& folder, double seconds) {
    PythonEnvironment environment;
    environment.folder = folder;
    const ProgramResult result = run_program({folder + "/bin/python3", "-I", "-c", kProbe}, seconds);
    std::istringstream lines(result.output);
    std::string trying;
    bool is_complete = false;
    for (std::string line; std::getline(lines, line);) {
        std::vector<std::string> words;
        std::istringstream parts(line);
        for (std::string word; std::getline(parts, word, '\t');) words.push_back(word);
        if (words.size() < 2 || words[0] != "mlff-probe") continue;
        if (words[1] == "end") is_complete = true;
        if (words[1] == "python" && words.size() == 3) environment.version = words[2];
        if (words[1] == "trying" && words.size() == 3) trying = words[2];
        if (words[1] == "there" && words.size() == 4) environment.gpu_packages[words[2]] = words[3];
        if (words[1] == "works" && words.size() == 4) environment.works[words[2]] = words[3], trying.clear();
        if (words[1] == "broken" && words.size() == 4)
            environment.broken[words[2]] = as_message(words[3]), trying.clear();
    }
    const std::string why = result.why_failed();
    if (!trying.empty())
        environment.broken[trying] = why.empty() ? "Python ended during the import" : why;
    else if (!is_complete)
        environment.why_not = why.empty() ? "it does not run Python programs" : why;
    return environment;
}

}  // namespace mlff::app

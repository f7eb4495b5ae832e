// SPDX-License-Identifier: MIT
// Names that say several models: where they are divided, and dispersion added to them.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/model_names.h"

using namespace mlff;
using Names = std::vector<std::string>;

namespace {

template <class Call>
std::string message_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.status() == Status::argument);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("members have commas between them, unless these belong to the options of a term") {
    CHECK(split_members("a.model") == Names{"a.model"});
    CHECK(split_members("a.model,b+zbl,self-test") == Names{"a.model", "b+zbl", "self-test"});
    CHECK(split_members("d3:s6=1,s8=0.7,a1=0.4,a2=4.4") == Names{"d3:s6=1,s8=0.7,a1=0.4,a2=4.4"});
    CHECK(split_members("a+d3:s8=-0.7,a1=.4,a2=4e-1:atm,b+d3:pbe,s8=1.5,c") ==
          Names{"a+d3:s8=-0.7,a1=.4,a2=4e-1:atm", "b+d3:pbe,s8=1.5", "c"});
    CHECK(split_members("d3:s8=x,a1=,python:a?b=1,c=2,d") == Names{"d3:s8=x,a1=", "python:a?b=1,c=2", "d"});
    CHECK(split_members("d3:s8=0.7,a1=0.4+zbl,a2=1") == Names{"d3:s8=0.7,a1=0.4+zbl", "a2=1"});  // zbl has none
    CHECK(split_members("a,s8=1") == Names{"a", "s8=1"});                                        // nor has a file
    CHECK(split_members("d3:pbe,b.model,a1=x,=1") == Names{"d3:pbe", "b.model", "a1=x", "=1"});
    CHECK(split_members("a,,b,") == Names{"a", "", "b", ""});
    CHECK(split_members("") == Names{""});
}

TEST_CASE("terms have plus signs between them") {
    CHECK(split_terms("a.model") == Names{"a.model"});
    CHECK(split_terms("a+zbl+d3:s8=0.7,a1=0.4") == Names{"a", "zbl", "d3:s8=0.7,a1=0.4"});
    for (const std::string name : {"a+", "+a", "a++b"})
        CHECK(message_of([&] { split_terms(name); }) == "model '" + name + "': a '+' has no model beside it");
}

TEST_CASE("dispersion is added to a model, or to each member") {
    CHECK(with_dispersion("builtin", "pbe") == "builtin+d3:pbe");
    CHECK(with_dispersion("X.model+zbl", "pbe:zero:atm") == "X.model+zbl+d3:pbe:zero:atm");
    CHECK(with_dispersion("a,b+zbl,c", "s8=0.7,a1=0.4,a2=4.4") ==
          "a+d3:s8=0.7,a1=0.4,a2=4.4,b+zbl+d3:s8=0.7,a1=0.4,a2=4.4,c+d3:s8=0.7,a1=0.4,a2=4.4");
    CHECK(split_members(with_dispersion("a,b", "s8=0.7,a1=0.4")) == Names{"a+d3:s8=0.7,a1=0.4", "b+d3:s8=0.7,a1=0.4"});
    const auto message = [](const std::string& name, const std::string& d3) {
        return message_of([&] { with_dispersion(name, d3); });
    };
    const std::string expected =
        ": expected one functional, such as pbe:zero, or parameters, such as s8=0.7,a1=0.4,a2=4.4";
    CHECK(message("a", "") == "d3 ''" + expected);
    CHECK(message("a", "pbe+zbl") == "d3 'pbe+zbl'" + expected);
    CHECK(message("a", "pbe,b3lyp") == "d3 'pbe,b3lyp'" + expected);
    CHECK(message("a,b+d3:pbe", "b3lyp") ==
          "model 'a,b+d3:pbe' has the term d3:pbe already: dispersion would be counted twice with d3:b3lyp");
    CHECK(message("d3:pbe", "pbe") ==
          "model 'd3:pbe' has the term d3:pbe already: dispersion would be counted twice with d3:pbe");
    CHECK(message("python:mace:x.model", "pbe") ==
          "model 'python:mace:x.model': Python models cannot be in a sum, so that d3 cannot be added");
    CHECK(message("a,python:tblite?x=1,2", "pbe") ==
          "model 'a,python:tblite?x=1,2': Python models cannot be in a sum, so that d3 cannot be added");
    CHECK(message("a+", "pbe") == "model 'a+': a '+' has no model beside it");
    CHECK(message("a,,b", "pbe") == "model 'a,,b': a ',' has no model beside it");
    CHECK(message("", "pbe") == "model '': a ',' has no model beside it");

    const std::string path = (std::filesystem::temp_directory_path() / "mlff-names-a+b.model").string();
    std::ofstream(path) << "x";
    CHECK(message(path, "pbe") == "model '" + path +
                                      "': the path has a '+' or a ',', so that d3 cannot be added; name the "
                                      "file from within its folder, rename it, or list it in a file of members");
    std::filesystem::remove(path);
    CHECK(with_dispersion(path, "pbe") == path + "+d3:pbe");
}

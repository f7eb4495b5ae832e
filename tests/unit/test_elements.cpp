// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <set>

#include "core/elements.h"
#include "core/error.h"

using namespace mlff;

TEST_CASE("elements: symbols and numbers are inverse to each other") {
    std::set<std::string_view> symbols;
    for (int z = 1; z <= kMaxAtomicNumber; ++z) {
        const std::string_view symbol = element_symbol(z);
        CAPTURE(symbol);
        CHECK(atomic_number_of(symbol) == z);
        CHECK(symbols.insert(symbol).second);
        CHECK((symbol.size() == 1 || symbol.size() == 2));
        CHECK((symbol[0] >= 'A' && symbol[0] <= 'Z'));
        if (symbol.size() == 2) CHECK((symbol[1] >= 'a' && symbol[1] <= 'z'));
    }
    CHECK(symbols.size() == 118);
    CHECK(element_symbol(1) == "H");
    CHECK(element_symbol(26) == "Fe");
    CHECK(element_symbol(57) == "La");
    CHECK(element_symbol(79) == "Au");
    CHECK(element_symbol(92) == "U");
    CHECK(element_symbol(118) == "Og");
}

TEST_CASE("elements: what is no element") {
    for (const int z : {0, -1, 119, 1 << 30}) CHECK_THROWS_AS(element_symbol(z), Error);
    for (const char* symbol : {"", "h", "HE", "he", "Xx", "H ", "Hydrogen", "D"}) CHECK(atomic_number_of(symbol) == 0);
}

TEST_CASE("elements: covalent radii") {
    for (int z = 1; z <= 96; ++z) {
        CAPTURE(z);
        CHECK((covalent_radius(z) > 0.25 && covalent_radius(z) < 2.65));
    }
    CHECK(covalent_radius(1) == 0.31);
    CHECK(covalent_radius(6) == 0.76);
    CHECK(covalent_radius(55) == 2.44);
    CHECK(covalent_radius(96) == 1.69);
    for (const int z : {0, -1, 97, 118, 119}) CHECK(covalent_radius(z) == 0);
}

TEST_CASE("elements: lists of symbols") {
    CHECK(symbols_text({}) == "");
    CHECK(symbols_text({1, 6, 7, 8}) == "H C N O");
    CHECK_THROWS_AS(symbols_text({1, 0}), Error);
}

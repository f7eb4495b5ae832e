// SPDX-License-Identifier: MIT
// Steps of dynamics take no memory, nor do parts of a system that hear from each other. A program of its own: it counts
// every use of operator new.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "dynamics/molecular_dynamics.h"
#include "dynamics/session_forces.h"
#include "engine/load_model.h"
#include "test_dynamics_support.h"

namespace {
std::atomic<long> allocation_count{0};
}

__attribute__((noinline)) void* operator new(std::size_t size) {
    ++allocation_count;
    if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
    throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace mlff;

namespace {

long allocations_in_steps(MolecularDynamics& dynamics) {
    for (int i = 0; i < 50; ++i) dynamics.step();  // until all buffers have their size
    const long before = allocation_count;
    for (int i = 0; i < 40; ++i) dynamics.step();
    return allocation_count - before;
}

bool is_free_of_allocations(const char* name, const char* model, const DynamicsOptions& options) {
    SessionOptions session_options;
    session_options.device = "cpu";
    session_options.thread_count = 1;
    Session session(load_model(model), session_options);
    SessionForces forces(session);
    Particles particles = test::argon_atoms(
        {0, 0, 0, 2.1, 0, 0, 0, 2.1, 0, 2.1, 2.1, 0, 0, 0, 2.1, 2.1, 0, 2.1, 0, 2.1, 2.1, 2.1, 2.1, 2.1}, 6);
    if (std::string(model) != "analytic") {
        particles.atomic_numbers.assign(8, 6);
        particles.masses.assign(8, 12);
    }
    set_temperature(particles, 100, 1);
    MolecularDynamics dynamics(forces, particles, options);
    const long count = allocations_in_steps(dynamics);
    std::printf("%s, %s: %ld allocations in 40 steps\n", model, name, count);
    std::fflush(stdout);
    return count == 0;
}

// A water molecule and two ghosts: what the first atom sends comes back, the other is an image.
bool is_domain_free_of_allocations() {
    struct Mirror : HaloExchange {
        void exchange(const void* sent, void* received, size_t row_bytes) override {
            std::memcpy(received, sent, row_bytes);
        }
    } mirror;
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = 1;
    Session session(load_model("builtin"), options);
    const int32_t numbers[] = {8, 1, 1, 8, 1}, neighbors[] = {1, 2, 3, 0, 2, 4, 0, 1, 3}, sent[] = {0},
                  source[] = {0, -2};
    const double positions[] = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0, 0, 2.8, 0, 0.96, -2.8, 0};
    const int64_t first[] = {0, 3, 6, 9};
    Domain domain;
    domain.atoms.atom_count = 5;
    domain.atoms.atomic_numbers = numbers;
    domain.atoms.positions = positions;
    domain.owned_count = 3;
    domain.first = first;
    domain.neighbors = neighbors;
    domain.halo = {sent, 1, source, &mirror};
    double forces[15];
    Outputs outputs;
    outputs.forces = forces;
    session.evaluate_domain(domain, outputs);
    const long before = allocation_count;
    for (int i = 0; i < 10; ++i) session.evaluate_domain(domain, outputs);
    const long count = allocation_count - before;
    std::printf("builtin, a domain: %ld allocations in 10 steps\n", count);
    return count == 0;
}

}  // namespace

int main() {
    using Kind = ThermostatOptions::Kind;
    bool is_good = true;
    for (const char* model : {"analytic", "builtin"}) {
        DynamicsOptions options;
        options.time_step = 0.02;
        is_good &= is_free_of_allocations("constant energy", model, options);
        for (const auto& [kind, name] : {std::pair{Kind::langevin, "Langevin"},
                                         {Kind::nose_hoover, "Nose-Hoover"},
                                         {Kind::rescaling, "rescaling, constant pressure"}}) {
            options.thermostat = {kind, 100, 50, 1};
            if (kind == Kind::rescaling) options.barostat = BarostatOptions{1, 1000, 1e-6, true, 2};
            is_good &= is_free_of_allocations(name, model, options);
        }
    }
    DynamicsOptions of_committee;
    of_committee.time_step = 0.02;
    is_good &= is_free_of_allocations("constant energy", "builtin,builtin+zbl", of_committee);
    is_good &= is_free_of_allocations("constant energy", "builtin+d3:pbe", of_committee);
    is_good &= is_domain_free_of_allocations();
    const long before = allocation_count;  // the count itself
    ::operator delete(::operator new(8));
    if (allocation_count != before + 1) std::printf("allocations are not counted\n"), is_good = false;
    return is_good ? 0 : 1;
}

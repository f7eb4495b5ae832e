// SPDX-License-Identifier: GPL-2.0-only
// The LAMMPS pair style:
//   pair_style mlff [device D] [precision P] [head H] [threads N] [radial tables|exact]
//                   [rows auto|shared|window|host|device] [charge Q] [spin M]
//   pair_coeff * * MODEL [d3 FUNCTIONAL] ELEMENT_OF_TYPE_1 ...
#pragma once

#include <memory>
#include <string>

#include "pair.h"

namespace LAMMPS_NS {

class PairMLFF : public Pair {
public:
    explicit PairMLFF(class LAMMPS* lammps);
    ~PairMLFF() override;

    void settings(int narg, char** arg) override;
    void coeff(int narg, char** arg) override;
    void init_style() override;
    double init_one(int i, int j) override;
    void compute(int eflag, int vflag) override;
    double memory_usage() override;

    // Sends the owners of the atoms that ghosts are copies of.
    int pack_forward_comm(int n, int* list, double* buffer, int pbc_flag, int* pbc) override;
    void unpack_forward_comm(int n, int first, double* buffer) override;
    // Send what ghosts have of the spread of forces to the owners.
    int pack_reverse_comm(int n, int first, double* buffer) override;
    void unpack_reverse_comm(int n, int* owners, double* buffer) override;

    // For fix pair: the flag "NAME_flag" with which it asks for a quantity of atoms in a step, and the quantity NAME.
    void* extract(const char* name, int& dimension) override;
    void* extract_peratom(const char* name, int& column_count) override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;

    void log_description();
    void find_atoms();
    void find_domain();
    void offer_globals();
    bool are_globals_wanted() const;
    void require(const std::string& why_none) const;
    void evaluate_box();
    void evaluate_domain();
    void sum_deviations();
    void keep_spread();
    void keep_trust();
    void add_results();
};

}  // namespace LAMMPS_NS

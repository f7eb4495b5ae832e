// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/log.h"
#include "cpu_kernels/available_kernels.h"
#include "cpu_kernels/kernel_check.h"

namespace mlff::kernels {
namespace {

constexpr uint64_t kSeed = 2026;

std::string fault_list(const std::vector<KernelFault>& faults, const char* precision) {
    std::string text;
    for (const KernelFault& fault : faults)
        text +=
            concat(text.empty() ? "" : ", ", fault.kernel, " in ", precision, " precision is off by ", fault.deviation);
    return text;
}

// A kernel table and its faults. The faults are determined on first use.
template <class Real>
class CheckedTable {
public:
    explicit CheckedTable(const KernelTable<Real>& table) : table_(table) {}

    const KernelTable<Real>& table() const { return table_; }
    const std::vector<KernelFault>& faults() {
        std::call_once(is_checked_, [this] {
            faults_ = find_kernel_faults(table_, kSeed, true);
            if (!faults_.empty())
                log(LogLevel::warning,
                    concat("the ", table_.name, " CPU kernels compute wrong numbers on this machine and are not used: ",
                           fault_list(faults_, sizeof(Real) == 4 ? "single" : "double")));
        });
        return faults_;
    }

private:
    KernelTable<Real> table_;
    std::once_flag is_checked_;
    std::vector<KernelFault> faults_;
};

template <class Real>
std::vector<std::unique_ptr<CheckedTable<Real>>>& tables() {
    static std::vector<std::unique_ptr<CheckedTable<Real>>> all = [] {
        std::vector<std::unique_ptr<CheckedTable<Real>>> made;
        for (const KernelTable<Real>& table : available_kernels<Real>())
            made.push_back(std::make_unique<CheckedTable<Real>>(table));
        return made;
    }();
    return all;
}

}  // namespace

std::string kernel_names() {
    std::string names;
    for (const auto& one : tables<float>()) names += (names.empty() ? "" : ", ") + std::string(one->table().name);
    return names;
}

template <class Real>
const KernelTable<Real>& choose_kernels() {
    const char* wanted = std::getenv("MLFF_CPU");
    const bool is_forced = wanted && *wanted;
    for (const auto& one : tables<Real>()) {
        if (is_forced && one->table().name != wanted) continue;
        if (one->faults().empty()) return one->table();
        if (is_forced)
            fail(Status::device, "MLFF_CPU asks for the ", wanted,
                 " kernels, which compute wrong numbers on this machine (",
                 fault_list(one->faults(), sizeof(Real) == 4 ? "single" : "double"),
                 "); unset MLFF_CPU to use the best kernels that are correct");
    }
    if (is_forced) fail(Status::argument, "MLFF_CPU is '", wanted, "', but this processor has only ", kernel_names());
    fail(Status::device, "all CPU kernels (", kernel_names(),
         ") compute wrong numbers on this machine; run mlff doctor for details, or use the device 'reference', which "
         "does without "
         "them");
}
template const KernelTable<float>& choose_kernels<float>();
template const KernelTable<double>& choose_kernels<double>();

std::string KernelState::fault_text() const {
    const std::string single = fault_list(faults_single, "single"), exact = fault_list(faults_double, "double");
    return single + (single.empty() || exact.empty() ? "" : ", ") + exact;
}

std::vector<KernelState> check_all_kernels() {
    std::vector<KernelState> states;
    for (size_t i = 0; i < tables<float>().size(); ++i)
        states.push_back(
            {tables<float>()[i]->table().name, tables<float>()[i]->faults(), tables<double>()[i]->faults()});
    return states;
}

}  // namespace mlff::kernels

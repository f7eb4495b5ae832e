// SPDX-License-Identifier: MIT
#include "dynamics/resident_motion.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/gpu/motion_kernels.h"
#include "dynamics/units.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/cuda_stream.h"
#include "gpu/runtime/device_buffer.h"
#include "gpu/runtime/reduction.cuh"

namespace mlff {
namespace {

using namespace gpu;

constexpr const char* kPurpose = "the atoms of the dynamics";
constexpr int64_t kStepsInFlight =
    2;  // one runs, one is queued: the GPU never waits for the host, and a halt wastes little work
static_assert(kStepsInFlight < kReportCount);

class Event {
public:
    Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event"); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event() { cudaEventDestroy(event_); }
    void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "a step of dynamics"); }
    void wait() const { check(cudaEventSynchronize(event_), "a step of dynamics"); }

private:
    cudaEvent_t event_ = nullptr;
};

int64_t next_id() {
    static std::atomic<int64_t> last{0};
    return ++last;
}

// The first multiple of `interval` at or after `step`; never without an interval.
int64_t next_multiple(int64_t step, int64_t interval) {
    return interval > 0 ? (step + interval - 1) / interval * interval : std::numeric_limits<int64_t>::max();
}

// Of the buffers that grow with the atoms: positions, velocities, forces, two kinds of masses, and the last steps.
int64_t motion_bytes(size_t atom_count) {
    return static_cast<int64_t>(atom_count * sizeof(double) * (3 * 3 + 2 + RecentSnapshots::kLength * 9));
}

class CudaMotion : public ResidentMotion, private DeviceMotion {
public:
    CudaMotion(DeviceStepper& stepper, ThreadTeam& team, const DynamicsOptions& options, const DynamicsNow& now,
               std::span<const double> thermostat)
        : stepper_(stepper),
          memory_(stepper, motion_bytes(now.particles.atom_count())),
          team_(team),
          options_(options),
          current_(stepper.device()),
          numbers_(now.particles.atomic_numbers),
          system_(now.particles.view()),
          done_(now.step_count) {
        system_.atomic_numbers = numbers_.data();
        system_.positions = nullptr;
        if (options.barostat)
            barostat_.emplace(*options.barostat, now.particles, options.thermostat.temperature, options.thermostat.seed,
                              options.time_step);
        removes_rotation_ = !now.particles.environment.is_periodic() && now.particles.atom_count() > 2;
        upload(now, thermostat);
        current_.reset();
    }
    ~CudaMotion() override {
        current_.emplace(stepper_.device(), std::nothrow);  // memory is freed on the device that owns it
        cudaStreamSynchronize(stream());
    }

    void advance(DynamicsNow& now, int64_t last_step, const std::function<bool()>& goes_on,
                 const StabilityGuard* guard) override {
        if (is_broken_) fail(Status::argument, "the run failed at step ", now.step_count, " and cannot continue");
        const CurrentDevice current(stepper_.device());
        set_limits(now, guard);
        try {
            advance_until(now, last_step, goes_on, guard);
        } catch (...) {
            cudaStreamSynchronize(stream());
            is_broken_ = true;
            launched_ = done_;
            fetched_ = -1;  // the atoms are those of the failed step
            now.step_count = std::max(done_, begun_);
            throw;
        }
    }

    void advance_until(DynamicsNow& now, int64_t last_step, const std::function<bool()>& goes_on,
                       const StabilityGuard* guard) {
        wants_more_ = true;
        const auto finish = [&](const MotionReport& report) {
            take(report, now);
            if (report.halt == Halt::short_edge) stepper_.refuse_short_edges();
            if (report.halt == Halt::beyond_limits) judge(now, guard);
            if (done_ == next_multiple(done_, options_.remove_momentum_every)) take(remove_rigid_motion(), now);
            if (goes_on && !goes_on()) wants_more_ = false;
        };
        while (done_ < last_step && wants_more_) {
            const int64_t cell_changes = next_multiple(done_ + 1, options_.barostat ? options_.barostat->every : 0);
            if (cell_changes == done_ + 1 || !stepper_.has_neighbors(system_))
                finish(step_with_host(now, cell_changes == done_ + 1));
            else
                run(std::min({last_step, cell_changes - 1, next_multiple(done_ + 1, options_.remove_momentum_every)}),
                    finish);
        }
    }

    void fetch(DynamicsNow& now) override {
        if (fetched_ == done_) return;
        if (launched_ > done_) fail(Status::internal, "atoms were requested while the next step moves them");
        const CurrentDevice current(stepper_.device());
        read(positions_.data(), now.particles.positions);
        read(velocities_.data(), now.particles.velocities);
        read(forces_.data(), now.forces);
        wait();
        fetched_ = done_;
    }

    void fetch_rest(DynamicsState& state) override {
        const CurrentDevice current(stepper_.device());
        const MotionScalars scalars = scalars_value_.read(scalars_.data(), stream());
        if (options_.thermostat.kind == ThermostatOptions::Kind::nose_hoover)
            state.thermostat.assign(scalars.chain, scalars.chain + NoseHooverChain::kStateSize);
        if (stepper_.has_neighbors(system_))
            return stepper_.read_searched(state.searched_positions, state.searched_cell);
        state.searched_positions = state.particles.positions;  // the next step searches
        state.searched_cell = system_.cell;
    }

    void fetch_recent(RecentSnapshots& snapshots) override {
        const CurrentDevice current(stepper_.device());
        snapshots = {};
        std::array<MotionReport, RecentSnapshots::kLength> reports;
        recent_reports_.download(reports.data(), RecentSnapshots::kLength, stream());
        wait();
        const auto size = static_cast<int64_t>(3 * numbers_.size());
        const int64_t end = std::max(done_, begun_);
        for (int64_t step = std::max(first_, end - static_cast<int64_t>(RecentSnapshots::kLength)); step < end;
             ++step) {
            const int64_t slot = step % static_cast<int64_t>(RecentSnapshots::kLength);
            const MotionReport& report = reports[static_cast<size_t>(slot)];
            Snapshot& to = snapshots.next();
            to.step = step;
            to.time = static_cast<double>(step) * options_.time_step;
            to.cell = cells_[static_cast<size_t>(slot)];
            to.potential_energy = report.potential_energy;
            to.kinetic_energy = report.kinetic_energy;
            to.temperature =
                2 * report.kinetic_energy / (static_cast<double>(std::max<int64_t>(degrees_, 1)) * kBoltzmann);
            int64_t part = 0;
            for (std::vector<double>* numbers : {&to.positions, &to.velocities, &to.forces}) {
                numbers->resize(static_cast<size_t>(size));
                read(recent_.data() + (3 * slot + part++) * size, *numbers);
            }
        }
        wait();
    }

private:
    // ---- DeviceMotion ----
    int64_t id() const override { return id_; }
    const double* positions() const override { return positions_.data(); }
    void enqueue_move(void* stream) override { move_atoms(view_, false, static_cast<cudaStream_t>(stream)); }
    void enqueue_finish(const DeviceStepResults& results, void* stream) override {
        finish_atoms(view_, limits_, results, static_cast<cudaStream_t>(stream));
    }

    cudaStream_t stream() const { return static_cast<cudaStream_t>(stepper_.stream()); }
    void wait() const { check(cudaStreamSynchronize(stream()), "a step of dynamics"); }
    void read(const double* from, std::vector<double>& to) const {
        if (!to.empty())
            check(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(double), cudaMemcpyDeviceToHost, stream()),
                  "copying a frame");
    }

    void upload(const DynamicsNow& now, std::span<const double> thermostat) {
        const Particles& particles = now.particles;
        const auto atom_count = static_cast<int64_t>(particles.atom_count());
        const auto fill = [&](DeviceBuffer<double>& buffer, const std::vector<double>& numbers) {
            buffer.upload(numbers.data(), static_cast<int64_t>(numbers.size()), kPurpose, stream());
        };
        std::vector<double> inverse_masses;
        for (size_t atom = 0; atom < particles.atom_count(); ++atom)
            inverse_masses.push_back(particles.moves(atom) ? kAccelerationUnit / particles.masses[atom] : 0);
        fill(positions_, particles.positions);
        fill(velocities_, particles.velocities);
        fill(forces_, now.forces);
        fill(masses_, particles.masses);
        fill(inverse_masses_, inverse_masses);
        recent_.resize_discard(static_cast<int64_t>(RecentSnapshots::kLength) * 9 * atom_count, kPurpose);
        recent_reports_.resize_discard(static_cast<int64_t>(RecentSnapshots::kLength), kPurpose);
        reports_.resize_discard(kReportCount);

        MotionScalars scalars;
        scalars.last = {now.step_count, Halt::none,    now.potential_energy, now.kinetic_energy, now.heat, {},
                        now.trust,      now.trust_step};
        std::copy(thermostat.begin(), thermostat.end(), scalars.chain);
        for (size_t i = 0; i < particles.positions.size(); ++i)
            scalars.center[i % 3] += particles.positions[i] / static_cast<double>(atom_count);
        scalars_.upload(&scalars, 1, kPurpose, stream());

        degrees_ = particles.degrees_of_freedom();
        view_.atom_count = atom_count;
        view_.time_step = options_.time_step;
        view_.thermostat = options_.thermostat.kind;
        view_.langevin = LangevinKick(options_.thermostat, options_.time_step);
        view_.chain = NoseHooverChain(options_.thermostat, degrees_, options_.time_step);
        view_.rescaling = RescalingFactor(options_.thermostat, degrees_, options_.time_step);
        view_.positions = positions_.data();
        view_.velocities = velocities_.data();
        view_.forces = forces_.data();
        view_.masses = masses_.data();
        view_.inverse_masses = inverse_masses_.data();
        view_.recent = recent_.data();
        view_.recent_reports = recent_reports_.data();
        view_.recent_count = static_cast<int>(RecentSnapshots::kLength);
        view_.scalars = scalars_.data();
        view_.reports = reports_.data();
        const auto sums = [](auto& buffer) {
            buffer.resize_discard(kMostReductionBlocks + 1, kPurpose);
            return buffer.data();
        };
        view_.move_sums = sums(move_sums_);
        view_.finish_sums = sums(finish_sums_);
        view_.tensor_sums = sums(tensor_sums_);
        view_.whole_sums = sums(whole_sums_);
        view_.turn_sums = sums(turn_sums_);
        first_ = fetched_ = launched_ = begun_ = now.step_count;
        keep_cell();
    }

    void set_limits(const DynamicsNow& now, const StabilityGuard* guard) {
        constexpr double kNone = std::numeric_limits<double>::infinity();
        MotionLimits limits = {kNone, kNone, {}};
        if (guard && now.particles.degrees_of_freedom() > 0)
            limits.kinetic_energy = 0.5 * static_cast<double>(now.particles.degrees_of_freedom()) * kBoltzmann *
                                    guard->highest_temperature();
        if (guard) limits.squared_distance = guard->farthest() * guard->farthest();
        for (size_t k = 0; k < 3; ++k) limits.is_open[k] = !system_.periodic[k];
        if (limits == limits_) return;
        limits_ = limits;
        id_ = next_id();  // the graphs contain them
    }

    // ---- steps ----

    // Steps that need no host, up to `last_step`.
    template <class Finish>
    void run(int64_t last_step, const Finish& finish) {
        launched_ = done_;
        while (done_ < last_step && (wants_more_ || launched_ > done_)) {
            while (wants_more_ && launched_ < last_step && launched_ < done_ + kStepsInFlight) {
                stepper_.enqueue_step(system_, *this, wishes_of(launched_ + 1), team_);
                events_[++launched_ % kStepsInFlight].record(stream());
            }
            events_[(done_ + 1) % kStepsInFlight].wait();
            if (report_of(done_ + 1).halt != Halt::none) {  // later launches do nothing
                wait();
                launched_ = done_ + 1;
            }
            if (report_of(done_ + 1).halt == Halt::search_needed) {
                begun_ = done_ + 1;
                resume(view_, true, stream());
                finish(search_and_finish());
            } else {
                finish(counted(report_of(done_ + 1)));
            }
        }
    }

    // A step without a valid neighbour list, or one that changes the cell.
    MotionReport step_with_host(const DynamicsNow& now, bool changes_cell) {
        move_atoms(view_, changes_cell, stream());
        begun_ = launched_ = done_ + 1;
        if (changes_cell) {
            change_cell(now);
            drift_atoms(view_, stream());
        }
        return search_and_finish();
    }

    MotionReport search_and_finish() {
        stepper_.enqueue_searched_step(system_, *this, wishes_of(done_ + 1), team_);
        wait();
        return counted(report_of(done_ + 1));
    }

    DeviceStepWishes wishes_of(int64_t step) const { return {options_.wants_virial, measures_trust(options_, step)}; }

    MotionReport report_of(int64_t step) const {
        const MotionReport& report = reports_.data()[step % kReportCount];
        if (report.step != step)
            fail(Status::internal, "the GPU reported step ", report.step, " of the dynamics, expected ", step);
        return report;
    }
    MotionReport counted(const MotionReport& report) {
        if (report.halt == Halt::search_needed)
            fail(Status::internal, "the neighbour list is too old immediately after a search");
        begun_ = ++done_;
        keep_cell();
        return report;
    }
    void keep_cell() { cells_[static_cast<size_t>(done_) % cells_.size()] = system_.cell; }

    // What the host keeps of a step. Positions, velocities and forces are fetched on request.
    void take(const MotionReport& report, DynamicsNow& now) const {
        now.step_count = report.step;
        now.potential_energy = report.potential_energy;
        now.kinetic_energy = report.kinetic_energy;
        now.heat = report.heat;
        now.trust = report.trust;
        now.trust_step = report.trust_step;
        now.particles.environment.cell = system_.cell;
        for (size_t k = 0; k < 9; ++k) now.virial[k / 3][k % 3] = report.virial[k];
    }

    // The GPU checks against the centre of one step ago, the guard against the current one. The guard decides.
    void judge(DynamicsNow& now, const StabilityGuard* guard) {
        fetch(now);
        check_finite(now);
        if (guard) guard->check(now.particles, now.step_count);
        resume(view_, false, stream());
    }

    void change_cell(const DynamicsNow& now) {
        sum_kinetic_tensor(view_, stream());
        const TensorSum sum = tensor_value_.read(tensor_sums_.data() + kMostReductionBlocks, stream());
        const double* t = sum.at;
        const Mat3 kinetic = {{{t[0], t[5], t[4]}, {t[5], t[1], t[3]}, {t[4], t[3], t[2]}}};
        const Mat3 matrix = barostat_->deformation(pressure_tensor(kinetic, now.virial, system_.cell), system_.cell,
                                                   done_ + 1),
                   back = inverse(matrix);
        transform_vectors(matrix, system_.cell[0].data(), 3);
        Deformation deformation;
        for (size_t k = 0; k < 9; ++k) {
            deformation.matrix[k] = matrix[k / 3][k % 3];
            deformation.inverse[k] = back[k / 3][k % 3];
        }
        deform(view_, deformation, stream());
    }

    MotionReport remove_rigid_motion() {
        sum_whole(view_, stream());
        const WholeSum whole = whole_value_.read(whole_sums_.data() + kMostReductionBlocks, stream());
        RigidMotion motion;
        for (size_t k = 0; k < 3; ++k) {
            motion.center[k] = whole.at[1 + k] / whole.at[0];
            motion.velocity[k] = whole.at[4 + k] / whole.at[0];
        }
        if (removes_rotation_) {
            sum_turn(view_, motion.center, stream());
            const TurnSum turn = turn_value_.read(turn_sums_.data() + kMostReductionBlocks, stream());
            const double* t = turn.at;
            motion.spin =
                angular_velocity({{{t[3], t[8], t[7]}, {t[8], t[4], t[6]}, {t[7], t[6], t[5]}}}, {t[0], t[1], t[2]});
        }
        gpu::remove_rigid_motion(view_, motion, stream());
        wait();
        fetched_ = -1;
        return report_of(done_);
    }

    DeviceStepper& stepper_;
    MotionMemory memory_;
    ThreadTeam& team_;
    DynamicsOptions options_;
    std::optional<CurrentDevice> current_;  // while members are created and destroyed
    std::vector<int32_t> numbers_;
    SystemView system_;
    std::optional<CellRescaling> barostat_;
    bool removes_rotation_ = false, wants_more_ = true, is_broken_ = false;
    std::array<Mat3, RecentSnapshots::kLength> cells_{};  // [step % length], for the last steps
    int64_t degrees_ = 0;
    int64_t first_ = 0, done_ = 0;  // the first step, and the last finished one
    int64_t launched_ = 0,
            begun_ = 0;    // the last launched step, and the last one known to have moved atoms
    int64_t fetched_ = 0;  // the step whose atoms are on the host
    int64_t id_ = next_id();

    MotionView view_;
    MotionLimits limits_;
    DeviceBuffer<double> positions_, velocities_, forces_, masses_, inverse_masses_, recent_;
    DeviceBuffer<MotionReport> recent_reports_;
    PinnedBuffer<MotionReport> reports_;
    DeviceBuffer<MotionScalars> scalars_;
    DeviceBuffer<MoveSum> move_sums_;
    DeviceBuffer<FinishSum> finish_sums_;
    DeviceBuffer<TensorSum> tensor_sums_;
    DeviceBuffer<WholeSum> whole_sums_;
    DeviceBuffer<TurnSum> turn_sums_;
    PinnedValue<MotionScalars> scalars_value_;
    PinnedValue<TensorSum> tensor_value_;
    PinnedValue<WholeSum> whole_value_;
    PinnedValue<TurnSum> turn_value_;
    std::array<Event, kStepsInFlight> events_;
};

}  // namespace

std::unique_ptr<ResidentMotion> make_resident_motion(DeviceStepper& stepper, ThreadTeam& team,
                                                     const DynamicsOptions& options, const DynamicsNow& now,
                                                     std::span<const double> thermostat) {
    return std::make_unique<CudaMotion>(stepper, team, options, now, thermostat);
}

}  // namespace mlff

// SPDX-License-Identifier: MIT
#include "train/trainer.h"

#include <ATen/record_function.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <iomanip>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>

#include "core/error.h"
#include "train/checkpoint.h"
#include "train/step_graph.h"

namespace mlff::train {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::atomic<bool> stop_requested = false;
void request_stop(int) { stop_requested = true; }

// Ctrl-C and SIGTERM end the run cleanly: after the current step, with a checkpoint.
class StopSignals {
public:
    StopSignals() : interrupt_(std::signal(SIGINT, request_stop)), terminate_(std::signal(SIGTERM, request_stop)) {
        stop_requested = false;
    }
    ~StopSignals() {
        std::signal(SIGINT, interrupt_);
        std::signal(SIGTERM, terminate_);
    }

private:
    void (*interrupt_)(int);
    void (*terminate_)(int);
};

// Copies the inputs of a step to the device, a few steps ahead.
class Staging {
public:
    Staging(const at::Device& device, int64_t index_capacity) : device_(device) {
        const auto host = [&](at::ScalarType type, int64_t count) {
            return at::empty({count}, at::TensorOptions().dtype(type).pinned_memory(device.is_cuda()));
        };
        slots_.resize(device.is_cuda() ? 4 : 1);
        for (Slot& slot : slots_) {
            slot.indices = host(at::kLong, index_capacity);
            slot.controls = host(at::kFloat, StepControls::kCount);
        }
        indices = at::zeros({index_capacity}, at::TensorOptions().dtype(at::kLong).device(device));
        controls = at::zeros({StepControls::kCount}, at::TensorOptions().dtype(at::kFloat).device(device));
    }

    void send(const TrainingSet& set, const std::vector<int64_t>& frames, const BatchSize& size,
              const StepControls& numbers) {
        Slot& slot = slots_[next_];
        next_ = (next_ + 1) % slots_.size();
        if (slot.copied) slot.copied->synchronize();  // wait until the device has copied the previous contents
        write_indices(set, frames, size, slot.indices.data_ptr<int64_t>());
        numbers.write(slot.controls.data_ptr<float>());
        const int64_t count = BatchLayout{size}.total();
        indices.narrow(0, 0, count).copy_(slot.indices.narrow(0, 0, count), /*non_blocking=*/true);
        controls.copy_(slot.controls, /*non_blocking=*/true);
        if (device_.is_cuda()) {
            if (!slot.copied) slot.copied = std::make_unique<c10::Event>(c10::DeviceType::CUDA);
            slot.copied->record(c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(device_));
        }
    }

    at::Tensor indices, controls;  // on the device, always at the same address

private:
    struct Slot {
        at::Tensor indices, controls;
        std::unique_ptr<c10::Event> copied;
    };
    at::Device device_;
    std::vector<Slot> slots_;
    size_t next_ = 0;
};

// Counts operator calls and the numbers they read. Views read nothing. Nested calls count too, so the figures only
// compare one version of the step with another.
class OperationCount {
public:
    OperationCount() {
        const std::lock_guard lock(mutex());
        counts().clear();
        handle_ = at::addGlobalCallback(
            at::RecordFunctionCallback(&on_call).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
    }
    ~OperationCount() { at::removeCallback(handle_); }
    static std::string text() {
        const std::lock_guard lock(mutex());
        std::vector<std::pair<double, std::string>> rows;
        int64_t calls = 0;
        double millions = 0;
        for (const auto& [name, count] : counts()) {
            std::ostringstream row;
            row << std::fixed << std::setprecision(2) << count.calls << " x " << name << ", " << count.read / 1e6
                << " million";
            rows.emplace_back(count.read, row.str());
            calls += count.calls;
            millions += count.read / 1e6;
        }
        std::sort(rows.rbegin(), rows.rend());
        std::ostringstream result;
        result << "operations of one step: " << calls << ", which read " << millions << " million numbers";
        for (const auto& [read, row] : rows) result << "\n  " << row;
        return result.str();
    }

private:
    struct Count {
        int64_t calls = 0;
        double read = 0;
    };
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static std::map<std::string, Count>& counts() {
        static std::map<std::string, Count> map;
        return map;
    }
    static std::unique_ptr<at::ObserverContext> on_call(const at::RecordFunction& function) {
        static const std::set<std::string> kLaunchNothing = {
            "view",          "reshape",     "detach",           "t",          "transpose",  "narrow",
            "slice",         "split",       "split_with_sizes", "unbind",     "select",     "expand",
            "expand_as",     "unsqueeze",   "squeeze",          "as_strided", "empty",      "empty_like",
            "empty_strided", "new_empty",   "resize_",          "zeros",      "zeros_like", "ones_like",
            "new_zeros",     "to",          "_to_copy",         "contiguous", "clone",      "zero_",
            "lift_fresh",    "sum_to_size", "_unsafe_view",     "permute",    "flatten",    "result_type",
            "requires_grad_"};
        const std::string name = function.name();
        if (name.rfind("aten::", 0) != 0 || kLaunchNothing.contains(name.substr(6))) return nullptr;
        double read = 0;
        for (const c10::IValue& input : function.inputs()) {
            const auto add = [&](const at::Tensor& tensor) {
                if (tensor.defined()) read += static_cast<double>(tensor.numel());
            };
            if (input.isTensor()) add(input.toTensor());
            if (input.isTensorList())
                for (const at::Tensor& tensor : input.toTensorVector()) add(tensor);
        }
        const std::lock_guard lock(mutex());
        Count& count = counts()[name.substr(6)];
        ++count.calls;
        count.read += read;
        return nullptr;
    }
    at::CallbackHandle handle_ = 0;
};

at::Tensor first_parameters(const TrainerOptions& options, const ParameterLayout& layout) {
    return options.start.defined() ? options.start.clone() : initial_parameters(options.shape, layout, options.seed);
}

class Trainer {
public:
    Trainer(const TrainerOptions& options, const ElementTable& elements, const TrainingSet& training,
            const TrainingSet& validation, size_t kind_count, RunLog& log)
        : options_(options),
          elements_(elements),
          training_(training),
          validation_(validation),
          kind_count_(kind_count),
          log_(log),
          device_(training.edge_vector.device()),
          layout_(parameter_layout(options.shape, elements.size())),
          optimizer_(options.optimizer, layout_, first_parameters(options, layout_).to(device_)),
          parameters_(options.shape, layout_, optimizer_.parameters, true),
          averaged_(options.shape, layout_, optimizer_.average, false),
          best_(optimizer_.average.clone()),
          maker_(training, options.shape, elements, options.uses_kernels),
          plain_maker_(training, options.shape, elements, false),
          validation_maker_(validation, options.shape, elements, false),
          order_(training, options.seed),
          limit_(fitting_size(training, options.batch_frames)),
          staging_(device_, BatchLayout{limit_}.total()),
          controls_(staging_.controls),
          sums_(at::zeros({5}, optimizer_.parameters.options())),
          uses_kernels_(options.uses_kernels) {}

    TrainerResult run(bool resume) {
        if (resume) {
            state_ = read_checkpoint(options_.checkpoint_path, options_, elements_, optimizer_, best_);
            order_.restore(state_.epoch, state_.position);
            if (state_.next_validation >
                options_.validations) {  // it was finished, and still is unless it is longer now
                const double progress = options_.schedule.progress(state_.step, state_.seconds);
                state_.next_validation = 1 + static_cast<int64_t>(progress * static_cast<double>(options_.validations));
            }
        } else if (options_.start.defined()) {
            state_.next_validation = 0;  // at once: the result is never worse than the start
        }
        const StopSignals signals;
        const SideStream stream(device_);
        const double seconds_before = state_.seconds;
        begin_ = Clock::now();
        const int64_t first_step = state_.step;
        bool is_done = state_.next_validation > options_.validations, is_stopped = false;
        while (!is_done && !is_stopped) {
            state_.seconds = seconds_before + seconds_since(begin_);
            const double progress = options_.schedule.progress(state_.step, state_.seconds);
            if (progress >= static_cast<double>(state_.next_validation) / static_cast<double>(options_.validations)) {
                is_done = validate(progress);
                continue;
            }
            one_step(progress);
            is_stopped = stop_requested || (options_.stop_after > 0 && state_.step - first_step >= options_.stop_after);
        }
        log_.end();
        if (is_stopped) save();
        TrainerResult result;
        result.parameters = best_.to(at::kCPU);
        result.state = state_;
        result.is_complete = is_done;
        result.used_graph = graph_is_recorded_;
        result.steps_per_second = static_cast<double>(timed_steps_) / std::max(1e-9, timed_seconds_);
        result.frames_per_second = static_cast<double>(timed_frames_) / std::max(1e-9, timed_seconds_);
        return result;
    }

private:
    void launch_step(const BatchSize& size) {
        const BatchMaker& maker = uses_kernels_ ? maker_ : plain_maker_;
        const Batch batch = maker.make(staging_.indices.narrow(0, 0, BatchLayout{size}.total()), size);
        const Prediction prediction = predict(parameters_, batch, true);
        const LossSums sums = loss_sums(options_.loss, batch, prediction);
        const at::Tensor energy = sums.energy * controls_.energy_factor, force = sums.force * controls_.force_factor;
        at::Tensor loss = energy + force;
        if (sums.stress.defined()) loss = loss + sums.stress * controls_.stress_factor;
        auto gradients = torch::autograd::grad({loss}, parameters_.all, {}, std::nullopt, false, /*allow_unused=*/true);
        for (size_t i = 0; i < gradients.size(); ++i)
            if (!gradients[i].defined()) gradients[i] = at::zeros_like(parameters_.all[i]);
        const at::Tensor norm = optimizer_.step(gradients, controls_);
        const at::NoGradGuard no_grad;
        sums_.add_(at::stack({loss, energy, force, norm, at::isfinite(norm).logical_not().to(at::kFloat)}));
    }

    void one_step(double progress) {
        constexpr int64_t kPlainSteps = 5;  // before recording: libraries initialise, memory is allocated
        const std::vector<int64_t> frames = order_.next(limit_);
        const BatchSize real = size_of(training_, frames);
        const BatchSize size = options_.pads_batches ? limit_ : real;
        const Schedule& schedule = options_.schedule;
        StepControls numbers;
        const auto step = static_cast<double>(state_.step + 1);
        numbers.learning_rate = learning_rate_ = schedule.learning_rate(state_.step, progress);
        numbers.inverse_bias1 = 1 / (1 - std::pow(options_.optimizer.beta1, step));
        numbers.inverse_bias2 = 1 / (1 - std::pow(options_.optimizer.beta2, step));
        numbers.ema_weight = schedule.ema_weight(state_.step);
        const auto frame_count = static_cast<double>(real.frames);
        energy_weight_ = schedule.energy_weight_at(progress);
        numbers.energy_factor = energy_weight_ / frame_count;
        double weights = 0;
        for (const int64_t frame : frames) {
            const int64_t count = training_.atoms_of(frame);
            weights += force_weight_of_atom(options_.loss.weighting, count) * static_cast<double>(count);
        }
        numbers.force_factor = options_.force_weight / (options_.loss.force == Measure::length ? weights : 3 * weights);
        numbers.stress_factor = options_.stress_weight / (9 * frame_count);
        staging_.send(training_, frames, size, numbers);

        if (uses_kernels_ && steps_here_ == 0) check_kernels(size);
        if (options_.uses_graph && steps_here_ == kPlainSteps) {
            record(size);
            launch_step(size);
        } else if (graph_is_recorded_) {
            graph_.replay();
        } else if (options_.counts_operations && steps_here_ == kPlainSteps) {
            {
                const OperationCount count;
                launch_step(size);
            }
            log_.note(OperationCount::text());
        } else {
            launch_step(size);
        }
        ++steps_here_;
        ++state_.step;
        state_.epoch = order_.epoch();
        state_.position = order_.position();
        interval_frames_ += real.frames;
        if (++interval_steps_ == options_.log_every) report(progress);
    }

    // Loss and gradient norm of a step that is undone.
    struct Trial {
        double loss = 0, norm = 0;
        bool agrees_with(const Trial& other) const {
            return std::abs(loss - other.loss) <= 1e-3 * std::abs(other.loss) &&
                   std::abs(norm - other.norm) <= 1e-2 * other.norm;
        }
    };
    Trial tried(const std::function<void()>& step) {
        const at::NoGradGuard no_grad;
        const std::vector<at::Tensor> state = {optimizer_.parameters, optimizer_.average, optimizer_.first_moment,
                                               optimizer_.second_moment, sums_};
        std::vector<at::Tensor> copies;
        for (const at::Tensor& tensor : state) copies.push_back(tensor.clone());
        sums_.zero_();
        {
            const at::AutoGradMode with_gradients(true);
            step();
        }
        const at::Tensor found = sums_.to(at::kCPU, at::kDouble);  // a copy
        for (size_t i = 0; i < state.size(); ++i) at::Tensor(state[i]).copy_(copies[i]);
        return {found[0].item<double>(), found[3].item<double>()};
    }

    // Uses the kernels only if they agree with LibTorch's operations on the same batch.
    void check_kernels(const BatchSize& size) {
        Trial with_kernels{-1, -1};
        try {
            with_kernels = tried([&] { launch_step(size); });
        } catch (const std::exception& error) {
            log_.note(concat("message kernels fail: ", error.what()));
        }
        uses_kernels_ = false;
        const Trial plain = tried([&] { launch_step(size); });
        uses_kernels_ = with_kernels.agrees_with(plain);
        log_.note(concat("message kernels ", uses_kernels_ ? "used" : "NOT used, they give other numbers", ": loss ",
                         with_kernels.loss, ", with tensors ", plain.loss, "; gradient ", with_kernels.norm, ", ",
                         plain.norm));
    }

    // Uses the recording only if it agrees with plain launches on the same batch.
    void record(const BatchSize& size) {
        std::string reason;
        const auto begin = Clock::now();
        if (!graph_.record([&] { launch_step(size); }, reason)) {
            log_.note("CUDA graph not recorded, steps are launched one by one: " + reason);
            return;
        }
        const Trial replayed = tried([&] { graph_.replay(); }), launched = tried([&] { launch_step(size); });
        graph_is_recorded_ = replayed.agrees_with(launched);
        log_.note(concat("CUDA graph ", graph_is_recorded_ ? "recorded" : "NOT used, it gives other numbers", ": loss ",
                         replayed.loss, ", launched ", launched.loss, "; gradient ", replayed.norm, ", ", launched.norm,
                         "; ", seconds_since(begin), " s"));
    }

    // Waits for the device.
    void report(double progress) {
        const at::Tensor sums = sums_.to(at::kCPU);
        const float* values = sums.data_ptr<float>();
        const auto steps = static_cast<double>(interval_steps_);
        const double seconds = seconds_since(interval_begin_.value_or(begin_));
        TrainingRow row;
        row.step = state_.step;
        row.epoch = state_.epoch;
        row.seconds = state_.seconds;
        row.learning_rate = learning_rate_;
        row.loss = values[0] / steps;
        row.energy_loss = values[1] / steps / energy_weight_;
        row.force_loss = values[2] / steps / options_.force_weight;
        row.gradient_norm = values[3] / steps;
        row.steps_per_second = steps / seconds;
        row.frames_per_second = static_cast<double>(interval_frames_) / seconds;
        log_.training(row, progress);
        if (values[4] > 0)
            log_.note(std::to_string(static_cast<int64_t>(values[4])) +
                      " steps had a gradient that is not finite and were skipped");
        timed_seconds_ += seconds;
        timed_steps_ += interval_steps_;
        timed_frames_ += interval_frames_;
        start_interval();
    }
    void start_interval() {
        sums_.zero_();
        interval_steps_ = interval_frames_ = 0;
        interval_begin_ = Clock::now();
    }

    // True at the end of the run.
    bool validate(double progress) {
        if (interval_steps_ > 0) report(progress);
        const std::vector<int64_t> frames = some_frames(validation_, options_.validation_frames);
        const ModelErrors errors = model_errors(
            averaged_, validation_, validation_maker_, options_.loss, frames,
            fitting_size(validation_, std::max<int64_t>(256, options_.batch_frames)), kind_count_, elements_);
        ValidationRow row;
        row.step = state_.step;
        row.seconds = state_.seconds;
        row.energy_mae = errors.all.energy.mean_absolute();
        row.energy_rmse = errors.all.energy.root_mean_square();
        row.force_mae = errors.all.force.mean_absolute();
        row.force_rmse = errors.all.force.root_mean_square();
        row.score =
            options_.schedule.energy_weight_final * errors.energy_loss + options_.force_weight * errors.force_loss;
        const bool is_best = std::isfinite(row.score) && (state_.best_step < 0 || row.score < state_.best_score);
        if (is_best) {
            state_.best_score = row.score;
            state_.best_step = state_.step;
            best_.copy_(optimizer_.average);
        }
        state_.stale_validations = is_best ? 0 : state_.stale_validations + 1;
        state_.history.push_back(row);
        log_.validation(row, is_best);
        // If a slow step passed several validations, only one is done.
        while (state_.next_validation <= options_.validations &&
               progress >= static_cast<double>(state_.next_validation) / static_cast<double>(options_.validations))
            ++state_.next_validation;
        bool is_done = state_.next_validation > options_.validations;
        if (!is_done && options_.patience > 0 && state_.stale_validations >= options_.patience) {
            log_.note("no improvement in " + std::to_string(options_.patience) + " validations: the run ends");
            is_done = true;
        }
        save();
        start_interval();
        return is_done;
    }

    void save() {
        if (!options_.checkpoint_path.empty())
            write_checkpoint(options_.checkpoint_path, options_, elements_, state_, optimizer_, best_);
    }

    const TrainerOptions& options_;
    const ElementTable& elements_;
    const TrainingSet &training_, &validation_;
    size_t kind_count_;
    RunLog& log_;
    at::Device device_;
    ParameterLayout layout_;
    Optimizer optimizer_;
    Parameters parameters_, averaged_;
    at::Tensor best_;
    BatchMaker maker_, plain_maker_, validation_maker_;
    FrameOrder order_;
    BatchSize limit_;
    Staging staging_;
    DeviceControls controls_;
    at::Tensor
        sums_;  // over the steps since the last report: loss, energy part, force part, gradient norm, skipped steps
    StepGraph graph_;
    bool graph_is_recorded_ = false, uses_kernels_;

    TrainerState state_;
    Clock::time_point begin_;
    std::optional<Clock::time_point> interval_begin_;
    int64_t steps_here_ = 0, interval_steps_ = 0, interval_frames_ = 0, timed_steps_ = 0, timed_frames_ = 0;
    double timed_seconds_ = 0, learning_rate_ = 0, energy_weight_ = 1;
};

}  // namespace

TrainerResult run_training(const TrainerOptions& options, const ElementTable& elements, const TrainingSet& training,
                           const TrainingSet& validation, size_t kind_count, bool resume, RunLog& log) {
    if (training.frame_count == 0) fail(Status::format, "the data have no usable training frame");
    if (validation.frame_count == 0) fail(Status::format, "the data have no usable validation frame");
    if (options.uses_graph && !StepGraph::is_compiled_in())
        log.note("CUDA graphs: this build has none, steps are launched one by one");
    return Trainer(options, elements, training, validation, kind_count, log).run(resume);
}

}  // namespace mlff::train

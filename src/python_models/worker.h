// SPDX-License-Identifier: MIT
// A process mlff-python-host and the communication with it. If the process dies, stops, or does not answer in time, a
// call throws Error. The worker is then unusable: create a new one.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "core/owner_process.h"
#include "core/system_view.h"
#include "potential/evaluator.h"
#include "python_models/protocol.h"

namespace mlff::python {

class Worker {
public:
    // `name` is for messages. `time_limit`: seconds per call, 0 = no limit.
    Worker(const std::filesystem::path& program, const std::filesystem::path& library, std::string name,
           double time_limit);  // throws Error
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // Sends a request, waits for the answer and returns its text. Throws Error.
    std::string ask(MessageKind kind, const std::string& text);
    void evaluate(const SystemView& system, const Outputs& outputs);
    bool is_usable() const { return is_usable_; }

private:
    Message exchange(Message request, const std::string& text, std::string& answer);
    void send(Message& request, const std::string& text);
    bool read_message(Message& message, std::string& text);  // false: no message
    void read_output();
    void reserve(int64_t atom_count);
    [[noreturn]] void fail_as_dead(const std::string& what);
    std::string end();  // kills the process if it runs, and says how it ended
    std::string last_words() const;

    std::string name_;
    double time_limit_;
    OwnerProcess owner_;
    pid_t pid_ = -1;
    int pid_descriptor_ = -1, socket_ = -1, memory_file_ = -1, output_ = -1;
    Heartbeat* heartbeat_ = nullptr;
    void* arrays_ = nullptr;
    int64_t capacity_ = 0;
    std::string line_;         // an incomplete line
    std::string output_text_;  // the end of the process's standard output and error
    std::string buffer_;       // for messages
    bool is_usable_ = true;
};

}  // namespace mlff::python

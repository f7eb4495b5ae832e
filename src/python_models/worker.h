// SPDX-License-Identifier: MIT
// A process mlff-python-host and the ways to talk to it. A process that has died, does not answer in time or does not
// run becomes an Error, after which the worker is of no more use: make a new one.
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
    // `name` is for messages; `time_limit` in seconds for each call, 0 = none.
    Worker(const std::filesystem::path& program, const std::filesystem::path& library, std::string name,
           double time_limit);  // throws Error
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // Sends a request and waits for its answer: the text. Throws Error.
    std::string ask(MessageKind kind, const std::string& text);
    void evaluate(const SystemView& system, const Outputs& outputs);
    bool is_usable() const { return is_usable_; }

private:
    Message exchange(Message request, const std::string& text, std::string& answer);
    void send(Message& request, const std::string& text);
    bool read_message(Message& message, std::string& text);  // false: none is there
    void read_output();
    void reserve(int64_t atom_count);
    [[noreturn]] void fail_as_dead(const std::string& what);
    std::string end();  // kills the process if it is there, and says how it ended
    std::string last_words() const;

    std::string name_;
    double time_limit_;
    OwnerProcess owner_;
    pid_t pid_ = -1;
    int pid_descriptor_ = -1, socket_ = -1, memory_file_ = -1, output_ = -1;
    Heartbeat* heartbeat_ = nullptr;
    void* arrays_ = nullptr;
    int64_t capacity_ = 0;
    std::string line_;         // the beginning of a line whose end has not been written yet
    std::string output_text_;  // the end of what the process wrote to its standard output and error
    std::string buffer_;       // of messages
    bool is_usable_ = true;
};

}  // namespace mlff::python

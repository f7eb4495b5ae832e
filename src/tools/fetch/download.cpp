// SPDX-License-Identifier: MIT
#include "tools/fetch/download.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tools/fetch/answer.h"
#include "tools/fetch/curl.h"

namespace mlff::fetch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostRedirects = 10;
constexpr size_t kLargestHeader = 1 << 16;
constexpr int64_t kWorthAnotherTry = 1'000'000;  // bytes; an attempt that brought them does not count
constexpr size_t kSlowest = 1024;                // bytes within the patience

// Worth another attempt.
struct Interrupted {
    std::string why;
};

std::vector<std::string> curl_arguments(const Address& address, int64_t begin) {
    std::vector<std::string> arguments = {"--disable",  // no ~/.curlrc, which could turn checks off
                                          "--silent",
                                          "--show-error",
                                          "--no-buffer",
                                          "--globoff",
                                          "--include",
                                          "--suppress-connect-headers",
                                          "--proto",
                                          "=" + address.scheme,
                                          "--tlsv1.2",
                                          "--connect-timeout",
                                          "30",
                                          "--user-agent",
                                          std::string("mlff/") + MLFF_VERSION_STRING};
    if (address.is_loopback) arguments.insert(arguments.end(), {"--noproxy", "*"});
    if (begin > 0) arguments.insert(arguments.end(), {"--range", std::to_string(begin) + "-"});
    arguments.insert(arguments.end(), {"--url", address.text()});
    return arguments;
}

// Gives up on a server that sends almost nothing.
class Patience {
public:
    explicit Patience(double seconds) : seconds_(seconds) {}
    void check(size_t bytes) {
        bytes_ += bytes;
        const auto now = Clock::now();
        if (std::chrono::duration<double>(now - begin_).count() < seconds_) return;
        if (bytes_ < kSlowest) throw Interrupted{concat("the server sent nothing for ", seconds_, " s")};
        bytes_ = 0;
        begin_ = now;
    }

private:
    double seconds_;
    size_t bytes_ = 0;
    Clock::time_point begin_ = Clock::now();
};

// Turns the exit code of curl into an exception. Its manual page lists the codes.
void check_exit(Curl& curl, const Address& address) {
    const int code = curl.exit_code();
    if (code == 0) return;
    if (code == Curl::kNotStarted) throw NotReached{"there is no command curl, which mlff downloads with: install it"};
    const std::string why = concat(address.authority, ": ", curl.complaint());
    static const std::set<int> unreachable = {5, 6, 7}, interrupted = {-1, 16, 18, 28, 35, 52, 55, 56, 92, 95, 96};
    if (unreachable.count(code) > 0) throw NotReached{"cannot reach " + why};
    if (interrupted.count(code) > 0) throw Interrupted{why};
    throw NotReached{why};  // certificates, proxies that want a password, protocols
}

// One request: the answer of the server, and the bytes that follow its header.
class Transfer {
public:
    Transfer(const Address& address, int64_t begin, const DownloadOptions& options)
        : address_(address),
          options_(options),
          curl_(curl_arguments(address, begin)),
          patience_(options.patience_seconds) {
        for (size_t read = 0;;) {
            while (const size_t size = header_size(received_)) {
                answer_ = parse(received_.substr(0, size));
                received_.erase(0, size);
                if (answer_.status >= 200) return;  // others announce that an answer follows
                read += size;
            }
            if (read + received_.size() > kLargestHeader)
                fail(Status::format, address.text(), ": the header of the server's answer has no end");
            if (!receive()) throw Interrupted{concat(address.authority, ": the server ended the connection")};
        }
    }

    const Answer& answer() const { return answer_; }

    // Calls use(bytes) until the end of the body.
    template <class Use>
    void read_body(const Use& use) {
        do {
            if (!received_.empty()) use(received_);
            received_.clear();
        } while (receive());
    }

private:
    Answer parse(const std::string& header) const {
        try {
            return parse_answer(header);
        } catch (const Error& error) {
            fail(error.status(), address_.text(), ": ", error.what());
        }
    }
    // More bytes in received_; false at the end.
    bool receive() {
        for (;;) {
            if (options_.is_stopped()) throw Stopped{};
            const size_t before = received_.size();
            const Curl::Read read = curl_.read(received_);
            if (read == Curl::Read::end) {
                check_exit(curl_, address_);
                return false;
            }
            patience_.check(received_.size() - before);
            if (read == Curl::Read::bytes) return true;
        }
    }

    const Address address_;
    const DownloadOptions& options_;
    Curl curl_;
    Patience patience_;
    std::string received_;
    Answer answer_;
};

[[noreturn]] void refuse_size(const Address& address, const std::string& found, const DownloadOptions& options) {
    fail(Status::format, address.text(), ": has ", found, " bytes, expected ", options.size > 0 ? "" : "at most ",
         options.size > 0 ? options.size : options.limit);
}

void check_status(const Address& address, int status) {
    static const std::set<int> passing = {408, 425, 429, 500, 502, 503, 504};
    if (status == 200 || status == 206) return;
    const std::string why = concat(address.text(), ": the server answered ", status);
    if (passing.count(status) > 0) throw Interrupted{why};
    fail(Status::file, why, status == 404 ? ", there is no such file" : "");
}

bool is_redirect(const Answer& answer) {
    static const std::set<int> redirects = {301, 302, 303, 307, 308};
    return redirects.count(answer.status) > 0 && !answer.location.empty();
}

// Appends the body of an answer to the part. False if the server does not have the rest of this part: then it is empty.
bool receive_file(const Address& address, Transfer& transfer, PartFile& part, const DownloadOptions& options) {
    const Answer& answer = transfer.answer();
    const bool is_wrong_range = answer.status == 206 && answer.range_begin != part.size();
    if (part.size() > 0 && (answer.status == 416 || is_wrong_range)) {
        part.clear();
        return false;
    }
    check_status(address, answer.status);
    if (is_wrong_range) fail(Status::format, address.text(), ": the server sent another part of the file");
    if (answer.total > options.limit || (options.size > 0 && answer.total >= 0 && answer.total != options.size))
        refuse_size(address, std::to_string(answer.total), options);
    if (answer.status == 200) part.clear();  // the whole file, whatever was asked for
    const int64_t total = std::max({answer.total, options.size, int64_t{0}});
    transfer.read_body([&](const std::string& bytes) {
        if (static_cast<int64_t>(bytes.size()) > options.limit - part.size())
            refuse_size(address, concat("more than ", options.limit), options);
        part.write(bytes.data(), bytes.size());
        options.show_progress(part.size(), total);
    });
    if (part.size() < total) throw Interrupted{concat(address.authority, ": the server ended the connection early")};
    return true;
}

void attempt(const Address& address, PartFile& part, const DownloadOptions& options) {
    Address at = address;
    for (int redirects = 0; redirects <= kMostRedirects;) {
        Transfer transfer(at, part.size(), options);
        if (is_redirect(transfer.answer())) {
            at = redirected(at, transfer.answer().location);
            ++redirects;
        } else if (receive_file(at, transfer, part, options)) {
            return;
        }
    }
    fail(Status::file, address.text(), ": redirects more than ", kMostRedirects, " times");
}

void sleep_unless_stopped(double seconds, const DownloadOptions& options) {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (Clock::now() < end) {
        if (options.is_stopped()) throw Stopped{};
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

}  // namespace

void download(const Address& address, PartFile& part, const DownloadOptions& options) {
    if (options.size > 0 && part.size() > options.size) part.clear();
    if (options.size > 0 && part.size() == options.size) return;
    for (int failures = 0;;) {
        const int64_t before = part.size();
        try {
            attempt(address, part, options);
            return;
        } catch (const Interrupted& interrupted) {
            if (part.size() >= before + kWorthAnotherTry) failures = 0;
            if (++failures > options.retries) throw NotReached{interrupted.why};
            options.tell(concat(interrupted.why, "; trying again from byte ", part.size()));
        }
        sleep_unless_stopped(0.5 * (1 << std::min(failures - 1, 6)), options);
    }
}

}  // namespace mlff::fetch

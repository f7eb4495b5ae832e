// SPDX-License-Identifier: MIT
#include "member_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "append_file.h"

namespace mlff::app {

MemberFile::MemberFile(std::string path, std::optional<uint64_t> go_on_at) : path_(std::move(path)), size_(go_on_at) {
    append("");
}

void MemberFile::add(std::string_view text) {
    constexpr size_t kMostInMemory = 1 << 15;
    waiting_ += text;
    if (waiting_.size() > kMostInMemory) flush();
}

uint64_t MemberFile::flush() {
    if (!waiting_.empty()) append(waiting_);
    waiting_.clear();
    return *size_;
}

void MemberFile::append(std::string_view text) {
    AppendFile file(path_, size_);
    file.write(text);
    size_ = file.size();
}

void sync_files_of(const std::string& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::syncfs(descriptor);
    ::close(descriptor);
}

}  // namespace mlff::app

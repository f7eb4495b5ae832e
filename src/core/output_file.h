// SPDX-License-Identifier: MIT
// A file that appears under its name only when it is complete: written beside it, then renamed. Where the name is a
// link, the file behind it is replaced.
#pragma once

#include <cstddef>
#include <string>

namespace mlff {

class OutputFile {
public:
    explicit OutputFile(const std::string& path);  // throws Error{file}
    ~OutputFile();                                 // without commit(): what was there before stays as it was
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(const void* data, size_t size);  // throws Error{file}, naming the path (disk full, say)
    void commit();

private:
    std::string path_;
    std::string target_;  // where its links lead to
    std::string temporary_;
    int descriptor_ = -1;
};

}  // namespace mlff

// SPDX-License-Identifier: MIT
// A file that appears under its name only when it is complete. It is written to a temporary file in the same folder,
// which is then renamed. If the name is a symbolic link, the file it points to is replaced.
#pragma once

#include <cstddef>
#include <string>

namespace mlff {

class OutputFile {
public:
    explicit OutputFile(const std::string& path);  // throws Error{file}
    ~OutputFile();                                 // without commit(): an existing file stays unchanged
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(const void* data, size_t size);  // throws Error{file}, naming the path (disk full, say)
    void commit();

private:
    std::string path_;
    std::string target_;  // the path after following links
    std::string temporary_;
    int descriptor_ = -1;
};

}  // namespace mlff

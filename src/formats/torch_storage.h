// SPDX-License-Identifier: MIT
// The tensors of a torch archive. Pickled calls of torch's rebuild functions become views of the storages in the zip.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "formats/pickle.h"
#include "formats/tensor.h"
#include "formats/zip.h"

namespace mlff {

class TorchStorages {
public:
    // `folder` is the archive's top folder; storages are entries "<folder>/data/<key>". Tensors are views of the
    // archive. Storages that had to be inflated are added to `memory`, which must live as long as the tensors.
    TorchStorages(const ZipArchive& archive, std::string folder, std::string name_for_errors,
                  std::vector<std::shared_ptr<const void>>& memory);

    // The tensor that `value` would rebuild; nothing if it is not such a call. Throws Error{format | unsupported}.
    std::optional<Tensor> tensor(PickleValue value, std::string_view name);

private:
    struct Storage {
        Bytes bytes;
        std::optional<DType> dtype;  // none for an untyped storage
    };
    Storage storage(PickleValue persistent, std::string_view tensor_name);
    Bytes storage_bytes(std::string_view key, std::string_view tensor_name);
    template <class... Parts>
    [[noreturn]] void broken(std::string_view tensor_name, const Parts&... parts) const;

    const ZipArchive& archive_;
    std::string folder_;
    std::string name_;
    bool is_big_endian_ = false;
    std::map<std::string, Bytes, std::less<>> checked_;  // by key; the CRC of each is verified once
    std::vector<std::shared_ptr<const void>>& memory_;
};

}  // namespace mlff

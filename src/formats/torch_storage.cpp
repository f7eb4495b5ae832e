// SPDX-License-Identifier: MIT
#include "formats/torch_storage.h"

#include <array>

#include "core/error.h"
#include "formats/little_endian.h"

namespace mlff {
namespace {

struct NamedDType {
    std::string_view storage;  // "torch.<this>" as a storage class
    std::string_view dtype;    // "torch.<this>" as a dtype
    DType value;
};
constexpr std::array<NamedDType, 20> kNames = {{
    {"DoubleStorage", "float64", DType::float64},
    {"FloatStorage", "float32", DType::float32},
    {"HalfStorage", "float16", DType::float16},
    {"BFloat16Storage", "bfloat16", DType::bfloat16},
    {"LongStorage", "int64", DType::int64},
    {"IntStorage", "int32", DType::int32},
    {"ShortStorage", "int16", DType::int16},
    {"CharStorage", "int8", DType::int8},
    {"ByteStorage", "uint8", DType::uint8},
    {"BoolStorage", "bool", DType::boolean},
    {"ComplexFloatStorage", "complex64", DType::complex64},
    {"ComplexDoubleStorage", "complex128", DType::complex128},
    {"", "uint16", DType::uint16},
    {"", "uint32", DType::uint32},
    {"", "uint64", DType::uint64},
    {"", "float8_e4m3fn", DType::float8_e4m3},
    {"", "float8_e5m2", DType::float8_e5m2},
    {"", "half", DType::float16},
    {"", "float", DType::float32},
    {"", "double", DType::float64},
}};

std::string_view after_torch(std::string_view name) {
    return name.substr(0, 6) == "torch." ? name.substr(6) : std::string_view();
}

std::optional<DType> dtype_of(std::string_view global, std::string_view NamedDType::*column) {
    const std::string_view name = after_torch(global);
    for (const NamedDType& entry : kNames)
        if (!name.empty() && entry.*column == name) return entry.value;
    return std::nullopt;
}

// A tuple of whole numbers. torch.Size and similar classes hold one as their only argument.
std::optional<std::vector<int64_t>> integers(PickleValue value) {
    if (value.is(PickleKind::object) && value.arguments().size() == 1) value = value.arguments()[0];
    if (!value.is(PickleKind::tuple) && !value.is(PickleKind::list)) return std::nullopt;
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < value.size(); ++i) {
        if (!value[i].is(PickleKind::integer)) return std::nullopt;
        numbers.push_back(value[i].integer());
    }
    return numbers;
}

bool is_parameter_call(std::string_view function) {
    return function == "torch._utils._rebuild_parameter" || function == "torch._utils._rebuild_parameter_with_state";
}

}  // namespace

template <class... Parts>
void TorchStorages::broken(std::string_view tensor_name, const Parts&... parts) const {
    fail(Status::format, name_, ": tensor '", tensor_name, "' ", parts...);
}

TorchStorages::TorchStorages(const ZipArchive& archive, std::string folder, std::string name_for_errors,
                             std::vector<std::shared_ptr<const void>>& memory)
    : archive_(archive), folder_(std::move(folder)), name_(std::move(name_for_errors)), memory_(memory) {
    if (const ZipEntry* entry = archive_.find(folder_ + "/byteorder")) {
        const auto contents = archive_.read(*entry);
        const std::string_view order = text_at(contents, 0, contents.size());
        if (order != "little" && order != "big")
            fail(Status::format, name_, ": byte order is neither 'little' nor 'big'");
        is_big_endian_ = order == "big";
    }
}

Bytes TorchStorages::storage_bytes(std::string_view key, std::string_view tensor_name) {
    if (const auto found = checked_.find(key); found != checked_.end()) return found->second;
    const ZipEntry* entry = archive_.find(folder_ + "/data/" + std::string(key));
    if (!entry) broken(tensor_name, "refers to storage '", key, "', which is not in the file");
    Bytes bytes;
    if (entry->is_deflated) {  // torch does not compress storages; tools that rewrite archives may
        auto inflated = std::make_shared<const std::vector<std::byte>>(archive_.read(*entry));
        bytes = *inflated;
        memory_.push_back(std::move(inflated));
    } else {
        bytes = archive_.stored(*entry);
    }
    checked_.emplace(key, bytes);
    return bytes;
}

TorchStorages::Storage TorchStorages::storage(PickleValue persistent, std::string_view tensor_name) {
    const PickleValue id = persistent.arguments();
    if (!persistent.is(PickleKind::persistent) || !id.is(PickleKind::tuple) || id.size() < 5 ||
        !id[0].is(PickleKind::text) || id[0].text() != "storage" || !id[1].is(PickleKind::global) ||
        !id[2].is(PickleKind::text) || !id[4].is(PickleKind::integer))
        broken(tensor_name, "has a malformed storage");
    // id[3], the device the tensor was saved from, is not needed.
    Storage result;
    const std::string_view type = id[1].text();
    result.dtype = dtype_of(type, &NamedDType::storage);
    if (!result.dtype && type != "torch.UntypedStorage" && type != "torch.storage.UntypedStorage")
        fail(Status::unsupported, name_, ": tensor '", tensor_name, "' has a storage of type ", type,
             ", which mlff does not read");
    result.bytes = storage_bytes(id[2].text(), tensor_name);
    const size_t element_size = result.dtype ? dtype_size(*result.dtype) : 1;
    const size_t size = result.bytes.size();
    if (size % element_size != 0 || id[4].integer() != static_cast<int64_t>(size / element_size))
        broken(tensor_name, "expects ", id[4].integer(), " elements of ", element_size, " bytes in storage '",
               id[2].text(), "', which has ", size, " bytes");
    return result;
}

std::optional<Tensor> TorchStorages::tensor(PickleValue value, std::string_view name) {
    const std::string_view function = value.class_name();
    const PickleValue arguments = value.arguments();
    if (is_parameter_call(function)) {
        if (arguments.size() < 1) broken(name, "is a parameter without a tensor");
        if (is_parameter_call(arguments[0].class_name())) broken(name, "is a parameter of a parameter");
        std::optional<Tensor> parameter = tensor(arguments[0], name);
        if (!parameter) broken(name, "is a parameter without a tensor");
        parameter->is_parameter = true;
        return parameter;
    }
    const bool has_dtype = function == "torch._utils._rebuild_tensor_v3";
    if (!has_dtype && function != "torch._utils._rebuild_tensor_v2" && function != "torch._utils._rebuild_tensor") {
        if (function.substr(0, 22) == "torch._utils._rebuild_")
            fail(Status::unsupported, name_, ": tensor '", name, "' is of a kind mlff does not read (", function, ")");
        return std::nullopt;
    }
    if (arguments.size() < (has_dtype ? 7u : 4u)) broken(name, "lacks some of its description");
    Storage source = storage(arguments[0], name);
    if (has_dtype && arguments[6].is(PickleKind::global))
        source.dtype = dtype_of(arguments[6].text(), &NamedDType::dtype);
    if (!source.dtype) broken(name, "has a type that mlff does not read");
    auto shape = integers(arguments[2]), strides = integers(arguments[3]);
    if (!arguments[1].is(PickleKind::integer) || !shape || !strides) broken(name, "has a malformed shape");
    Tensor result = make_tensor(*source.dtype, std::move(*shape), std::move(*strides), arguments[1].integer(),
                                source.bytes, concat(name_, ": tensor '", name, "'"));
    result.is_big_endian = is_big_endian_;
    return result;
}

}  // namespace mlff

// SPDX-License-Identifier: MIT
#include "train/model_file.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "core/error.h"
#include "core/mapped_file.h"
#include "formats/json_text.h"
#include "formats/safetensors.h"

namespace mlff::train {
namespace {

using Json = nlohmann::json;

// Owns the memory behind the tensors of a file being written.
class FileBuilder {
public:
    template <class Value>
    void add(const std::string& name, DType dtype, const std::vector<Value>& values, std::vector<int64_t> shape) {
        const auto* first = reinterpret_cast<const std::byte*>(values.data());
        bytes_.emplace_back(first, first + values.size() * sizeof(Value));
        file.tensors.emplace_back(name, make_tensor(dtype, shape, row_major_strides(shape), 0, bytes_.back(), name));
    }
    void add(const std::string& name, const at::Tensor& values) {  // as float32
        const at::Tensor flat = values.to(at::kFloat).contiguous();
        add(name, DType::float32, std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()),
            flat.sizes().vec());
    }
    Safetensors file;

private:
    std::deque<std::vector<std::byte>> bytes_;
};

class FileReader {
public:
    FileReader(const Safetensors& file, const std::string& path) : file_(file), path_(path) {}
    const Tensor& get(const std::string& name, const std::vector<int64_t>& shape) {
        const Tensor* tensor = file_.find(name);
        if (!tensor) fail(Status::format, path_, ": no tensor '", name, "'");
        if (tensor->shape != shape)
            fail(Status::format, path_, ": tensor '", name, "' has shape ", shape_text(tensor->shape), ", expected ",
                 shape_text(shape));
        used_.insert(name);
        return *tensor;
    }
    std::vector<double> numbers(const std::string& name, const std::vector<int64_t>& shape) {
        std::vector<double> values = get(name, shape).to_doubles();
        if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }))
            fail(Status::format, path_, ": tensor '", name, "' has numbers that are not finite");
        return values;
    }
    at::Tensor tensor(const std::string& name, const std::vector<int64_t>& shape) {
        return at::tensor(numbers(name, shape), at::kDouble).view(shape);
    }
    void check_all_used() const {
        for (const auto& [name, tensor] : file_.tensors)
            if (!used_.contains(name)) fail(Status::format, path_, ": unknown tensor '", name, "'");
    }

private:
    const Safetensors& file_;
    const std::string& path_;
    std::set<std::string> used_;
};

ModelShape read_shape(const Safetensors& file, const std::string& path) {
    const auto format = file.metadata.find("format"), layout = file.metadata.find("painn_layout"),
               config = file.metadata.find("config");
    if (format == file.metadata.end() || format->second != "mlff-painn")
        fail(Status::format, path, ": not a PaiNN file of mlff");
    if (layout == file.metadata.end() || layout->second != "1")
        fail(Status::format, path, ": metadata 'painn_layout' is not 1");
    if (config == file.metadata.end()) fail(Status::format, path, ": no metadata 'config'");
    const Json json = parse_untrusted_json(config->second, path);
    ModelShape shape;
    try {
        shape = {json.at("hidden").get<int64_t>(), json.at("blocks").get<int64_t>(), json.at("radial").get<int64_t>(),
                 json.at("cutoff").get<double>()};
    } catch (const Json::exception& error) {
        fail(Status::format, path, ": metadata 'config': ", error.what());
    }
    shape.check();
    return shape;
}

}  // namespace

void write_model(const std::string& path, const StoredModel& model) {
    FileBuilder builder;
    const ElementTable& table = model.elements;
    builder.add("atomic_numbers", DType::int64,
                std::vector<int64_t>(table.atomic_numbers.begin(), table.atomic_numbers.end()), {table.size()});
    builder.add("atomic_energies", DType::float64, table.atomic_energies, {table.size()});
    builder.add("scales", DType::float64, table.scales, {table.size()});
    if (!table.repulsion_radii.empty())
        builder.add("repulsion_radii", DType::float64, table.repulsion_radii, {table.size()});
    if (!table.closest.empty()) builder.add("closest", DType::float64, table.closest, {table.size(), table.size()});
    const ParameterLayout layout = parameter_layout(model.shape, table.size());
    for (const ParameterSlot& slot : layout.slots) {
        const at::Tensor values = model.parameters.narrow(0, slot.offset, slot.size).view(slot.shape);
        if (!values.isfinite().all().item<bool>())
            fail(Status::internal, path, ": ", slot.name, " has numbers that are not finite");
        if (slot.name == "embedding")
            builder.add(slot.name, values);
        else if (slot.name.ends_with("filter")) {
            builder.add(slot.name + ".weight", values.narrow(0, 0, model.shape.radial).t());
            builder.add(slot.name + ".bias", values[model.shape.radial]);
        } else if (slot.shape.size() == 2)
            builder.add(slot.name, values.t());
        else
            builder.add(slot.name, values);
    }
    const Json config = {{"hidden", model.shape.hidden},
                         {"blocks", model.shape.blocks},
                         {"radial", model.shape.radial},
                         {"cutoff", model.shape.cutoff}};
    builder.file.metadata = {
        {"format", "mlff-painn"}, {"painn_layout", "1"}, {"config", config.dump()}, {"card", model.card.dump()}};
    write_safetensors(path, builder.file);
}

StoredModel read_model(const std::string& path) {
    const auto mapped = MappedFile::open(path);
    const Safetensors file = read_safetensors(mapped->bytes(), path);
    StoredModel model;
    model.shape = read_shape(file, path);
    if (const auto card = file.metadata.find("card"); card != file.metadata.end())
        model.card = parse_untrusted_json(card->second, path);

    FileReader reader(file, path);
    const Tensor* numbers = file.find("atomic_numbers");
    if (!numbers || numbers->shape.size() != 1 || numbers->shape[0] < 1)
        fail(Status::format, path, ": no tensor 'atomic_numbers' of shape [elements]");
    const int64_t n = numbers->shape[0];
    for (const int64_t number : reader.get("atomic_numbers", {n}).to_integers()) {
        if (number < 1 || number > 118 ||
            (!model.elements.atomic_numbers.empty() && number <= model.elements.atomic_numbers.back()))
            fail(Status::format, path, ": tensor 'atomic_numbers' must be ascending numbers from 1 to 118");
        model.elements.atomic_numbers.push_back(static_cast<int>(number));
    }
    model.elements.atomic_energies = reader.numbers("atomic_energies", {n});
    model.elements.scales = reader.numbers("scales", {n});
    if (file.find("repulsion_radii")) model.elements.repulsion_radii = reader.numbers("repulsion_radii", {n});
    if (file.find("closest")) model.elements.closest = reader.numbers("closest", {n, n});

    const ParameterLayout layout = parameter_layout(model.shape, n);
    model.parameters = at::zeros({layout.total}, at::kDouble);
    for (const ParameterSlot& slot : layout.slots) {
        at::Tensor target = model.parameters.narrow(0, slot.offset, slot.size).view(slot.shape);
        if (slot.name.ends_with("filter")) {
            target.narrow(0, 0, model.shape.radial)
                .copy_(reader.tensor(slot.name + ".weight", {slot.shape[1], model.shape.radial}).t());
            target[model.shape.radial].copy_(reader.tensor(slot.name + ".bias", {slot.shape[1]}));
        } else if (slot.shape.size() == 2 && slot.name != "embedding") {
            target.copy_(reader.tensor(slot.name, {slot.shape[1], slot.shape[0]}).t());
        } else {
            target.copy_(reader.tensor(slot.name, slot.shape));
        }
    }
    reader.check_all_used();
    return model;
}

}  // namespace mlff::train

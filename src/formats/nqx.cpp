// SPDX-License-Identifier: MIT
#include "formats/nqx.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "formats/json_text.h"
#include "formats/little_endian.h"

namespace mlff {
namespace {

constexpr size_t kMaxNqxFirstLine = size_t{1} << 20;
constexpr int kMaxNequixLayers = 100;
constexpr int kMaxNequixDegree = 11;
constexpr size_t kMaxArrayDimensions = 3;
constexpr std::string_view kNumpyMagic = "\x93NUMPY";

size_t first_line_length(Bytes bytes) { return text_at(bytes, 0, std::min(bytes.size(), kMaxNqxFirstLine)).find('\n'); }

// The records, one after another.
class ArrayReader {
public:
    ArrayReader(Bytes bytes, size_t offset, const std::string& name) : bytes_(bytes), at_(offset), name_(name) {}

    Tensor next(const std::string& tensor_name) {
        constexpr size_t kFixedSize = 10;  // magic, two bytes of version, two of the header's size
        if (bytes_.size() - at_ < kFixedSize) broken(tensor_name, "is missing: the file ends before it");
        if (text_at(bytes_, at_, kNumpyMagic.size()) != kNumpyMagic)
            broken(tensor_name, "is not an array in numpy's format");
        if (bytes_[at_ + 6] != std::byte{1} || bytes_[at_ + 7] != std::byte{0})
            broken(tensor_name, "has a header of an unknown version, expected 1.0");
        const size_t size = load_le<uint16_t>(bytes_, at_ + 8);
        at_ += kFixedSize;
        if (bytes_.size() - at_ < size) broken(tensor_name, "has a header that runs past the end of the file");
        rest_ = text_at(bytes_, at_, size);
        at_ += size;
        return data(tensor_name);
    }
    void expect_end() const {
        if (at_ != bytes_.size())
            fail(Status::format, name_, ": ", bytes_.size() - at_, " bytes follow the last array");
    }

private:
    template <class... Parts>
    [[noreturn]] void broken(const std::string& tensor_name, const Parts&... parts) const {
        fail(Status::format, name_, ": array '", tensor_name, "' ", parts...);
    }
    bool skip(std::string_view expected) {
        if (!rest_.starts_with(expected)) return false;
        rest_.remove_prefix(expected.size());
        return true;
    }
    // What numpy writes, and nothing else: {'descr': '<f4', 'fortran_order': False, 'shape': (8, 16), }
    Tensor data(const std::string& tensor_name) {
        const auto expect = [&](std::string_view expected) {
            if (!skip(expected)) broken(tensor_name, "has a malformed header, expected \"", expected, "\"");
        };
        expect("{'descr': ");
        const bool is_double = rest_.starts_with("'<f8'");
        if (!is_double && !rest_.starts_with("'<f4'"))
            fail(Status::unsupported, name_, ": array '", tensor_name, "' has the type ",
                 rest_.substr(0, rest_.find(',')), ", expected '<f4' or '<f8'");
        rest_.remove_prefix(5);
        expect(", 'fortran_order': ");
        if (skip("True")) fail(Status::unsupported, name_, ": array '", tensor_name, "' is stored column by column");
        expect("False, 'shape': (");
        const std::vector<int64_t> shape = extents(tensor_name);
        expect("), }");
        if (rest_.empty() || rest_.back() != '\n' || rest_.find_first_not_of(' ') != rest_.size() - 1)
            broken(tensor_name, "has a malformed end of its header");
        return view(tensor_name, is_double ? DType::float64 : DType::float32, shape);
    }
    // "9,", "8, 16" or nothing
    std::vector<int64_t> extents(const std::string& tensor_name) {
        std::vector<int64_t> shape;
        while (!rest_.empty() && rest_[0] != ')') {
            if (!shape.empty() && !skip(" ")) broken(tensor_name, "has a malformed shape");
            int64_t extent = -1;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
            if (error != std::errc() || extent < 0 || shape.size() == kMaxArrayDimensions)
                broken(tensor_name, "has a malformed shape, or one of more than ", kMaxArrayDimensions, " dimensions");
            rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
            shape.push_back(extent);
            if (!skip(",") && shape.size() == 1) broken(tensor_name, "has a malformed shape");
        }
        return shape;
    }
    Tensor view(const std::string& tensor_name, DType dtype, const std::vector<int64_t>& shape) {
        uint64_t size = dtype_size(dtype);
        const uint64_t left = bytes_.size() - at_;
        for (int64_t extent : shape) {
            if (extent > 0 && size > left / static_cast<uint64_t>(extent))
                broken(tensor_name, shape_text(shape), " runs past the end of the file");
            size *= static_cast<uint64_t>(extent);
        }
        if (size > left) broken(tensor_name, shape_text(shape), " runs past the end of the file");
        Tensor tensor = make_tensor(dtype, shape, row_major_strides(shape), 0, bytes_.subspan(at_, size),
                                    concat(name_, ": array '", tensor_name, "'"));
        tensor.is_parameter = true;
        at_ += size;
        return tensor;
    }

    Bytes bytes_;
    size_t at_;
    const std::string& name_;
    std::string_view rest_;  // of the header
};

// What decides how many arrays there are.
struct Counts {
    int layers = 0;
    int radial = 0;           // matrices of each radial network
    int harmonic_degree = 0;  // the largest
    bool has_norm = false;
    std::vector<int> degrees;  // of the hidden irreps
};

class NqxReader {
public:
    NqxReader(Bytes bytes, const std::string& name)
        : config_(parse_json(text_at(bytes, 0, first_line_length(bytes)), name + " (first line)")),
          arrays_(bytes, first_line_length(bytes) + 1, name),
          name_(name) {}

    Module read() {
        if (!config_.is_object()) fail(Status::format, name_, ": the first line is not a JSON object");
        read_counts();
        Module root;
        root.class_path = kNequixClass;
        root.attributes["config"] = config_;
        add(root, "atomic_energies", "");
        Module layers;
        for (int t = 0; t < counts_.layers; ++t) layers.children.emplace_back(std::to_string(t), layer(t));
        root.children.emplace_back("layers", std::move(layers));
        add(root, "readout", "");
        arrays_.expect_end();
        return root;
    }

private:
    int integer(std::string_view key, int smallest, int largest) const {
        const JsonValue* value = config_.find(key);
        const double number = value && value->is_number() ? value->number() : smallest - 1.0;
        if (!(number >= smallest && number <= largest) || number != static_cast<int>(number))
            fail(Status::format, name_, ": '", key, "' is not a whole number from ", smallest, " to ", largest);
        return static_cast<int>(number);
    }
    void read_counts() {
        counts_.layers = integer("n_layers", 1, kMaxNequixLayers);
        counts_.radial = integer("radial_mlp_layers", 0, kMaxNequixLayers) + 1;
        counts_.harmonic_degree = integer("lmax", 0, kMaxNequixDegree);
        const JsonValue* norm = config_.find("layer_norm");
        if (!norm || !norm->is_boolean()) fail(Status::format, name_, ": 'layer_norm' is neither true nor false");
        counts_.has_norm = norm->boolean();
        const JsonValue* irreps = config_.find("hidden_irreps");
        if (!irreps || !irreps->is_string()) fail(Status::format, name_, ": 'hidden_irreps' is not text");
        std::string text = irreps->text();
        std::erase(text, ' ');  // Nequix writes what its user wrote
        read_degrees(text);
    }
    // "8x0e+4x1o+2x2e": the degrees ascend from 0, and the parity is that of the harmonics.
    void read_degrees(std::string_view irreps) {
        while (true) {
            const std::string_view term = irreps.substr(0, irreps.find('+'));
            const std::string_view irrep = term.substr(term.find('x') + 1);
            int degree = -1;
            const auto [end, error] = std::from_chars(irrep.data(), irrep.data() + irrep.size(), degree);
            const int smallest = counts_.degrees.empty() ? 0 : counts_.degrees.back() + 1;
            if (error != std::errc() || degree < smallest || degree > kMaxNequixDegree ||
                (counts_.degrees.empty() && degree != 0) ||
                std::string_view(end, irrep.data() + irrep.size()) != (degree % 2 ? "o" : "e"))
                fail(Status::unsupported, name_, ": hidden_irreps '", config_["hidden_irreps"].text(),
                     "', expected one block for each degree, from 0e on, with the parity of the harmonics");
            counts_.degrees.push_back(degree);
            if (term.size() == irreps.size()) return;
            irreps.remove_prefix(term.size() + 1);
        }
    }
    // Whether a feature of one of these degrees and a harmonic couple to `degree`. Parity demands an even sum.
    bool is_reached(const std::vector<int>& in, int degree) const {
        for (int a : in)
            for (int b = 0; b <= counts_.harmonic_degree; ++b)
                if (degree >= std::abs(a - b) && degree <= a + b && (a + b + degree) % 2 == 0) return true;
        return false;
    }

    void add(Module& owner, const std::string& name, const std::string& path) {
        owner.tensors.emplace_back(name, arrays_.next(path + name));
    }
    // One array for each of the degrees.
    Module blocks(const std::vector<int>& degrees, const std::string& path) {
        Module result;
        for (int degree : degrees) add(result, std::to_string(degree), path);
        return result;
    }
    Module layer(int number) {
        const std::vector<int> scalar = {0};
        const std::vector<int>& in = number == 0 ? scalar : counts_.degrees;
        const std::vector<int>& out = number == counts_.layers - 1 ? scalar : counts_.degrees;
        std::vector<int> reached, kept;
        for (int degree : out) {
            if (is_reached(in, degree)) reached.push_back(degree);
            if (std::find(in.begin(), in.end(), degree) != in.end()) kept.push_back(degree);
        }
        const std::string path = concat("layers.", number, ".");
        Module result, radial;
        for (int k = 0; k < counts_.radial; ++k) add(radial, std::to_string(k), path + "radial.");
        result.children.emplace_back("radial", std::move(radial));
        result.children.emplace_back("linear_1", blocks(in, path + "linear_1."));
        result.children.emplace_back("linear_2", blocks(reached, path + "linear_2."));
        result.children.emplace_back("skip", blocks(kept, path + "skip."));
        if (counts_.has_norm) result.children.emplace_back("norm", blocks(out, path + "norm."));
        return result;
    }

    const JsonValue config_;
    ArrayReader arrays_;
    const std::string& name_;
    Counts counts_;
};

}  // namespace

bool looks_like_nqx(Bytes bytes) {
    if (bytes.empty() || bytes[0] != std::byte{'{'}) return false;
    const size_t length = first_line_length(bytes);
    return length != std::string_view::npos && bytes.size() - length > kNumpyMagic.size() &&
           text_at(bytes, length + 1, kNumpyMagic.size()) == kNumpyMagic;
}

Module read_nqx(Bytes bytes, const std::string& name_for_errors) {
    if (!looks_like_nqx(bytes)) fail(Status::format, name_for_errors, ": not a model file of Nequix");
    return NqxReader(bytes, name_for_errors).read();
}

}  // namespace mlff

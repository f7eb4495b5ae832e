// SPDX-License-Identifier: MIT
// Loads the functions of distances and directions.
#include "mace/weights/loaders.h"

namespace mlff::mace {
namespace {

constexpr int kMaxBasisCount = 4096;
constexpr int kMaxExponent = 200;

// The file has the radius of every atomic number; only those of the model's elements are kept.
std::vector<double> load_radii(const ModuleReader& reader, const std::vector<int>& atomic_numbers) {
    const std::vector<double> table = reader.values("covalent_radii");
    if (reader.tensor("covalent_radii").shape.size() != 1) reader.malformed("tensor 'covalent_radii' is not a list");
    std::vector<double> radii;
    for (int number : atomic_numbers) {
        const auto index = static_cast<size_t>(number);
        if (index >= table.size() || !(table[index] > 0))
            reader.malformed("tensor 'covalent_radii' has no radius for atomic number ", number);
        radii.push_back(table[index]);
    }
    return radii;
}

std::vector<double> load_basis_list(const ModuleReader& reader, std::string_view name) {
    const Tensor& tensor = reader.tensor(name);
    if (tensor.shape.size() != 1 || tensor.shape[0] < 1 || tensor.shape[0] > kMaxBasisCount)
        reader.malformed("tensor '", name, "' has shape ", shape_text(tensor.shape), ", expected a list");
    return reader.values(name);
}

void load_basis(const ModuleReader& reader, RadialEmbedding& radial) {
    if (reader.is("BesselBasis")) {
        radial.basis = RadialEmbedding::Basis::bessel;
        radial.parameters = load_basis_list(reader, "bessel_weights");
        radial.factor = reader.number("prefactor");
        radial.basis_count = static_cast<int>(radial.parameters.size());
    } else if (reader.is("GaussianBasis")) {
        radial.basis = RadialEmbedding::Basis::gaussian;
        radial.parameters = load_basis_list(reader, "gaussian_weights");
        radial.factor = reader.number("coeff");
        radial.basis_count = static_cast<int>(radial.parameters.size());
    } else if (reader.is("ChebychevBasis")) {
        radial.basis = RadialEmbedding::Basis::chebyshev;
        radial.basis_count = reader.integer("num_basis", 1, kMaxBasisCount);
    } else {
        reader.unsupported("radial basis ", reader.class_name(), " is not implemented");
    }
}

void load_transform(const ModuleReader& reader, const std::vector<int>& atomic_numbers, RadialEmbedding& radial) {
    if (reader.is("AgnesiTransform")) {
        radial.transform = RadialEmbedding::Transform::agnesi;
        radial.a = reader.number("a");
        radial.p = reader.number("p");
        radial.q = reader.number("q");
    } else if (reader.is("SoftTransform") && reader.find_number("alpha")) {
        radial.transform = RadialEmbedding::Transform::soft;
        radial.alpha = reader.number("alpha");
    } else if (reader.is("SoftTransform")) {
        radial.transform = RadialEmbedding::Transform::soft_2023;
        radial.a = reader.number("a");
        radial.b = reader.number("b");
    } else {
        reader.unsupported("distance transform ", reader.class_name(), " is not implemented");
    }
    radial.radii = load_radii(reader, atomic_numbers);
}

}  // namespace

RadialEmbedding load_radial_embedding(const ModuleReader& reader, const std::vector<int>& atomic_numbers) {
    if (!reader.is("RadialEmbeddingBlock")) reader.unsupported("class ", reader.class_name(), " is not implemented");
    reader.expect_children({"bessel_fn", "cutoff_fn", "distance_transform"});
    RadialEmbedding radial;
    load_basis(reader.at("bessel_fn"), radial);
    if (const auto transform = reader.find("distance_transform")) load_transform(*transform, atomic_numbers, radial);
    const ModuleReader cutoff = reader.at("cutoff_fn");
    if (!cutoff.is("PolynomialCutoff")) cutoff.unsupported("cutoff ", cutoff.class_name(), " is not implemented");
    radial.cutoff.radius = cutoff.positive("r_max");
    radial.cutoff.exponent = cutoff.integer("p", 1, kMaxExponent);
    radial.cutoff_in_basis = reader.flag("apply_cutoff", true);
    return radial;
}

PairRepulsion load_repulsion(const ModuleReader& reader, const std::vector<int>& atomic_numbers) {
    if (!reader.is("ZBLBasis")) reader.unsupported("pair repulsion ", reader.class_name(), " is not implemented");
    PairRepulsion repulsion;
    const std::vector<double> coefficients = reader.values("c", {4});
    std::copy(coefficients.begin(), coefficients.end(), repulsion.coefficients.begin());
    repulsion.prefactor = reader.positive("a_prefactor");
    repulsion.exponent = reader.number("a_exp");
    repulsion.cutoff_exponent = reader.integer("p", 1, kMaxExponent);
    repulsion.radii = load_radii(reader, atomic_numbers);
    return repulsion;
}

Irreps load_harmonics(const ModuleReader& reader) {
    if (!reader.is("SphericalHarmonics")) reader.unsupported("class ", reader.class_name(), " is not implemented");
    const Irreps harmonics = reader.irreps("irreps_out");
    for (int l = 0; l < harmonics.block_count(); ++l)
        if (harmonics[l].multiplicity != 1 || harmonics[l].irrep.degree != l)
            reader.unsupported("harmonics '", harmonics.text(), "', expected one of each degree from 0 on");
    if (harmonics.block_count() == 0 || !harmonics[0].irrep.is_scalar()) reader.malformed("has no harmonics");
    const JsonValue* normalization = reader.attribute("normalization");
    if (normalization && *normalization != "component")
        reader.unsupported("harmonics with a normalisation other than 'component' are not implemented");
    if (!reader.flag("normalize", true))
        reader.unsupported("harmonics of vectors that are not normalised are not implemented");
    return harmonics;
}

}  // namespace mlff::mace

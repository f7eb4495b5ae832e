// SPDX-License-Identifier: MIT
#include "tools/ipi/protocol.h"

#include <array>

#include "core/error.h"
#include "tools/ipi/units.h"

namespace mlff::ipi {
namespace {

constexpr size_t kHeaderLength = 12;
constexpr int32_t kLongestText = 1 << 20;

template <class Value>
Value read_value(Connection& connection) {
    Value value{};
    connection.read(&value, sizeof value);
    return value;
}

template <class Value>
void append(std::string& message, const Value& value) {
    message.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string padded(const std::string& name) {
    std::string header = name;
    header.resize(kHeaderLength, ' ');
    return header;
}

}  // namespace

std::string read_header(Connection& connection) {
    std::string header(kHeaderLength, ' ');
    connection.read(header.data(), kHeaderLength);
    const size_t last = header.find_last_not_of(' ');
    return header.substr(0, last == std::string::npos ? 0 : last + 1);
}

void write_header(Connection& connection, const std::string& name) {
    connection.write(padded(name).data(), kHeaderLength);
}

Init read_init(Connection& connection) {
    Init init;
    init.bead = read_value<int32_t>(connection);
    const auto length = read_value<int32_t>(connection);
    if (length < 0 || length > kLongestText)
        fail(Status::format, "the i-PI server sent an INIT with a text of ", length, " characters");
    init.text.resize(static_cast<size_t>(length));
    connection.read(init.text.data(), init.text.size());
    return init;
}

void read_positions(Connection& connection, int64_t expected_count, Positions& positions) {
    const auto columns = read_value<std::array<double, 9>>(connection);
    read_value<std::array<double, 9>>(connection);  // the inverse cell, not needed
    const auto count = read_value<int32_t>(connection);
    if (count != expected_count)
        fail(Status::system, "the i-PI server sent ", count, " atoms, expected ", expected_count);
    for (size_t vector = 0; vector < 3; ++vector)
        for (size_t axis = 0; axis < 3; ++axis) positions.cell[vector][axis] = columns[3 * axis + vector] * kBohr;
    positions.positions.resize(static_cast<size_t>(3 * expected_count));
    connection.read(positions.positions.data(), positions.positions.size() * sizeof(double));
    for (double& coordinate : positions.positions) coordinate *= kBohr;
}

void write_forces(Connection& connection, double energy, const std::vector<double>& forces, const Mat3& virial) {
    std::string message = padded("FORCEREADY");  // one write for everything: the server waits for it
    message.reserve(kHeaderLength + 8 * (forces.size() + 10) + 8);
    append(message, energy / kHartree);
    append(message, static_cast<int32_t>(forces.size() / 3));
    for (const double force : forces) append(message, force / kForceUnit);
    for (size_t column = 0; column < 3; ++column)
        for (size_t row = 0; row < 3; ++row) append(message, virial[row][column] / kHartree);
    append(message, int32_t{0});  // no extra text
    connection.write(message.data(), message.size());
}

}  // namespace mlff::ipi

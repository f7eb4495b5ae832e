// SPDX-License-Identifier: MIT
// Reads pickles as data, without running anything. A pickle is a program for a small stack machine. This reader runs
// the machine, but a GLOBAL is only a name and is never imported, a call is only a record of what would be called, and
// a persistent id is a record of its argument. Whatever the bytes contain, the result is a graph of inert nodes.
//
// Nodes live in one array and refer to each other by index, so cycles, deep nesting and shared nodes are harmless here.
// Code that walks the graph must limit its depth and its number of steps.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"

namespace mlff {

enum class PickleKind : uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    bytes,
    tuple,
    list,
    dict,  // items: key, value, key, value ...
    set,
    global,      // text: "module.name"
    object,      // callable(arguments); possibly a state, and items that were appended or set
    persistent,  // arguments: the persistent id
};

using PickleId = uint32_t;

struct PickleNode {
    PickleKind kind = PickleKind::none;
    PickleId callable = 0;
    PickleId arguments = 0;
    PickleId state = 0;  // set by BUILD; node 0 (None) if not set
    int64_t integer = 0;
    double real = 0;
    std::string_view text;  // text, bytes, or the name of a global
    std::vector<PickleId> items;
};

class Pickle;

// A node and the graph it belongs to. Cheap to copy; valid while the Pickle lives.
class PickleValue {
public:
    PickleValue() = default;
    PickleValue(const Pickle* graph, PickleId id) : graph_(graph), id_(id) {}

    PickleId id() const { return id_; }
    PickleKind kind() const { return node().kind; }
    bool is(PickleKind kind) const { return node().kind == kind; }
    bool is_none() const { return is(PickleKind::none); }
    bool is_global(std::string_view name) const { return is(PickleKind::global) && node().text == name; }

    int64_t integer() const { return node().integer; }
    bool boolean() const { return node().integer != 0; }
    double real() const { return node().real; }
    std::string_view text() const { return node().text; }

    size_t size() const { return node().items.size(); }  // for a dict: twice the number of entries
    PickleValue operator[](size_t i) const { return {graph_, node().items[i]}; }

    PickleValue callable() const { return {graph_, node().callable}; }
    PickleValue arguments() const { return {graph_, node().arguments}; }
    PickleValue state() const { return {graph_, node().state}; }
    std::string_view class_name() const;  // for an object whose callable is a global, else ""

    // The value for a text key of a dict; None if this is not a dict or has no such key.
    PickleValue get(std::string_view key) const;
    bool has(std::string_view key) const;

private:
    const PickleNode& node() const;
    const Pickle* graph_ = nullptr;
    PickleId id_ = 0;
};

class Pickle {
public:
    // Keeps a view of `bytes`. Throws Error{format}; messages begin with `name_for_errors`.
    Pickle(Bytes bytes, const std::string& name_for_errors);
    Pickle(const Pickle&) = delete;
    Pickle& operator=(const Pickle&) = delete;

    PickleValue root() const { return {this, root_}; }
    const PickleNode& node(PickleId id) const { return nodes_[id]; }

private:
    friend class PickleMachine;
    std::deque<PickleNode> nodes_;
    std::deque<std::string> owned_text_;  // text that does not occur verbatim in the pickle
    PickleId root_ = 0;
};

}  // namespace mlff

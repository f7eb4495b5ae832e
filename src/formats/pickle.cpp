// SPDX-License-Identifier: MIT
#include "formats/pickle.h"

#include <limits>
#include <unordered_map>

#include "core/error.h"
#include "formats/little_endian.h"

namespace mlff {
namespace {

constexpr size_t kMaxNodes = 4'000'000;
constexpr size_t kMaxStack = 64'000'000;
constexpr PickleId kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3;

// Text in a pickle is UTF-8. `_codecs.encode(text, "latin1")` stands for bytes whose values are the code points.
bool latin1_bytes(std::string_view utf8, std::string& bytes) {
    bytes.clear();
    bytes.reserve(utf8.size());
    for (size_t i = 0; i < utf8.size(); ++i) {
        const auto lead = static_cast<unsigned char>(utf8[i]);
        if (lead < 0x80) {
            bytes.push_back(static_cast<char>(lead));
            continue;
        }
        if ((lead != 0xc2 && lead != 0xc3) || i + 1 == utf8.size()) return false;
        const auto tail = static_cast<unsigned char>(utf8[++i]);
        if ((tail & 0xc0) != 0x80) return false;
        bytes.push_back(static_cast<char>(((lead & 3) << 6) | (tail & 0x3f)));
    }
    return true;
}

}  // namespace

class PickleMachine {
public:
    PickleMachine(Pickle& graph, Bytes bytes, const std::string& name)
        : graph_(graph), bytes_(bytes), name_(name), copy_budget_(8 * bytes.size() + 4096) {}

    void run() {
        graph_.nodes_.resize(4);
        node(kFalse).kind = node(kTrue).kind = PickleKind::boolean;
        node(kTrue).integer = 1;
        node(kEmptyTuple).kind = PickleKind::tuple;
        while (!stopped_) {
            opcode_offset_ = at_;
            step(static_cast<unsigned char>(take(1)[0]));
        }
        if (stack_.size() != 1 || !marks_.empty()) broken("it ends with ", stack_.size(), " values, expected one");
        graph_.root_ = stack_[0];
    }

private:
    template <class... Parts>
    [[noreturn]] void broken(const Parts&... parts) const {
        fail(Status::format, name_, ": damaged pickle at byte ", opcode_offset_, ": ", parts...);
    }

    // ---- bytes ----
    std::string_view take(size_t count) {
        if (count > bytes_.size() - at_) broken("it ends in the middle of an instruction");
        at_ += count;
        return text_at(bytes_, at_ - count, count);
    }
    template <class T>
    T number() {
        take(sizeof(T));
        return load_le<T>(bytes_, at_ - sizeof(T));
    }
    template <class Length>
    std::string_view counted() {
        const auto length = number<Length>();
        if (length > bytes_.size() - at_) broken("a text of ", length, " bytes runs past the end of the pickle");
        return take(static_cast<size_t>(length));
    }
    std::string_view line() {
        const auto rest = text_at(bytes_, at_, bytes_.size() - at_);
        const size_t length = rest.find('\n');
        if (length == std::string_view::npos) broken("a name has no end");
        at_ += length + 1;
        return rest.substr(0, length);
    }

    // ---- nodes ----
    PickleNode& node(PickleId id) { return graph_.nodes_[id]; }
    PickleId add(PickleKind kind) {
        if (graph_.nodes_.size() >= kMaxNodes) broken("more than ", kMaxNodes, " values");
        graph_.nodes_.emplace_back().kind = kind;
        return static_cast<PickleId>(graph_.nodes_.size() - 1);
    }
    // Only copies let a few instructions create much data, so copies are limited by the size of the pickle.
    void spend(size_t bytes) {
        if (bytes > copy_budget_) broken("it copies the same data too often");
        copy_budget_ -= bytes;
    }
    std::string_view own(std::string text) {
        spend(text.size());
        return graph_.owned_text_.emplace_back(std::move(text));
    }
    PickleId add_text(PickleKind kind, std::string_view text) {
        const PickleId id = add(kind);
        node(id).text = text;
        return id;
    }
    PickleId add_integer(int64_t value) {
        const PickleId id = add(PickleKind::integer);
        node(id).integer = value;
        node(id).real = static_cast<double>(value);
        return id;
    }
    PickleId add_global(std::string_view module, std::string_view name) {
        std::string full = std::string(module) + "." + std::string(name);
        const auto found = globals_.find(full);
        if (found != globals_.end()) return found->second;
        const PickleId id = add(PickleKind::global);
        node(id).text = own(full);
        globals_.emplace(std::move(full), id);
        return id;
    }

    // ---- stack ----
    void push(PickleId id) {
        if (stack_.size() >= kMaxStack) broken("its stack is too deep");
        stack_.push_back(id);
    }
    size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
    PickleId pop() {
        if (stack_.size() <= floor()) broken("it takes a value from an empty stack");
        const PickleId id = stack_.back();
        stack_.pop_back();
        return id;
    }
    PickleId top() {
        if (stack_.size() <= floor()) broken("it uses a value of an empty stack");
        return stack_.back();
    }
    std::vector<PickleId> pop_to_mark() {
        if (marks_.empty()) broken("a mark is missing");
        std::vector<PickleId> items(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
        stack_.resize(marks_.back());
        marks_.pop_back();
        return items;
    }

    // ---- instructions ----
    void push_tuple(std::vector<PickleId> items) {
        if (items.empty()) return push(kEmptyTuple);
        const PickleId id = add(PickleKind::tuple);
        node(id).items = std::move(items);
        push(id);
    }
    void push_tuple_of(size_t count) {
        std::vector<PickleId> items(count);
        for (size_t i = count; i-- > 0;) items[i] = pop();
        push_tuple(std::move(items));
    }
    void append(const std::vector<PickleId>& items, PickleKind plain_kind) {
        PickleNode& target = node(top());
        if (target.kind != plain_kind && target.kind != PickleKind::object)
            broken("it appends to something that is not a list");
        target.items.insert(target.items.end(), items.begin(), items.end());
    }
    void set_items(const std::vector<PickleId>& items) {
        if (items.size() % 2 != 0) broken("a key has no value");
        append(items, PickleKind::dict);
    }
    // Carries out calls that only create plain data; keeps every other call as a record.
    void push_call(PickleId callable, PickleId arguments) {
        if (node(arguments).kind != PickleKind::tuple) broken("the arguments of a call are not a tuple");
        const std::string_view name =
            node(callable).kind == PickleKind::global ? node(callable).text : std::string_view();
        const std::vector<PickleId>& given = node(arguments).items;
        if (name == "collections.OrderedDict" && given.empty()) return push(add(PickleKind::dict));
        if ((name == "__builtin__.set" || name == "builtins.set") && given.size() <= 1) {
            if (!given.empty() && node(given[0]).kind != PickleKind::list) broken("a set that is not made from a list");
            const PickleId id = add(PickleKind::set);
            if (!given.empty()) {
                spend(node(given[0]).items.size() * sizeof(PickleId));
                node(id).items = node(given[0]).items;
            }
            return push(id);
        }
        if (name == "_codecs.encode" && given.size() == 2 && node(given[0]).kind == PickleKind::text) {
            std::string bytes;
            if (!latin1_bytes(node(given[0]).text, bytes)) broken("bytes are not encoded as latin1");
            return push(add_text(PickleKind::bytes, own(std::move(bytes))));
        }
        const PickleId id = add(PickleKind::object);
        node(id).callable = callable;
        node(id).arguments = arguments;
        push(id);
    }
    void call() {
        const PickleId arguments = pop();
        push_call(pop(), arguments);
    }
    void call_with_keywords() {
        const PickleId keywords = pop();
        call();
        if (node(keywords).kind == PickleKind::dict && !node(keywords).items.empty()) node(top()).state = keywords;
    }
    void build() {
        const PickleId state = pop();
        const PickleKind kind = node(top()).kind;
        if (kind != PickleKind::object && kind != PickleKind::dict)
            broken("it sets the state of something that has none");
        node(top()).state = state;
    }
    void stack_global() {
        const PickleId name = pop(), module = pop();
        if (node(name).kind != PickleKind::text || node(module).kind != PickleKind::text)
            broken("the name of a global is not text");
        spend(node(module).text.size() + node(name).text.size());
        push(add_global(node(module).text, node(name).text));
    }
    void push_long(std::string_view digits) {  // little-endian two's complement
        if (digits.size() > 8)
            return push(add_text(PickleKind::bytes, digits));  // wider than any integer a model needs
        uint64_t value = 0;
        for (size_t i = 0; i < digits.size(); ++i)
            value |= static_cast<uint64_t>(static_cast<unsigned char>(digits[i])) << (8 * i);
        const size_t bits = 8 * digits.size();
        if (bits > 0 && bits < 64 && (value >> (bits - 1)) & 1) value |= ~uint64_t{0} << bits;
        push(add_integer(static_cast<int64_t>(value)));
    }
    void push_float() {  // big-endian, unlike all other numbers
        const PickleId id = add(PickleKind::real);
        take(8);
        uint64_t bits = byte_swapped(load_le<uint64_t>(bytes_, at_ - 8));
        node(id).real = std::bit_cast<double>(bits);
        push(id);
    }
    void remember(uint64_t slot) {
        if (slot > kMaxNodes) broken("memo slot ", slot, " is beyond the limit of ", kMaxNodes);
        memo_[static_cast<uint32_t>(slot)] = top();
    }
    void recall(uint64_t slot) {
        const auto found = slot > kMaxNodes ? memo_.end() : memo_.find(static_cast<uint32_t>(slot));
        if (found == memo_.end()) broken("memo slot ", slot, " is empty");
        push(found->second);
    }
    void push_container(PickleKind kind) { push(add(kind)); }

    void step(unsigned char opcode) {
        switch (opcode) {
            case 0x80: {  // PROTO
                const auto protocol = number<uint8_t>();
                if (protocol < 2 || protocol > 5) broken("pickle protocol ", int{protocol}, ", expected 2 to 5");
                return;
            }
            case 0x95: take(8); return;  // FRAME
            case '.': stopped_ = true; return;
            case '(': marks_.push_back(stack_.size()); return;
            case '0': pop(); return;
            case '1': pop_to_mark(); return;
            case '2': push(top()); return;

            case 'N': return push(kNone);
            case 0x88: return push(kTrue);
            case 0x89: return push(kFalse);
            case 'J': return push(add_integer(number<int32_t>()));
            case 'K': return push(add_integer(number<uint8_t>()));
            case 'M': return push(add_integer(number<uint16_t>()));
            case 0x8a: return push_long(counted<uint8_t>());
            case 0x8b: return push_long(counted<uint32_t>());
            case 'G': return push_float();

            case 'X': return push(add_text(PickleKind::text, counted<uint32_t>()));
            case 0x8c: return push(add_text(PickleKind::text, counted<uint8_t>()));
            case 0x8d: return push(add_text(PickleKind::text, counted<uint64_t>()));
            case 'T': return push(add_text(PickleKind::text, counted<uint32_t>()));
            case 'U': return push(add_text(PickleKind::text, counted<uint8_t>()));
            case 'B': return push(add_text(PickleKind::bytes, counted<uint32_t>()));
            case 'C': return push(add_text(PickleKind::bytes, counted<uint8_t>()));
            case 0x8e: return push(add_text(PickleKind::bytes, counted<uint64_t>()));
            case 0x96: return push(add_text(PickleKind::bytes, counted<uint64_t>()));

            case ')': return push(kEmptyTuple);
            case 't': return push_tuple(pop_to_mark());
            case 0x85: return push_tuple_of(1);
            case 0x86: return push_tuple_of(2);
            case 0x87: return push_tuple_of(3);
            case ']': return push_container(PickleKind::list);
            case '}': return push_container(PickleKind::dict);
            case 0x8f: return push_container(PickleKind::set);
            case 'a': return append({pop()}, PickleKind::list);
            case 'e': return append(pop_to_mark(), PickleKind::list);
            case 0x90: return append(pop_to_mark(), PickleKind::set);
            case 's': {
                const PickleId value = pop(), key = pop();
                return set_items({key, value});
            }
            case 'u': return set_items(pop_to_mark());
            case 0x91: {  // FROZENSET
                auto items = pop_to_mark();
                const PickleId id = add(PickleKind::set);
                node(id).items = std::move(items);
                return push(id);
            }

            case 'c': {
                const std::string_view module = line(), name = line();
                return push(add_global(module, name));
            }
            case 0x93: return stack_global();
            case 'R': return call();   // REDUCE
            case 0x81: return call();  // NEWOBJ
            case 0x92: return call_with_keywords();
            case 'b': return build();
            case 'Q': {
                const PickleId persistent = pop();
                const PickleId id = add(PickleKind::persistent);
                node(id).arguments = persistent;
                return push(id);
            }

            case 'q': return remember(number<uint8_t>());
            case 'r': return remember(number<uint32_t>());
            case 0x94: return remember(memo_.size());
            case 'h': return recall(number<uint8_t>());
            case 'j': return recall(number<uint32_t>());
            default: broken("instruction 0x", std::hex, int{opcode}, " is not supported; torch does not write it");
        }
    }

    Pickle& graph_;
    Bytes bytes_;
    const std::string& name_;
    size_t at_ = 0;
    size_t opcode_offset_ = 0;
    size_t copy_budget_;
    bool stopped_ = false;
    std::vector<PickleId> stack_;
    std::vector<size_t> marks_;
    std::unordered_map<uint32_t, PickleId> memo_;
    std::unordered_map<std::string, PickleId> globals_;
};

Pickle::Pickle(Bytes bytes, const std::string& name_for_errors) { PickleMachine(*this, bytes, name_for_errors).run(); }

const PickleNode& PickleValue::node() const { return graph_->node(id_); }

std::string_view PickleValue::class_name() const {
    return is(PickleKind::object) && callable().is(PickleKind::global) ? callable().text() : std::string_view();
}

PickleValue PickleValue::get(std::string_view key) const {
    if (is(PickleKind::dict))
        for (size_t i = 0; i + 1 < size(); i += 2)
            if ((*this)[i].is(PickleKind::text) && (*this)[i].text() == key) return (*this)[i + 1];
    return {graph_, kNone};
}

bool PickleValue::has(std::string_view key) const {
    if (is(PickleKind::dict))
        for (size_t i = 0; i + 1 < size(); i += 2)
            if ((*this)[i].is(PickleKind::text) && (*this)[i].text() == key) return true;
    return false;
}

}  // namespace mlff

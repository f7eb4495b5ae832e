// SPDX-License-Identifier: MIT
#include "tools/fetch/address.h"

#include <algorithm>
#include <string_view>

#include "core/error.h"

namespace mlff::fetch {
namespace {

constexpr size_t kLongestAddress = 4096;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Characters that programs may read differently are in none of the addresses we follow.
bool is_address_character(char c) {
    return c > 0x20 && c < 0x7f && std::string_view("\"<>\\^`{|}").find(c) == std::string_view::npos;
}

// "github.com", "127.0.0.1:8000" or "[::1]:8000"; the host to `host`.
bool is_authority(const std::string& authority, std::string& host) {
    const size_t end = authority.starts_with('[') ? authority.find(']') + 1 : authority.find(':');
    host = authority.substr(0, end);
    const std::string port = end < authority.size() ? authority.substr(end) : "";
    const auto is_host_character = [](char c) {
        return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
    };
    const auto is_v6_character = [](char c) { return is_letter(c) || is_digit(c) || c == ':' || c == '.'; };
    const bool is_host = host.starts_with('[')
                             ? host.size() > 2 && std::all_of(host.begin() + 1, host.end() - 1, is_v6_character)
                             : !host.empty() && std::all_of(host.begin(), host.end(), is_host_character);
    const bool is_port = port.empty() || (port.size() >= 2 && port.size() <= 6 && port[0] == ':' &&
                                          std::all_of(port.begin() + 1, port.end(), is_digit));
    return is_host && is_port;
}

}  // namespace

std::string Address::file_name() const {
    const std::string path = rest.substr(0, rest.find('?'));
    return path.substr(path.rfind('/') + 1);
}

Address parse_address(const std::string& text) {
    const auto refuse = [&](const char* why) { fail(Status::argument, "address '", text, "': ", why); };
    if (text.size() > kLongestAddress) refuse("it is too long");
    if (!std::all_of(text.begin(), text.end(), is_address_character)) refuse("it has characters that no address has");
    Address address;
    const size_t colon = text.find("://");
    if (colon == std::string::npos) refuse("expected https://...");
    address.scheme = text.substr(0, colon);
    if (address.scheme != "https" && address.scheme != "http") refuse("expected https://...");
    const std::string after = text.substr(colon + 3, text.find('#') - (colon + 3));
    address.authority = after.substr(0, after.find_first_of("/?"));
    address.rest = after.substr(address.authority.size());
    if (!address.rest.starts_with('/')) address.rest.insert(0, 1, '/');
    if (address.authority.find('@') != std::string::npos) refuse("it has a user name, which would be stored and shown");
    std::string host;
    if (!is_authority(address.authority, host)) refuse("it names no host");
    address.is_loopback = host == "127.0.0.1" || host == "[::1]" || host == "localhost";
    if (address.scheme == "http" && !address.is_loopback) refuse("expected https, not http");
    return address;
}

Address redirected(const Address& from, const std::string& location) {
    std::string text = location;
    if (location.starts_with("//"))
        text = from.scheme + ":" + location;
    else if (location.starts_with('/'))
        text = from.scheme + "://" + from.authority + location;
    else if (location.substr(0, location.find_first_of("/?#")).find(':') == std::string::npos)  // beside the file
        text = from.scheme + "://" + from.authority +
               from.rest.substr(0, from.rest.substr(0, from.rest.find('?')).rfind('/') + 1) + location;
    Address target;
    try {
        target = parse_address(text);
    } catch (const Error& error) {
        fail(Status::file, from.text(), ": redirects where mlff does not follow: ", error.what());
    }
    if (target.is_loopback && !from.is_loopback)
        fail(Status::file, from.text(), ": redirects to this machine, '", text, "', where mlff does not follow");
    return target;
}

}  // namespace mlff::fetch

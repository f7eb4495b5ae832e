// SPDX-License-Identifier: MIT
#include "engine/load_model.h"

#include <algorithm>
#include <filesystem>

#include "committee/member_list.h"
#include "committee/model.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/committee_name.h"
#include "engine/families.h"
#include "engine/model_cache.h"
#include "engine/model_names.h"
#include "engine/trust_files.h"
#include "python_models/model_name.h"
#include "sum/model.h"

namespace mlff {
namespace {

namespace fs = std::filesystem;

const ModelFamily* family_of_name(const std::string& name) {
    const auto found = std::find_if(model_families().begin(), model_families().end(),
                                    [&](const ModelFamily& family) { return family.has_name(name); });
    return found == model_families().end() ? nullptr : &*found;
}

std::shared_ptr<Model> open_model_file(const std::string& path) {
    if (is_member_list(MappedFile::open(path)->text()))
        fail(Status::unsupported, path, ": a committee cannot be a part of a sum or of another committee");
    for (const ModelFamily& family : model_families())
        if (family.open_file)
            if (auto model = family.open_file(path)) return model;
    fail(Status::format, path, ": no family of models has such files");
}

// A model of one file, or without a file.
std::shared_ptr<const Model> load_single(const std::string& name) {
    if (const ModelFamily* family = family_of_name(name)) return family->make_named(name);
    const std::string path = find_model_file(name);
    const std::shared_ptr<Model> model = open_model_file(path);
    add_trust_meter(*model, path);
    return model;
}

std::shared_ptr<const Model> load_terms(const std::vector<std::string>& terms, const std::string& name) {
    if (terms.size() == 1) return load_single(terms.front());
    std::vector<std::shared_ptr<const Model>> models;
    for (const std::string& term : terms) models.push_back(load_single(term));
    return make_sum_model(std::move(models), name);
}

// Anything but a committee.
std::shared_ptr<const Model> load_part(const std::string& name) {
    return load_terms(is_sum_name(name) ? split_terms(name) : std::vector{name}, name);
}

std::shared_ptr<const Model> load_named_committee(const std::vector<std::string>& names, const std::string& name) {
    if (names.size() > kMostMembers)
        fail(Status::argument, "model '", name, "': a committee of ", names.size(), " members, expected ", kMostMembers,
             " at most");
    std::vector<CommitteeMember> members;
    for (const std::string& member : names) {
        if (member.empty()) fail(Status::argument, "model '", name, "': a ',' has no model beside it");
        members.push_back({member, load_part(member)});
    }
    return make_committee_model(members, name);
}

// A list of members names files in its own folder, models without a file, and models of the cache; not what happens to
// be in the folder of the process. Nothing in a file is executed, so it names no programs.
bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error) && !fs::is_directory(path, error);
}
std::string beside_list(const fs::path& folder, const std::string& name) {
    const fs::path path = folder / name;
    if (is_file(path)) return path.string();
    if (python::is_python_name(name))
        fail(Status::unsupported, "a list of members cannot have the Python model '", name,
             "': nothing in a file is executed. Name the members themselves, as A,B");
    if (family_of_name(name)) return name;
    if (const ModelCache cache; is_model_name(name) && cache.contains(name)) return cache.verified_path(name);
    fail(Status::file, path.string(), ": there is no such file, and no model '", name, "' in the model cache");
}

std::shared_ptr<const Model> load_listed_committee(const MappedFile& file, const std::string& path) {
    const fs::path folder = fs::absolute(path).parent_path();
    std::vector<CommitteeMember> members;
    for (const ListedMember& listed : parse_member_list(file.text(), path)) {
        std::vector<std::string> terms = {listed.name};
        if (!is_file(folder / listed.name)) terms = split_terms(listed.name);
        for (std::string& term : terms) term = beside_list(folder, term);
        members.push_back({listed.name, load_terms(terms, listed.name), listed.weight});
    }
    return make_committee_model(members, path);
}

}  // namespace

std::shared_ptr<const Model> load_without_meter(const std::string& name) {
    if (const ModelFamily* family = family_of_name(name)) return family->make_named(name);
    return open_model_file(find_model_file(name));
}

std::shared_ptr<const Model> load_model(const std::string& name) {
    if (const auto members = committee_members(name); !members.empty()) return load_named_committee(members, name);
    if (is_model_without_file(name)) return load_part(name);
    const std::string path = find_model_file(name);
    if (const auto file = MappedFile::open(path); is_member_list(file->text()))
        return load_listed_committee(*file, path);
    return load_part(path);
}

}  // namespace mlff

// SPDX-License-Identifier: MIT
#include "engine/released_models.h"

#include <algorithm>

#include "core/bytes_text.h"
#include "core/error.h"

namespace mlff {
namespace {

constexpr const char* kMaterials = "Batatia et al., arXiv:2401.00096";
constexpr const char* kOrganic = "Kovacs et al., arXiv:2312.15211";
constexpr const char* kMultiHead = "Batatia et al., arXiv:2510.25380";

std::string mp(const char* path) { return concat("https://github.com/ACEsuit/mace-mp/releases/download/", path); }
std::string foundations(const char* path) {
    return concat("https://github.com/ACEsuit/mace-foundations/releases/download/", path);
}
std::string off(const char* path) { return concat("https://raw.githubusercontent.com/ACEsuit/mace-off/main/", path); }

// The addresses are those of mace-torch (mace/calculators/foundations_models.py) and of the README of ACEsuit/mace. Its
// "large" is the older of two files that are called so. The SHA-256 of small, mpa-0-medium, mh-0 and off23-small are
// those of mace-torch's own tests, as in tools/verify/known_answers.json. The others are what at least two public
// projects that share no code have written down after downloading the file; where there is only one, or they disagree,
// none is claimed. Sizes stand beside the same SHA-256.
std::vector<ReleasedModel> make_table() {
    return {
        {"small",
         {"mp-0-small", "mace-mp-0-small"},
         "MACE-MP-0 small",
         mp("mace_mp_0/2023-12-10-mace-128-L0_energy_epoch-249.model"),
         32'581'838,
         "2ddb079cee0e131eaaf6912ba581b394551ead283e95c99cfe78c605d10b5736",
         "MIT",
         "PBE+U",
         kMaterials},
        {"medium",
         {"mp-0-medium", "mace-mp-0-medium"},
         "MACE-MP-0 medium",
         mp("mace_mp_0/2023-12-03-mace-128-L1_epoch-199.model"),
         44'422'970,
         "01bfe22100139f424713cf921144e5509cbe353d67aa9fa1be9c6e1e0ed35845",
         "MIT",
         "PBE+U",
         kMaterials},
        {"large",
         {"mp-0-large", "mace-mp-0-large"},
         "MACE-MP-0 large",
         mp("mace_mp_0/MACE_MPtrj_2022.9.model"),
         133'803'220,
         "f80e992b65ab8f88fdf26964511357c022e92704e4d9bcd086652635a8495b32",
         "MIT",
         "PBE+U",
         kMaterials},
        {"small-0b",
         {"mp-0b-small", "mace-mp-0b-small"},
         "MACE-MP-0b small",
         mp("mace_mp_0b/mace_agnesi_small.model"),
         67'603'120,
         "7e3a0abcaf41e03a80e69f778e1b11b29de1cca704783dc25917a736392f8cf0",
         "MIT",
         "PBE+U",
         kMaterials},
        {"medium-0b",
         {"mp-0b-medium", "mace-mp-0b-medium"},
         "MACE-MP-0b medium",
         mp("mace_mp_0b/mace_agnesi_medium.model"),
         79'447'096,
         "ab8baff639a8f295f3eccad3d3ccf574efb6fb63220bd52cd88664211569e521",
         "MIT",
         "PBE+U",
         kMaterials},
        {"small-0b2",
         {"mp-0b2-small", "mace-mp-0b2-small"},
         "MACE-MP-0b2 small",
         mp("mace_mp_0b2/mace-small-density-agnesi-stress.model"),
         67'622'684,
         "d5773bf9440e96d6eb8c598f84bd0e6369fcfa432f626a87f890e07da3c651c9",
         "MIT",
         "PBE+U",
         kMaterials},
        {"medium-0b2",
         {"mp-0b2-medium", "mace-mp-0b2-medium"},
         "MACE-MP-0b2 medium",
         mp("mace_mp_0b2/mace-medium-density-agnesi-stress.model"),
         79'462'798,
         "a90be07c8aa6623c390fcc4653d3e319c4a356f8b4a53d323f96b2012d375caf",
         "MIT",
         "PBE+U",
         kMaterials},
        {"large-0b2",
         {"mp-0b2-large", "mace-mp-0b2-large"},
         "MACE-MP-0b2 large",
         mp("mace_mp_0b2/mace-large-density-agnesi-stress.model"),
         98'544'548,
         "348390e758e1c90011c7675e864850f8e9c5b3e7c217f79a2b4bad1baaa657ad",
         "MIT",
         "PBE+U",
         kMaterials},
        {"medium-0b3",
         {"mp-0b3-medium", "mace-mp-0b3-medium"},
         "MACE-MP-0b3 medium",
         mp("mace_mp_0b3/mace-mp-0b3-medium.model"),
         79'472'952,
         "2f2be696351ac9e94fbe01cdfb6f017679acdbd2db7645209ef55fec9826b012",
         "MIT",
         "PBE+U",
         kMaterials},
        {"mpa-0-medium",
         {"medium-mpa-0", "mace-mpa-0-medium"},
         "MACE-MPA-0 medium",
         mp("mace_mpa_0/mace-mpa-0-medium.model"),
         79'462'305,
         "75428afe3a1d7d8062e19bcaabd5c433623cabf308242ec9fb493e38604fb638",
         "MIT",
         "PBE+U",
         kMaterials},
        {"omat-0-small",
         {"small-omat-0", "mace-omat-0-small"},
         "MACE-OMAT-0 small",
         mp("mace_omat_0/mace-omat-0-small.model"),
         0,
         "",
         "ASL",
         "PBE+U",
         kMaterials},
        {"omat-0-medium",
         {"medium-omat-0", "mace-omat-0-medium"},
         "MACE-OMAT-0 medium",
         mp("mace_omat_0/mace-omat-0-medium.model"),
         0,
         "",
         "ASL",
         "PBE+U",
         kMaterials},
        {"matpes-pbe-0",
         {"mace-matpes-pbe-0"},
         "MACE-MATPES-PBE-0",
         foundations("mace_matpes_0/MACE-matpes-pbe-omat-ft.model"),
         79'471'284,
         "e618ad582b84239905b9c3b77ce6e9ce111b0ecd1533223a1a6aac7a696b8aa0",
         "ASL",
         "PBE",
         kMaterials},
        {"matpes-r2scan-0",
         {"mace-matpes-r2scan-0"},
         "MACE-MATPES-r2SCAN-0",
         foundations("mace_matpes_0/MACE-matpes-r2scan-omat-ft.model"),
         79'470'738,
         "8f147ecffa1d06a696e5648b13b81abda9c96fda9d0fb3faba3cd3fb27d9bba9",
         "ASL",
         "r2SCAN",
         kMaterials},
        {"mh-0",
         {"mace-mh-0"},
         "MACE-MH-0",
         foundations("mace_mh_1/mace-mh-0.model"),
         0,
         "d62ff8f293664e6556cfa49364b28ee72a70cf1e6150f3c111a578397fed609d",
         "ASL",
         "PBE, r2SCAN or wB97M, by head",
         kMultiHead},
        {"mh-1",
         {"mace-mh-1"},
         "MACE-MH-1",
         foundations("mace_mh_1/mace-mh-1.model"),
         0,
         "",
         "ASL",
         "PBE, r2SCAN or wB97M, by head",
         kMultiHead},
        {"omol-0",
         {"omol-0-extra-large", "mace-omol-0"},
         "MACE-OMOL-0 extra large",
         foundations("mace_omol_0/MACE-omol-0-extra-large-1024.model"),
         422'242'640,
         "9b64b4fd5153ca578c694abc57806d8111050de6ff652e695c9b525bc4d36469",
         "ASL",
         "wB97M-V",
         kMaterials},
        {"off23-small",
         {"mace-off23-small"},
         "MACE-OFF23 small",
         off("mace_off23/MACE-OFF23_small.model"),
         7'347'350,
         "165cce4cfec5a34b9c64d4ebf95de15d71106bb584b7291c8470f0749977c46f",
         "ASL",
         "wB97M-D3",
         kOrganic},
        {"off23-medium",
         {"mace-off23-medium"},
         "MACE-OFF23 medium",
         off("mace_off23/MACE-OFF23_medium.model"),
         0,
         "4842c52ad210d6e1f84d6cf1ffa70fae25a7e0d755ed55cf223f43913f587db7",
         "ASL",
         "wB97M-D3",
         kOrganic},
        {"off23-large",
         {"mace-off23-large"},
         "MACE-OFF23 large",
         off("mace_off23/MACE-OFF23_large.model"),
         0,
         "a29e397dbf3e7a24ac50a9b0dfc919bd5a62efa346f5895a6237b0950c1d76f4",
         "ASL",
         "wB97M-D3",
         kOrganic},
        {"off24-medium",
         {"mace-off24-medium"},
         "MACE-OFF24 medium",
         off("mace_off24/MACE-OFF24_medium.model"),
         18'375'569,
         "e5ccf5837f685899811a68754e7c994393bfd1a81720393b03c643b46c70bc69",
         "ASL",
         "wB97M-D3",
         kOrganic},
    };
}

std::string in_lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
    });
    return text;
}

// The number of letters to insert, delete or replace.
size_t edit_distance(const std::string& first, const std::string& second) {
    std::vector<size_t> row(second.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 0; i < first.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < second.size(); ++j) {
            const size_t replaced = diagonal + (first[i] == second[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

}  // namespace

const std::vector<ReleasedModel>& released_models() {
    static const std::vector<ReleasedModel> table = make_table();
    return table;
}

const ReleasedModel* find_released_model(const std::string& name) {
    for (const ReleasedModel& model : released_models())
        if (model.name == name || std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end())
            return &model;
    return nullptr;
}

const ReleasedModel* find_released_file(const std::string& sha256) {
    for (const ReleasedModel& model : released_models())
        if (!model.sha256.empty() && model.sha256 == sha256) return &model;
    return nullptr;
}

const Licence& find_licence(const std::string& name) {
    static const std::vector<Licence> licences = {
        {"MIT", "free for any use", "https://opensource.org/license/mit", false},
        {"ASL", "Academic Software License: academic, non-commercial use only", "https://github.com/gabor1/ASL", true}};
    for (const Licence& licence : licences)
        if (licence.name == name) return licence;
    fail(Status::internal, "there is no licence '", name, "' in the table of licences");
}

std::string how_to_get(const ReleasedModel& model, const std::string& name) {
    return concat("'mlff model fetch ", name, "' downloads it (", model.size > 0 ? bytes_text(model.size) + ", " : "",
                  "licence ", model.licence, "), or, offline, download ", model.address,
                  " and run: mlff model add FILE --name ", name);
}

std::vector<std::string> near_names(const std::string& name, const std::vector<std::string>& names) {
    std::vector<std::pair<size_t, std::string>> found;
    for (const std::string& candidate : names) {
        const size_t distance = edit_distance(in_lower_case(name), in_lower_case(candidate));
        if (distance <= name.size() / 3) found.emplace_back(distance, candidate);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> nearest;
    for (size_t i = 0; i < found.size() && i < 3; ++i) nearest.push_back(found[i].second);
    return nearest;
}

}  // namespace mlff

// SPDX-License-Identifier: MIT
#include "nequip/weights/weights.h"

#include "core/error.h"
#include "formats/nqx.h"
#include "formats/sevennet_checkpoint.h"
#include "nequip/weights/loaders.h"

namespace mlff::nequip {

int Weights::descriptor_count() const {
    int count = 0;
    for (const Layer& layer : layers) count += layer.gate.out.copies_of(Irrep{});
    return count;
}

bool is_nequip_module(const Module& root) {
    return root.class_path == kSevenNetClass || root.class_path == kNequixClass;
}

Description describe(const Module& root) {
    if (root.class_path == kSevenNetClass) return describe_sevennet(root);
    if (root.class_path == kNequixClass) return describe_nequix(root);
    fail(Status::unsupported, "class ", root.class_path, " is no model of SevenNet or Nequix");
}

Weights load_weights(const Module& root, int head) {
    if (root.class_path == kSevenNetClass) return load_sevennet(root, head);
    if (root.class_path != kNequixClass)
        fail(Status::unsupported, "class ", root.class_path, " is no model of SevenNet or Nequix");
    if (head != 0) fail(Status::argument, "head ", head, " of a model with one head");
    return load_nequix(root);
}

}  // namespace mlff::nequip

// SPDX-License-Identifier: MIT
// What the suites measure with.
#pragma once

#include "measure/memory_growth.h"
#include "measure/memory_meter.h"
#include "measure/sampling.h"

// The ids of processes, data directories and clusters.
#pragma once

#include <string>

namespace sluice {

// 40 hexadecimal digits, random.
std::string random_id();

}  // namespace sluice

// The versions that the server reports: --version, INFO, HELLO. A test compares the first with
// CMake's.
#pragma once

namespace sluice {

inline constexpr const char* kSluiceVersion = "0.1.0";
// The server whose behaviour this one has; client libraries choose their commands by it.
inline constexpr const char* kRedisVersion = "7.0.15";

}  // namespace sluice

// The versions that the server reports: --version, INFO, HELLO. A test compares the first with
// CMake's.
#pragma once

namespace sluice {

inline constexpr const char* kSluiceVersion = "0.1.0";
// The version of Redis whose behaviour this server has; client libraries choose commands by it.
inline constexpr const char* kRedisVersion = "7.0.15";

}  // namespace sluice

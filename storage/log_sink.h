// Where storage/ says what it does. A function of the caller's, so that storage knows no logging
// library; it must be callable from any thread and must not call back into storage.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace sluice {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
using LogSink = std::function<void(LogLevel, std::string_view)>;

}  // namespace sluice

// The callback through which storage/ logs, so that storage/ depends on no logging library. It must
// be callable from any thread and must not call back into storage/.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace sluice {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
using LogSink = std::function<void(LogLevel, std::string_view)>;

}  // namespace sluice

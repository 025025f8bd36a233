// Reports that the server is ready: the ready file, and systemd's notification socket.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"

namespace sluice {

// Writes one line "name value" each, such as "port 6379". The rename makes the file appear
// complete.
Status write_ready_file(const std::string& path,
                        const std::vector<std::pair<std::string, uint64_t>>& values);

// Whether a supervisor has set $NOTIFY_SOCKET.
bool has_notify_socket();

// Sends `state` ("READY=1", "STOPPING=1", "STATUS=...") to $NOTIFY_SOCKET; does nothing if it is
// not set.
void notify_supervisor(const std::string& state);

}  // namespace sluice

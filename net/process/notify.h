// Telling the outside that the server serves: the ready file, and systemd's notification socket.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

// One line "name value" each, such as "port 6379"; appears whole, by a rename. Empty, or the error.
std::string write_ready_file(const std::string& path,
                             const std::vector<std::pair<std::string, uint64_t>>& values);

// A supervisor has named its socket in $NOTIFY_SOCKET.
bool has_notify_socket();

// Sends `state` ("READY=1", "STOPPING=1", "STATUS=...") to $NOTIFY_SOCKET; nothing if there is
// none.
void notify_supervisor(const std::string& state);

}  // namespace sluice

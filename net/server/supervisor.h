// What the supervisor (systemd) is told of the server's life.
#pragma once

#include <string>

#include "net/config/settings.h"

namespace sluice {

// `auto` is `systemd` where there is a socket, and where there is none nobody hears either.
bool is_supervised(const Settings& settings);
// Does nothing where the server is not supervised.
void tell_supervisor(const Settings& settings, const std::string& state);

}  // namespace sluice

// Notifies the supervisor (systemd) about the server's life.
#pragma once

#include <string>

#include "net/config/settings.h"

namespace sluice {

// `auto` is the same as `systemd`: without a socket nothing is sent.
bool is_supervised(const Settings& settings);
// Does nothing if the server is not supervised.
void tell_supervisor(const Settings& settings, const std::string& state);

}  // namespace sluice

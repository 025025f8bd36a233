// A connection as text, for CLIENT LIST, ACL LOG and the log of slow commands.
#pragma once

#include <string>

#include "engine/ports/server_port.h"

namespace sluice {

// One line of CLIENT LIST, without its end.
std::string describe_client(const ClientFacts& facts);

}  // namespace sluice

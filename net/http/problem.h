// Problem details (RFC 9457): the form of every error of the HTTP side.
//
// Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "net/http/message.h"

namespace sluice {

// `code` is stable and short ("NOJOB", "BADTOKEN"), for programs; `detail` is for people.
HttpResponse problem(unsigned status, Bytes code, Bytes detail);

// For a remote client if there are no tokens.
HttpResponse loopback_only();

// A change was sent to a standby. `primary`: the address of the primary's HTTP service, or null.
HttpResponse not_primary(const nlohmann::json& primary);

// Converts an error of a command, such as "QFULL pending=3 max=3 retry_after_ms=20". Its hints
// become members; temporary errors say when to retry.
HttpResponse problem_of_error(Bytes error);

// These members alone; an empty object if the error has none.
nlohmann::json hints_of_error(Bytes error);

}  // namespace sluice

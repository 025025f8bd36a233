// Problem details (RFC 9457): what every error of the HTTP side looks like.
//
// Pure functions.
#pragma once

#include <string>

#include "net/http/message.h"

namespace sluice {

// `code` is stable and short ("NOJOB", "BADTOKEN"): programs look at it; `detail` is for people.
HttpResponse problem(unsigned status, Bytes code, Bytes detail);

// There are no tokens, and who asks is not on this machine.
HttpResponse loopback_only();

// An error of a command: "QFULL pending=3 max=3 retry_after_ms=20". Its hints become members, and
// what is to be tried again says when.
HttpResponse problem_of_error(Bytes error);

}  // namespace sluice

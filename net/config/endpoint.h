// The address of an HTTP server that this one speaks to, and headers for it, as a configuration
// gives them.
//
// Plain data and pure functions.
#pragma once

#include <string>

#include "engine/base/bytes.h"

namespace sluice {

struct HttpEndpoint {
  std::string host;    // a name or an address; IPv6 without its brackets
  std::string port;    // digits
  std::string target;  // path, perhaps with a query
  bool tls = false;    // https

  // As the Host header has it.
  std::string authority() const;
};

// http[s]://host[:port][/path]. `endpoint` holds what counts where the URL has no port, and no path
// but `/`. Empty: done; else what is wrong.
std::string parse_http_endpoint(Bytes url, HttpEndpoint& endpoint);

// Empty, or why such a header cannot be sent.
std::string check_http_header(Bytes name, Bytes value);

}  // namespace sluice

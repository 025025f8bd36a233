// The configured address of an HTTP server to which this server connects, and headers for it.
//
// Plain data and pure functions.
#pragma once

#include <string>

#include "engine/base/bytes.h"

namespace sluice {

struct HttpEndpoint {
  std::string host;    // a name or an address; IPv6 without brackets
  std::string port;    // digits
  std::string target;  // path, optionally with a query
  bool tls = false;    // https

  // In the form of the Host header.
  std::string authority() const;
};

// Parses http[s]://host[:port][/path]. `endpoint` holds the defaults for a URL without a port, and
// for one without a path or with the path `/`. Returns an empty text, or an error.
std::string parse_http_endpoint(Bytes url, HttpEndpoint& endpoint);

// Returns an empty text, or why such a header cannot be sent.
std::string check_http_header(Bytes name, Bytes value);

}  // namespace sluice

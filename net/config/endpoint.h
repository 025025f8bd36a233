// The configured address of an HTTP server to which this server connects, and headers for it.
//
// Plain data and pure functions.
#pragma once

#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"

namespace sluice {

struct HttpEndpoint {
  std::string host;    // a name or an address; IPv6 without brackets
  std::string port;    // digits
  std::string target;  // path, optionally with a query
  bool tls = false;    // https

  // In the form of the Host header.
  std::string authority() const;
};

// Parses http[s]://host[:port][/path]. `defaults`: the port of a URL without one, and the target of
// one without a path or with the path `/`. kInvalid for another URL.
Result<HttpEndpoint> parse_http_endpoint(Bytes url, HttpEndpoint defaults);

// kInvalid, with the reason, for a header that cannot be sent.
Status check_http_header(Bytes name, Bytes value);

}  // namespace sluice

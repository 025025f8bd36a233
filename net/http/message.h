// HTTP requests and responses as plain values: what handlers see. Of Beast they see the names
// alone.
//
// Plain data; one thread at a time.
#pragma once

#include <boost/beast/http/verb.hpp>
#include <optional>
#include <ostream>  // Boost's string_view uses it without including it
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

using HttpMethod = boost::beast::http::verb;
Bytes method_name(HttpMethod method);
// True for methods other than GET and HEAD.
bool is_change(HttpMethod method);

struct HttpRequest {
  HttpMethod method = HttpMethod::unknown;
  bool http_1_1 = true;
  std::string target;  // as sent
  std::string path;    // from the target, still percent-encoded
  // Decoded and in order; a name may occur several times.
  std::vector<std::pair<std::string, std::string>> query;
  // Names in lower case.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string peer;  // "127.0.0.1:5555"
  // The local address of the connection without its port: "127.0.0.1", "[::1]".
  std::string local_address;
  bool from_loopback = false;

  // The first header of this name; null if it is missing.
  const std::string* header(Bytes lower_name) const;
  size_t header_count(Bytes lower_name) const;
  const std::string* parameter(Bytes name) const;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  bool close = false;  // close the connection afterwards
};

Bytes reason_phrase(unsigned status);
// The response's head with its empty line. A stream has no length: it ends with the connection.
std::string head_text(const HttpResponse& response, bool keep_alive, bool stream);

// Percent-decoding; `plus_is_blank` is for queries. Nothing if malformed.
std::optional<std::string> percent_decode(Bytes text, bool plus_is_blank = false);
std::string percent_encode(Bytes bytes);

// Sets path and query from the target. Returns false if it is malformed or not in origin form.
bool split_target(HttpRequest& request);

}  // namespace sluice

#include "net/config/endpoint.h"

#include <algorithm>

#include "engine/base/characters.h"
#include "engine/base/limits.h"
#include "engine/base/numbers.h"

namespace sluice {

namespace {

bool is_visible(char c) { return c > ' ' && c < 0x7f; }

bool all_of(Bytes text, bool (*holds)(char)) {
  return std::all_of(text.begin(), text.end(), holds);
}

bool is_token(char c) {
  return is_letter_or_digit(c) || Bytes("!#$%&'*+-.^_`|~").find(c) != Bytes::npos;
}

}  // namespace

std::string HttpEndpoint::authority() const {
  const bool version_6 = host.find(':') != std::string::npos;
  return (version_6 ? '[' + host + ']' : host) + ':' + port;
}

Result<HttpEndpoint> parse_http_endpoint(Bytes url, HttpEndpoint endpoint) {
  constexpr Bytes kPlain = "http://";
  constexpr Bytes kTls = "https://";
  endpoint.tls = equals_ignore_case(url.substr(0, kTls.size()), kTls);
  const Bytes scheme = endpoint.tls ? kTls : kPlain;
  if (!equals_ignore_case(url.substr(0, scheme.size()), scheme)) {
    return invalid("the URL must begin with http:// or https://");
  }
  if (!all_of(url, is_visible) || url.find('#') != Bytes::npos) {
    return invalid("the URL contains invalid characters");
  }
  url.remove_prefix(scheme.size());
  const size_t slash = std::min(url.find_first_of("/?"), url.size());
  Bytes authority = url.substr(0, slash);
  const Bytes path = url.substr(slash);
  if (authority.find('@') != Bytes::npos)
    return invalid("the URL must not contain a user name; use a header instead");
  const bool version_6 = authority.starts_with('[');
  const size_t end =
      version_6 ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (end == Bytes::npos) return invalid("the bracket of the address must be closed");
  endpoint.host = authority.substr(version_6 ? 1 : 0, version_6 ? end - 1 : end);
  if (endpoint.host.empty()) return invalid("the URL has no host");
  // Otherwise authority() would differ from what was read.
  const bool is_address =
      endpoint.host.find(':') != std::string::npos && endpoint.host.find('[') == std::string::npos;
  if (version_6 && !is_address) return invalid("the brackets must contain an IPv6 address");
  authority.remove_prefix(version_6 ? end + 1 : end);
  if (!authority.empty()) {
    const auto port = parse_i64(authority.substr(1));
    if (authority[0] != ':' || !port || *port < 1 || *port > kMaxPort) {
      return invalid("the port must be between 1 and 65535");
    }
    endpoint.port = std::to_string(*port);
  }
  if (path.starts_with('?')) return invalid("a query must follow a path");
  if (!path.empty() && path != "/") endpoint.target = path;
  return endpoint;
}

Status check_http_header(Bytes name, Bytes value) {
  if (name.empty() || !all_of(name, is_token)) return invalid("the header's name is invalid");
  const auto is_text = [](char c) { return c == ' ' || c == '\t' || is_visible(c); };
  if (!all_of(value, is_text)) return invalid("the header's value contains invalid characters");
  for (const Bytes own :
       {"host", "content-length", "content-type", "connection", "transfer-encoding"}) {
    if (equals_ignore_case(name, own)) return invalid("this header is set by the server");
  }
  return Status();
}

}  // namespace sluice

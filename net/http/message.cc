#include "net/http/message.h"

#include <algorithm>

#include "engine/base/hex.h"

namespace sluice {

namespace {

bool is_unreserved(char c) {
  return (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// The characters of RFC 3986 that a path may contain, encoded or not.
bool may_stand_in_target(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte < 0x7f && Bytes("\"<>\\^`{|}#").find(c) == Bytes::npos;
}

}  // namespace

const char* method_name(HttpMethod method) {
  switch (method) {
    case HttpMethod::kGet:
      return "GET";
    case HttpMethod::kHead:
      return "HEAD";
    case HttpMethod::kPost:
      return "POST";
    case HttpMethod::kPut:
      return "PUT";
    case HttpMethod::kPatch:
      return "PATCH";
    case HttpMethod::kDelete:
      return "DELETE";
    case HttpMethod::kOther:
      break;
  }
  return "";
}

bool is_change(HttpMethod method) {
  return method != HttpMethod::kGet && method != HttpMethod::kHead;
}

const std::string* HttpRequest::header(Bytes lower_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_name) return &value;
  }
  return nullptr;
}

size_t HttpRequest::header_count(Bytes lower_name) const {
  return static_cast<size_t>(std::count_if(headers.begin(), headers.end(), [&](const auto& header) {
    return header.first == lower_name;
  }));
}

const std::string* HttpRequest::parameter(Bytes name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return &value;
  }
  return nullptr;
}

const char* reason_phrase(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

std::string head_text(const HttpResponse& response, bool keep_alive, bool stream) {
  std::string text =
      "HTTP/1.1 " + std::to_string(response.status) + ' ' + reason_phrase(response.status) + "\r\n";
  const auto add = [&](Bytes name, Bytes value) {
    text += name;
    text += ": ";
    text += value;
    text += "\r\n";
  };
  const bool has_body = response.status != 204 && response.status != 304;
  if (has_body) add("Content-Type", response.content_type);
  if (has_body && !stream) add("Content-Length", std::to_string(response.body.size()));
  add("X-Content-Type-Options", "nosniff");
  add("X-Frame-Options", "DENY");
  add("Referrer-Policy", "no-referrer");
  add("Cross-Origin-Resource-Policy", "same-origin");
  // Default headers are omitted if the response sets them itself.
  const auto usual = [&](Bytes name, Bytes value) {
    const bool own = std::any_of(response.headers.begin(), response.headers.end(),
                                 [&](const auto& header) { return header.first == name; });
    if (!own) add(name, value);
  };
  usual("Cache-Control", "no-store");
  usual("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  for (const auto& [name, value] : response.headers) add(name, value);
  add("Connection", keep_alive && !stream ? "keep-alive" : "close");
  return text + "\r\n";
}

std::optional<std::string> percent_decode(Bytes text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::string percent_encode(Bytes bytes) {
  std::string out;
  for (const char c : bytes) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kUpperHexDigits[byte >> 4], kUpperHexDigits[byte & 15]};
  }
  return out;
}

bool split_target(HttpRequest& request) {
  const Bytes target = request.target;
  if (target.empty() || target[0] != '/') return false;
  if (!std::all_of(target.begin(), target.end(), may_stand_in_target)) return false;
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (!percent_decode(request.path)) return false;
  Bytes rest = mark == Bytes::npos ? Bytes() : target.substr(mark + 1);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const Bytes pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const auto name = percent_decode(pair.substr(0, equals), true);
    const auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return false;
    request.query.emplace_back(*name, *value);
  }
  return true;
}

}  // namespace sluice

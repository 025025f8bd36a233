#include "net/http/message.h"

#include <algorithm>
#include <boost/beast/http/status.hpp>

#include "engine/base/characters.h"
#include "engine/base/hex.h"

namespace sluice {

namespace {

bool is_unreserved(char c) {
  return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

// The characters of RFC 3986 that a path may contain, encoded or not.
bool may_stand_in_target(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte < 0x7f && Bytes("\"<>\\^`{|}#").find(c) == Bytes::npos;
}

}  // namespace

Bytes method_name(HttpMethod method) {
  const auto name = boost::beast::http::to_string(method);
  return {name.data(), name.size()};
}

bool is_change(HttpMethod method) {
  return method != HttpMethod::get && method != HttpMethod::head;
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

Bytes reason_phrase(unsigned status) {
  // RFC 9110 has other phrases than Beast for these two.
  if (status == 413) return "Content Too Large";
  if (status == 422) return "Unprocessable Content";
  const auto reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return {reason.data(), reason.size()};
}

std::string head_text(const HttpResponse& response, bool keep_alive, bool stream) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  text += reason_phrase(response.status);
  text += "\r\n";
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

// The parts of the HTTP side that read arbitrary bytes: heads, targets, chunks, base64, JSON. Input
// read in two pieces must give the same result as in one, without crashes and without reads beyond
// the input.
#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "net/admin/metrics_otlp.h"
#include "net/config/endpoint.h"
#include "net/http/head_check.h"
#include "net/http/json_text.h"
#include "net/http/message.h"
#include "net/http/problem.h"

namespace {

using namespace sluice;

struct Decoded {
  ChunkDecoder::Result result = ChunkDecoder::Result::kMore;
  std::string body;
  size_t left = 0;

  bool operator==(const Decoded&) const = default;
};

Decoded decode(Bytes first, Bytes second) {
  Decoded decoded;
  ChunkDecoder decoder;
  for (Bytes piece : {first, second}) {
    if (decoded.result == ChunkDecoder::Result::kMore) {
      decoded.result = decoder.take(piece, decoded.body);
    }
    decoded.left += piece.size();
  }
  return decoded;
}

void check_chunks(Bytes bytes, size_t cut) {
  const Decoded whole = decode(bytes, {});
  const Decoded parts = decode(bytes.substr(0, cut), bytes.substr(cut));
  CHECK(whole.result == parts.result);
  if (whole.result == ChunkDecoder::Result::kBad) return;
  CHECK(whole == parts);
}

void check_target(Bytes bytes) {
  HttpRequest request;
  request.target = bytes;
  if (!split_target(request)) return;
  const auto path = percent_decode(request.path);
  CHECK(path.has_value());
  CHECK(percent_decode(percent_encode(*path)) == path);
}

// Accepted JSON can be copied and written, whatever its depth.
void check_body(Bytes bytes) {
  const nlohmann::json value = parse_json(bytes);
  if (value.is_discarded()) return;
  const nlohmann::json copy = value;
  CHECK(!parse_json(dump_json(copy)).is_discarded());
}

void check_json(Bytes bytes) {
  nlohmann::json object = nlohmann::json::object();
  put_bytes(object, "x", bytes);
  const std::string text = dump_json(object);
  const nlohmann::json again = nlohmann::json::parse(text);
  if (again["x"].is_null()) {
    CHECK(from_base64(again["x_base64"].get<std::string>()) == std::string(bytes));
  } else {
    CHECK(again["x"].get<std::string>() == bytes);
  }
  static_cast<void>(from_base64(bytes));
  CHECK(problem_of_error(bytes).status >= 400);
}

// Responses of a collector, and configured endpoints.
void check_otlp(Bytes bytes) {
  static_cast<void>(otlp_rejection(bytes));
  const Result<HttpEndpoint> endpoint = parse_http_endpoint(bytes, {"", "4318", "/v1/metrics"});
  if (!endpoint.ok()) return;
  const std::string url = "http://" + endpoint->authority() + endpoint->target;
  const Result<HttpEndpoint> again = parse_http_endpoint(url, {"", "1", "/"});
  CHECK(again.ok());
  CHECK(again->authority() == endpoint->authority() && again->target == endpoint->target);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = bytes.empty() ? 0 : data[0] % (bytes.size() + 1);
  const size_t end = find_head_end(bytes);
  const size_t seen = find_head_end(bytes.substr(0, cut));
  CHECK(seen != 0 ? seen == end : find_head_end(bytes, cut) == end);
  if (end != 0) static_cast<void>(check_head(bytes.substr(0, end)));
  check_chunks(bytes, cut);
  check_target(bytes);
  check_json(bytes);
  check_body(bytes);
  check_otlp(bytes);
  return 0;
}

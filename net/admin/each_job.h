// Requests about several jobs: each is answered what it would be answered alone, and none hinders
// another.
//
// Threads: like Exchange.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "net/admin/api.h"

namespace sluice {

// The most jobs that one request names.
inline constexpr size_t kMostAtOnce = 1000;
inline constexpr const char* kTooMany = "must be at most 1000 of them";

// What a request about one job is answered.
struct Answer {
  unsigned status = 200;
  nlohmann::json members;
  std::optional<HttpResponse> refused = std::nullopt;
};

Answer refused_answer(HttpResponse refused);
void respond_answer(Exchange& exchange, Answer answer);

// Answers `jobs`: for each, `change(i)` in their order, in several turns of the thread. While no
// command about data is answered, the request as a whole is refused.
void answer_each(Exchange& exchange, size_t count, std::function<Answer(size_t)> change);

}  // namespace sluice

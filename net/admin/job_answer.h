// Answers to requests about jobs, where one request may be about several: each job gets the answer
// that it would get alone.
//
// Threads: like Exchange.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "net/admin/api.h"

namespace sluice {

// The most jobs that one request names.
inline constexpr size_t kMostJobsNamed = 1000;
inline constexpr const char* kTooManyJobs = "must be at most 1000 of them";

// What a request about one job is answered.
struct JobAnswer {
  unsigned status = 200;
  nlohmann::json members;
  std::optional<HttpResponse> refused = std::nullopt;
};

JobAnswer refused_answer(HttpResponse refused);
// The job that Q.GET has replied; 404 for null.
JobAnswer shown_job(Exchange& exchange, const RespValue& reply);
void respond_answer(Exchange& exchange, JobAnswer answer);
// Responds with `change(i)` for each of several jobs, one after the other, in several turns. None
// hinders another. While no command about data is answered, the request as a whole is refused.
void answer_each(Exchange& exchange, size_t count, std::function<JobAnswer(size_t)> change);

}  // namespace sluice

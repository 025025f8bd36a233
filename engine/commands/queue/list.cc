// Q.LIST: the jobs of a queue, page by page.
#include <algorithm>
#include <utility>

#include "engine/commands/queue/adopted.h"
#include "engine/commands/queue/queues.h"
#include "engine/commands/queue/reply.h"
#include "engine/commands/queue/where.h"
#include "engine/queue/dispatch_order.h"

namespace sluice {

namespace {

// BY DISPATCH: each job costs changes of the lanes.
constexpr int64_t kMaxAhead = 100;

void read_order(OptionReader& options, JobOrder& order) {
  const Bytes name = options.value();
  if (equals_ignore_case(name, "RANK")) {
    order = JobOrder::kRank;
  } else if (equals_ignore_case(name, "AGE")) {
    order = JobOrder::kAge;
  } else if (equals_ignore_case(name, "DEADLINE")) {
    order = JobOrder::kDeadline;
  } else if (equals_ignore_case(name, "DISPATCH")) {
    order = JobOrder::kDispatch;
  } else {
    options.bad_value();
  }
}

// BY DISPATCH lists the next jobs from the front, without a selector. Returns false with the error
// replied.
bool check_ahead(Call& call, bool selects, ListRequest& request) {
  if (selects) {
    reply_bad_field(call, "where");
    return false;
  }
  if (request.count == 0) request.count = kMaxAhead;
  request.count = std::min(request.count, kMaxAhead);
  request.selector.states = state_bit(JobState::kPending);
  return true;
}

// False with the error replied.
bool parse_list(Call& call, const QueueConfig& config, ListRequest& request) {
  bool in_selector = false;
  bool selects = false;
  OptionReader options(call, 2);
  while (options.next()) {
    if (in_selector && read_selector_option(options, config, request.selector)) continue;
    in_selector = options.is("WHERE");
    if (in_selector) {
      selects = true;
    } else if (options.is("BY", 1)) {
      read_order(options, request.order);
    } else if (request.order == JobOrder::kAge && options.is("DESC")) {
      request.order = JobOrder::kAgeDesc;
    } else if (options.is("CURSOR", 1)) {
      request.cursor = options.value();
    } else if (options.is("COUNT", 1)) {
      request.count = options.integer(1, kMaxPageCount).value_or(1);
    } else if (options.is("LOOK", 1)) {
      request.looks = true;
      request.selector.look = static_cast<size_t>(options.integer(1, kMaxExamined).value_or(1));
    } else if (options.is("BRIEF")) {
      request.with.brief = true;
    } else if (options.is("PROGRESS", 1)) {
      request.with.progress = static_cast<size_t>(options.integer(0, kMaxExact).value_or(0));
    } else if (options.is("WITH", 1)) {
      if (!parse_shown_field(options.value(), request.with)) options.bad_value();
    } else {
      options.unknown();
    }
  }
  if (options.failed()) return false;
  if (request.order == JobOrder::kDispatch) return check_ahead(call, selects, request);
  if (selects && !check_selector(call, request.selector)) return false;
  // LIMIT is a synonym of COUNT here; the smaller one applies.
  const int64_t limit = request.selector.limit;
  const bool limited = limit != kMaxPageCount;
  if (request.count == 0) request.count = limited ? limit : kUsualCount;
  request.count = std::min(request.count, limit);
  return true;
}

}  // namespace

void begin_page(Call& call, const ListRequest& request, Bytes cursor, size_t jobs) {
  call.reply.array(request.looks ? 3 : 2);
  call.reply.bulk(cursor);
  call.reply.array(jobs);
}

void end_page(Call& call, const ListRequest& request, size_t looked_at) {
  if (request.looks) call.reply.integer(static_cast<int64_t>(looked_at));
}

void q_list_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_queue(call, key);
  ListRequest request;
  if (queue.refused() || !parse_list(call, config_of(queue), request)) return;
  JobPage page;
  if (queue == nullptr) {
    begin_page(call, request, page.cursor, 0);
    return end_page(call, request, 0);
  }
  if (queue->adopted != nullptr) return list_adopted(call, *queue, request);
  const ShownAt at(call, key, *queue, request.with);
  const auto weigh = [&](const Job& job) { return shown_bytes(job, request.with); };
  if (request.order == JobOrder::kDispatch) {
    if (request.cursor != "0") return call.reply.error("ERR invalid cursor");
    page.jobs = next_in_order(*queue, static_cast<size_t>(request.count), at.now.queue_ms);
    page.looked_at = page.jobs.size();
    size_t bytes = 0;
    const auto fits = [&](const Job* job) {
      return std::exchange(bytes, bytes + weigh(*job)) < kMaxPageBytes;
    };
    page.jobs.erase(std::find_if_not(page.jobs.begin(), page.jobs.end(), fits), page.jobs.end());
  } else if (!walk_jobs(*queue, request.selector, request.order, request.cursor,
                        static_cast<size_t>(request.count), at.now.queue_ms, page, weigh)) {
    return call.reply.error("ERR invalid cursor");
  }
  begin_page(call, request, page.cursor, page.jobs.size());
  for (const Job* job : page.jobs) reply_shown_job(call.reply, *queue, *job, at);
  end_page(call, request, page.looked_at);
}

}  // namespace sluice

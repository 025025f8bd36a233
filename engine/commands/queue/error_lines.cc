#include "engine/commands/queue/error_lines.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/quoting.h"
#include "engine/queue/job_texts.h"
#include "engine/reply/map_reply.h"

namespace sluice {

namespace {

// The bytes of the newest job's error that a line shows.
constexpr size_t kMaxShownError = 512;

struct ErrorLine {
  std::string pattern;
  const Job* newest = nullptr;
  const Job* oldest = nullptr;
  uint64_t count = 0;
};

std::vector<ErrorLine> lines_of(const JobPage& page) {
  std::vector<ErrorLine> lines;
  std::unordered_map<std::string, size_t> places;
  for (const Job* job : page.jobs) {
    std::string pattern = error_pattern(error_of(*job));
    const auto [place, is_new] = places.try_emplace(pattern, lines.size());
    if (is_new) lines.push_back({std::move(pattern), job});
    ErrorLine& line = lines[place->second];
    line.oldest = job;
    ++line.count;
  }
  return lines;
}

}  // namespace

bool walk_failed(const Queue& queue, Bytes cursor, size_t count, int64_t now_ms, JobPage& page) {
  Selector failed;
  failed.states = state_bit(JobState::kFailed);
  // Expired jobs are kept among the failed ones: they are examined too.
  failed.look = std::max<size_t>(count, 500);
  return walk_jobs(queue, failed, JobOrder::kAgeDesc, cursor, count, now_ms, page);
}

void reply_error_lines(Call& call, const JobPage& page) {
  const Times& times = call.unit.times;
  MapReply map(call.reply);
  for (const ErrorLine& line : lines_of(page)) {
    map.field(line.pattern);
    MapReply fields(call.reply);
    fields.count("count", line.count);
    fields.integer("first", times.shown_ms(line.oldest->end()->finished_ms));
    fields.integer("last", times.shown_ms(line.newest->end()->finished_ms));
    fields.text("id", line.newest->id());
    fields.text("error", cut_text(error_of(*line.newest), kMaxShownError));
  }
}

}  // namespace sluice

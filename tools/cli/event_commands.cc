// The events of a queue's jobs: events, and events --follow.
//
// Following resumes after the last printed event, whatever happens to the connection: either there
// is no gap, or the program ends and reports it (TRIMMED).
#include <algorithm>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "net/http/json_text.h"
#include "net/process/wall_clock.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/job_view.h"
#include "tools/cli/outage.h"
#include "tools/cli/replies.h"
#include "tools/cli/story.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr const char* kTypes =
    "added updated moved forgotten ready started completed failed cancelled expired retrying "
    "returned reclaimed signalled progress";
constexpr int64_t kUsualEvents = 20;
constexpr int64_t kMostEvents = 10'000'000;

constexpr Option kEventOptions[] = {
    {"--follow", nullptr, "wait for and print new events"},
    {"--after", "SEQ", "events after this number; - for all kept events, $ for none of them"},
    {"--count", "N", "with --after at most N, also with --follow; else the last N (20)"},
    {"--type", "TYPE", "only these types; may be repeated", "TYPE", kTypes, 0, true},
    {"--job", "ID", "only events of this job; may be repeated", "ID", nullptr, 0, true},
};

// How long it waits in one call for the events of chosen jobs.
constexpr int64_t kFollowJobsMs = 1000;

// The server selects jobs, and says by a mark how far it has looked. For types alone it does not,
// so all events are read then.
Words selection_of(const Arguments& arguments) {
  Words words;
  if (arguments.has("--job")) arguments.append_words(kEventOptions, words);
  return words;
}

class EventReader {
 public:
  explicit EventReader(Context& context)
      : context_(context),
        types_(context.arguments.values("--type")),
        selection_(selection_of(context.arguments)),
        follows_(context.arguments.has("--follow")),
        count_(context.arguments.integer("--count", kUsualEvents, 0, kMostEvents)) {}

  int run() {
    const auto after = context_.arguments.value("--after");
    if (after) check_after(*after);
    // One that is followed may come.
    if (!follows_) require_queue(context_);
    if (!after) {
      print_last();
    } else {
      if (context_.arguments.has("--count")) left_ = count_;
      begin_after(*after);
      read_to_end();
    }
    // The reader of the output may be gone; main reports it.
    while (follows_ && left_ > 0 && std::ferror(stdout) == 0) follow();
    return kDone;
  }

 private:
  bool is_wanted(const RespValue& event) const {
    const std::string type = text_of(event, "type");
    if (type == "none") return false;  // a mark
    return types_.empty() || std::any_of(types_.begin(), types_.end(), [&](const auto& wanted) {
             return equals_ignore_case(wanted, type);
           });
  }

  void print(const RespValue& event) const {
    if (context_.json) return print_json(resp_to_json(event));
    const std::string type = text_of(event, "type");
    const std::string id = printable(text_of(event, "id"));
    const std::string moment = moment_text(integer_of(event, "time"), wall_ms());
    const std::string fields = pairs_text(event.at("fields"));
    const auto seq = static_cast<long long>(integer_of(event, "seq"));
    if (!context_.screen.terminal) {
      std::printf("%lld\t%s\t%s\t%s\t%s\n", seq, moment.c_str(), type.c_str(), id.c_str(),
                  fields.c_str());
      return;
    }
    std::printf("%8lld  %s  %s %s%s%s\n", seq, moment.c_str(),
                styled(padded(type, 10), state_style(type), context_.screen).c_str(), id.c_str(),
                fields.empty() ? "" : "  ", fields.c_str());
  }

  static void check_after(const std::string& text) {
    const auto number = parse_i64(text);
    if (text == "$" || text == "-" || (number && *number >= 0)) return;
    throw usage_error("--after takes the number of an event, - or $, not " + text);
  }

  // Sets the start of reading: the value of --after or its default.
  void begin_after(const std::string& text) {
    after_ = text;
    if (text != "$" && text != "-") return;
    // Of "-" before anything is read: if there is nothing yet, what comes meanwhile is new.
    end_ = std::to_string(last_event(context_.connection, context_.queue()));
    if (text == "$") after_ = end_;
  }

  // Reads one page; returns false if there is nothing new. `wanted` receives the selected events.
  bool read_page(Words more, std::vector<RespValue>& wanted) {
    Words words = {"Q.EVENTS", context_.queue(), after_, "COUNT", std::to_string(kMaxPageCount)};
    words.insert(words.end(), selection_.begin(), selection_.end());
    words.insert(words.end(), more.begin(), more.end());
    RespValue page = as_events(context_.connection.call(words));
    if (page.items.empty()) return false;
    after_ = std::to_string(integer_of(page.items.back(), "seq"));
    for (RespValue& event : page.items) {
      if (is_wanted(event)) wanted.push_back(std::move(event));
    }
    return true;
  }

  // Prints the last `count_` selected events.
  void print_last() {
    const bool selects = !selection_.empty() || !types_.empty();
    if (selects || count_ == 0) {
      begin_after(count_ == 0 ? "$" : "-");
    } else {
      begin_before_end();
    }
    std::deque<RespValue> last;
    std::vector<RespValue> page;
    while (read_page({}, page)) {
      for (RespValue& event : page) {
        last.push_back(std::move(event));
        if (last.size() > static_cast<size_t>(count_)) last.pop_front();
      }
      page.clear();
    }
    if (after_ == "-") after_ = end_;
    for (const RespValue& event : last) print(event);
    std::fflush(stdout);
  }

  // If all events are selected, the last ones are found without reading the others.
  void begin_before_end() {
    const int64_t last = last_event(context_.connection, context_.queue());
    after_ = std::to_string(std::max<int64_t>(0, last - count_));
    const RespValue page =
        context_.connection.try_call({"Q.EVENTS", context_.queue(), after_, "COUNT", "1"});
    if (const auto oldest = trimmed_oldest(page)) after_ = std::to_string(*oldest - 1);
  }

  // Prints as many events of the page as may still be, and empties it.
  void print_page(std::vector<RespValue>& page) {
    for (const RespValue& event : page) {
      if (left_-- <= 0) break;
      print(event);
    }
    page.clear();
    std::fflush(stdout);
  }

  void read_to_end() {
    std::vector<RespValue> page;
    while (left_ > 0 && std::ferror(stdout) == 0 && read_page({}, page)) print_page(page);
    if (after_ == "-" && follows_) after_ = end_;
  }

  // Waits for events and prints them. Reconnects after a lost connection, without a time limit.
  void follow() {
    std::vector<RespValue> page;
    try {
      context_.connection.set_patience(kFollowPatienceMs);
      // If nothing comes, the reply does not say how far it has looked. So the next call looks
      // before it waits, which it does not do for long: what it has to look at must be kept.
      const bool chooses = !selection_.empty();
      const int64_t block_ms = chooses ? kFollowJobsMs : kFollowMs;
      if (!chooses || !read_page({}, page)) read_page({"BLOCK", std::to_string(block_ms)}, page);
      outage_.ends();
    } catch (const Failure& failure) {
      if (!outage_.survives(failure)) throw;
    }
    print_page(page);
  }

  Context& context_;
  const std::vector<std::string> types_;
  const Words selection_;
  const bool follows_;
  const int64_t count_;
  int64_t left_ = INT64_MAX;  // how many may still be printed, with --after and --count
  std::string after_;         // the number after which to read on, or -
  std::string end_;           // the last number when reading began, if it began with - or $
  Outage outage_{context_};
};

int run_events(Context& context) { return EventReader(context).run(); }

}  // namespace

std::span<const CommandRow> event_commands() {
  static const CommandRow kRows[] = {
      {"events",
       "QUEUE",
       "print what has happened to the jobs; with --json one object per line",
       "--follow survives a restart of the server: it resumes after the last event that it has\n"
       "printed, without a gap. If there would be a gap, it ends with TRIMMED.",
       {kEventOptions},
       run_events,
       "sluice events exec --job report --job mail-7 --follow"},
  };
  return kRows;
}

}  // namespace sluice::cli

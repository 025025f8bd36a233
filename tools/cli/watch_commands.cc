// watch: one job until it has ended.
//
// Its events are read after the last one that was printed, and its log at an offset, so a lost
// connection or a restart of the server neither hides a change nor prints one twice.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "net/http/json_text.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/job_view.h"
#include "tools/cli/outage.h"
#include "tools/cli/replies.h"
#include "tools/cli/story.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using nlohmann::json;

// How long to wait for an event before position and ETA are read again, or the log of a run.
constexpr int64_t kWaitingMs = 1000;
constexpr int64_t kRunningMs = 250;
constexpr int64_t kWatchPatienceMs = 10'000;
constexpr size_t kLongestType = 10;

// The exit code says how the job has ended. 1 to 3 are those of every command, 6 is kGone.
struct End {
  const char* state;
  int code;
};
constexpr End kEnds[] = {
    {"completed", kDone}, {"failed", kServerError}, {"expired", 4}, {"cancelled", 5}};

const End* end_of(const std::string& state) {
  for (const End& end : kEnds) {
    if (state == end.state) return &end;
  }
  return nullptr;
}

constexpr Option kWatchOptions[] = {
    {"--no-log", nullptr, "do not print what the job writes to its log"},
};

class Watcher {
 public:
  explicit Watcher(Context& context)
      : context_(context), draws_(context.screen.moves && !context.json) {}

  int run() {
    now_ms_ = context_.server_now_ms();
    after_ = last_event(context_.connection, context_.queue());
    context_.connection.set_patience(kWatchPatienceMs);
    job_ = as_map(context_.connection.call(job_words()));
    if (job_.is_null()) throw no_job(printable(context_.operand(1)));
    end_ = end_of(text_of(job_, "state"));
    print_state("now");
    // The reader of the output may be gone; main reports it.
    while (is_going_ && std::ferror(stdout) == 0) {
      try {
        look();
        outage_.ends();
      } catch (const Failure& failure) {
        hide_status();
        if (!outage_.survives(failure)) throw;
      }
    }
    // main says why its output has ended.
    return is_going_ ? kServerError : finish();
  }

 private:
  Words job_words() const {
    return {"Q.GET", context_.queue(), context_.operand(1), "WITH", "result"};
  }

  // Waits for a change and prints what is new.
  void look() {
    const bool was_gone = job_.is_null();
    if (end_ == nullptr) read_events(true);
    const bool had_ended = end_ != nullptr;
    context_.connection.send(job_words());
    context_.connection.send({"Q.LOG", context_.queue(), context_.operand(1), "FROM",
                              std::to_string(log_next_), "COUNT", kLogBytes});
    context_.connection.send({"TIME"});
    RespValue job = as_map(context_.connection.receive());
    RespValue log = context_.connection.receive();
    now_ms_ = time_ms_of(context_.connection.receive());
    for (const RespValue* reply : {&job, &log}) {
      if (reply->is_error()) throw failure_of(reply->text);
    }
    const bool has_more = !context_.arguments.has("--no-log") && print_log(log);
    take(std::move(job), had_ended);
    if (end_ == nullptr && end_of(text_of(job_, "state")) != nullptr) {
      // It has ended since the events were read. A queue may keep none.
      read_events(false);
      if (end_ == nullptr) end_ = end_of(text_of(job_, "state"));
    }
    draw_status();
    // The events of a job that is not kept may come after it has gone.
    const bool is_over = end_ != nullptr || (was_gone && job_.is_null());
    if (is_over && !has_more) is_going_ = false;
  }

  // A job that has ended may have a successor under its id, which is not the one that is watched.
  void take(RespValue job, bool had_ended) {
    const End* end = end_of(text_of(job, "state"));
    job_ = had_ended && end != end_ ? RespValue() : std::move(job);
  }

  void read_events(bool waits) {
    Words words = {"Q.EVENTS", context_.queue(), std::to_string(after_), "ID", context_.operand(1)};
    if (waits) {
      const bool runs = text_of(job_, "state") == "active";
      words.insert(words.end(), {"BLOCK", std::to_string(runs ? kRunningMs : kWaitingMs)});
    }
    const RespValue reply = context_.connection.try_call(words);
    if (const auto oldest = trimmed_oldest(reply)) {
      after_ = *oldest - 1;
      return;
    }
    if (reply.is_error()) throw failure_of(reply.text);
    const RespValue events = as_events(reply);
    for (const RespValue& event : events.items) {
      after_ = integer_of(event, "seq");
      const std::string type = text_of(event, "type");
      if (type == "none") continue;
      context_.json ? print_json(resp_to_json(event))
                    : print_line(integer_of(event, "time"), type, pairs_text(event.at("fields")));
      end_ = end_of(type);
      if (end_ != nullptr) return;
    }
  }

  // Returns whether there may be more of it.
  bool print_log(const RespValue& reply) {
    if (reply.items.size() != 4) return false;
    const int64_t offset = reply.items[0].integer;
    const std::string& bytes = reply.items[1].text;
    if (offset > log_next_) {
      // The end of a line that has begun is gone too.
      if (!log_.empty()) print_log_line(log_);
      log_.clear();
      hide_status();
      tell_of_lost_log(context_, offset - log_next_);
    }
    log_next_ = reply.items[2].integer;
    log_ += bytes;
    for (size_t end = log_.find('\n'); end != std::string::npos; end = log_.find('\n')) {
      print_log_line(log_.substr(0, end));
      log_.erase(0, end + 1);
    }
    return !bytes.empty();
  }

  void print_log_line(const std::string& line) {
    if (context_.json) {
      json object = {{"type", "log"}};
      put_bytes(object, "text", line);
      print_json(object);
    } else {
      print_line(now_ms_, "log", printable(line));
    }
  }

  // For people aligned, else divided by tabs.
  void print_line(int64_t time_ms, const std::string& type, const std::string& text) {
    hide_status();
    const std::string moment = moment_text(time_ms, now_ms_);
    if (!context_.screen.terminal) {
      std::printf("%s\t%s\t%s\n", moment.c_str(), type.c_str(), text.c_str());
      return;
    }
    const size_t blanks = type.size() < kLongestType ? kLongestType - type.size() : 0;
    const std::string shown = styled(type, state_style(type), context_.screen);
    std::printf("%s  %s%s  %s\n", moment.c_str(), shown.c_str(), std::string(blanks, ' ').c_str(),
                text.c_str());
  }

  // How the job is now, in words.
  std::string status_text() const {
    const std::string state = text_of(job_, "state");
    if (job_.is_null()) return "no longer known";
    if (state != "active") {
      const bool in_words = context_.screen.terminal && end_ == nullptr;
      const std::string why =
          in_words ? note_of(job_, now_ms_, true).text
                   : printable(end_ == nullptr ? text_of(job_, "why") : error_text(job_));
      const std::string result = printable(text_of(job_, "result"));
      return place_text(job_, !in_words) + (why.empty() ? "" : ", " + why) +
             (result.empty() ? "" : ", result=" + result);
    }
    const int64_t run_ms = std::max<int64_t>(0, now_ms_ - integer_of(job_, "started", now_ms_));
    const std::string worker = printable(text_of(job_, "worker"));
    const std::string note = note_of(job_, now_ms_, context_.screen.terminal).text;
    return state + " for " + duration_text(run_ms) + (worker.empty() ? "" : ", " + worker) +
           (note.empty() ? "" : ", " + note);
  }

  void print_state(const char* type) {
    if (context_.json) {
      print_json({{"type", type}, {"job", resp_to_json(job_)}});
    } else {
      print_line(now_ms_, type, status_text());
    }
    std::fflush(stdout);
  }

  // The last line of the terminal, which is replaced. A pipe has no such line.
  void draw_status() {
    if (draws_ && end_ == nullptr) {
      const Screen screen = Screen::of_output();
      std::printf("\r%s\x1b[K", fit_text(status_text(), screen.width - 1).c_str());
      has_status_ = true;
    }
    std::fflush(stdout);
  }

  void hide_status() {
    if (has_status_) std::printf("\r\x1b[K");
    has_status_ = false;
    std::fflush(stdout);
  }

  int finish() {
    if (!log_.empty()) print_log_line(log_);
    if (job_.is_null() && end_ != nullptr) {
      // It has ended and was forgotten at once.
      if (context_.json) print_json({{"type", "end"}, {"state", end_->state}, {"job", nullptr}});
      return end_->code;
    }
    print_state("end");
    return end_ == nullptr ? kGone : end_->code;
  }

  Context& context_;
  const bool draws_;
  int64_t after_ = 0;  // the last event that was read
  int64_t log_next_ = 0;
  int64_t now_ms_ = 0;  // the server's clock at the last look
  std::string log_;     // an incomplete line
  RespValue job_;       // null: no longer known
  const End* end_ = nullptr;
  bool is_going_ = true;
  bool has_status_ = false;
  Outage outage_{context_};
};

int run_watch(Context& context) { return Watcher(context).run(); }

}  // namespace

std::span<const CommandRow> watch_commands() {
  static const CommandRow kRows[] = {
      {"watch",
       "QUEUE ID",
       "watch a job until it has ended: its place, its progress, its log",
       "Prints a line for each change, and on a terminal how the job is at the moment. It "
       "survives\n"
       "a restart of the server. The exit code is that of the end: 0 completed, 1 failed,\n"
       "4 expired, 5 cancelled, 6 no longer known (its queue is gone, or ended jobs are not kept).",
       {kWatchOptions},
       run_watch,
       "sluice watch exec report && echo done"},
  };
  return kRows;
}

}  // namespace sluice::cli

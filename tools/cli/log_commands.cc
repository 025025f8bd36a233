// The log of a job: log, and log --follow.
//
// Reading continues at an offset, so a lost connection or a restart of the server neither loses a
// byte nor prints one twice. What the server has dropped in between is reported.
#include <cstdio>

#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/outage.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr Option kLogOptions[] = {
    {"--follow", nullptr, "print what is added, until the job has ended"},
    {"--from", "OFFSET", "begin at this byte of the log (0)"},
};

class LogReader {
 public:
  explicit LogReader(Context& context)
      : context_(context),
        follows_(context.arguments.has("--follow")),
        next_(context.arguments.integer("--from", 0, 0, INT64_MAX)) {}

  int run() {
    if (context_.json) throw usage_error("log prints the bytes of the log, and no JSON");
    if (follows_) context_.connection.set_patience(kFollowPatienceMs);
    // The reader of the output may be gone; main reports it.
    while (read() && std::ferror(stdout) == 0) {
    }
    return kDone;
  }

 private:
  // Prints the next piece. Returns false at the end.
  bool read() {
    RespValue piece;
    try {
      Words words = {"Q.LOG", context_.queue(), context_.operand(1), "FROM", std::to_string(next_),
                     "COUNT", kLogBytes};
      // The first answer comes at once: it says whether there is such a server and such a job.
      if (follows_ && is_known_) {
        words.insert(words.end(), {"BLOCK", std::to_string(kFollowMs)});
      }
      piece = context_.connection.call(words);
    } catch (const Failure& failure) {
      // What has never answered may be no such server.
      if (!follows_ || !is_known_ || !outage_.survives(failure)) throw;
      return true;
    }
    outage_.ends();
    return print(piece);
  }

  bool print(const RespValue& piece) {
    if (piece.is_null()) {
      if (has_ended_) return false;
      const std::string id = printable(context_.operand(1));
      if (!is_known_) throw no_job(id);
      throw Failure{kGone, id + ": no longer known: its queue is gone, or ended jobs are not kept"};
    }
    is_known_ = true;
    const int64_t offset = piece.items.at(0).integer;
    const std::string& bytes = piece.items.at(1).text;
    if (offset > next_) tell_of_lost_log(context_, offset - next_);
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    std::fflush(stdout);
    next_ = piece.items.at(2).integer;
    has_ended_ = piece.items.at(3).integer != 0;
    return !bytes.empty() || (follows_ && !has_ended_);
  }

  Context& context_;
  const bool follows_;
  int64_t next_;
  bool is_known_ = false;
  bool has_ended_ = false;  // the job has, and its whole log was read
  Outage outage_{context_};
};

int run_log(Context& context) { return LogReader(context).run(); }

}  // namespace

std::span<const CommandRow> log_commands() {
  static const CommandRow kRows[] = {
      {"log",
       "QUEUE ID",
       "print the log of a job",
       "--follow survives a restart of the server: it resumes behind the last byte that it has\n"
       "printed. The exit code is 6 if the job is no longer known before its log has ended.",
       {kLogOptions},
       run_log,
       "sluice log exec report --follow"},
  };
  return kRows;
}

}  // namespace sluice::cli

// Commands that run until they are stopped: top, simulate.
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/full_screen.h"
#include "tools/cli/queue_view.h"
#include "tools/cli/replies.h"
#include "tools/cli/signals.h"
#include "tools/cli/simulation.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// --- top ---

constexpr Option kTopOptions[] = {
    {"--interval", "SECONDS", "time between updates (1)"},
};

// Rates over ten seconds: those over a minute would hide what happens now.
constexpr const char* kTopWindowMs = "10000";
// Searching for queues scans all keys, so it is done rarely.
constexpr std::chrono::seconds kBetweenSearches(5);

class Top {
 public:
  Top(Context& context, Signals& signals) : context_(context), signals_(signals) {
    const double seconds = context.arguments.number("--interval", 1, 0.1, 3600);
    interval_ = milliseconds(static_cast<int64_t>(seconds * 1000));
  }

  int run() {
    look();
    // If the server cannot be reached at all, report it on the ordinary screen.
    if (!trouble_.empty()) throw Failure{kNoConnection, trouble_};
    FullScreen full;
    for (auto next = steady_clock::now();;) {
      draw(full);
      next = std::max(next + interval_, steady_clock::now());
      if (!wait_until(next, full)) return kDone;
      look();
    }
  }

 private:
  void look() {
    try {
      if (context_.operands() > 0) {
        names_ = context_.arguments.operands();
      } else if (searched_ == steady_clock::time_point() ||
                 steady_clock::now() - searched_ > kBetweenSearches) {
        names_ = find_queues(context_.connection);
        searched_ = steady_clock::now();
      }
      std::vector<QueueStats> queues;
      for (const std::string& name : names_) {
        context_.connection.send({"Q.STATS", name, "WINDOW", kTopWindowMs});
      }
      for (const std::string& name : names_) {
        RespValue stats = context_.connection.receive();
        // Only a queue that was asked for by name is reported as missing.
        if (stats.is_error() && context_.operands() > 0) {
          throw Failure{kServerError, explain_error(stats.text)};
        }
        if (!stats.is_error()) queues.emplace_back(name, as_map(std::move(stats)));
      }
      queues_ = std::move(queues);
      seen_ms_ = wall_ms();
      trouble_.clear();
    } catch (const Failure& failure) {
      // Outstanding replies must not be taken for those of later commands.
      context_.connection.close();
      searched_ = {};
      if (failure.code == kServerError && seen_ms_ == 0) throw;
      trouble_ = failure.text;
    }
  }

  void draw(FullScreen& full) {
    const Screen screen = Screen::of_output();
    std::string title = "sluice top  " + context_.connection.address().text() + "  " +
                        moment_text(seen_ms_, seen_ms_).substr(0, 8) + "  q: quit";
    std::vector<std::string> lines = {styled(fit_text(title, screen.width), Style::kDim, screen)};
    if (!trouble_.empty()) {
      lines.push_back(styled(fit_text(printable(trouble_), screen.width), Style::kBad, screen));
    } else {
      lines.emplace_back();
    }
    if (queues_.empty()) {
      lines.emplace_back("no queues");
    } else {
      const std::vector<std::string> table = queues_table(queues_).lines(screen);
      lines.insert(lines.end(), table.begin(), table.end());
    }
    if (queues_.size() == 1) {
      lines.emplace_back();
      const std::vector<std::string> summary = summary_lines(queues_[0].second, screen);
      lines.insert(lines.end(), summary.begin(), summary.end());
    }
    full.draw(lines, screen.height);
  }

  // Returns false when top should end.
  bool wait_until(steady_clock::time_point until, FullScreen& full) {
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
      const auto woken = signals_.wait(left, input_);
      if (woken.event == Signals::Event::kTimeout) return true;
      if (woken.event == Signals::Event::kInput) {
        char key = 0;
        // A closed standard input is always readable.
        if (::read(input_, &key, 1) <= 0) input_ = -1;
        if (key == 'q' || key == 'Q') return false;
      } else if (woken.signal == SIGWINCH) {
        draw(full);
      } else if (woken.signal == SIGTSTP) {
        full.leave();
        static_cast<void>(std::raise(SIGSTOP));
        full.enter();
        draw(full);
      } else {
        return false;
      }
    }
  }

  Context& context_;
  Signals& signals_;
  milliseconds interval_{};
  int input_ = STDIN_FILENO;
  std::vector<std::string> names_;
  steady_clock::time_point searched_;
  std::vector<QueueStats> queues_;
  int64_t seen_ms_ = 0;  // when queues_ was read; 0: never
  std::string trouble_;  // why there is no newer reading
};

int run_top(Context& context) {
  if (!context.screen.terminal || context.json) {
    throw usage_error("top needs a terminal; use status to print once");
  }
  Signals signals({SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP});
  return Top(context, signals).run();
}

// --- simulate ---

constexpr Option kSimulateOptions[] = {
    {"--rate", "N", "jobs per second, all producers together (10)"},
    {"--producers", "N", "connections that add jobs (1); 0: add none"},
    {"--workers", "N", "workers, each with a connection (4)"},
    {"--run-ms", "TIME", "how long a run takes: N, FROM:TO, or exp:MEAN (200:2000)"},
    {"--users", "N", "groups, some with more jobs than others (5); 0: no groups"},
    {"--bands", "NAME=WEIGHT,...", "bands and their shares; default: those of the queue"},
    {"--tasks", "NAME,...", "the kinds of jobs; default: all", nullptr, kTaskNames},
    {"--fail", "SHARE", "fraction of runs that fail: 0 to 1 (0.05); some fail for good"},
    {"--seconds", "N", "end after N seconds; default: at Ctrl-C"},
    {"--seed", "N", "seed of the random choices"},
};

SimulationPlan plan_of(Context& context) {
  const Arguments& arguments = context.arguments;
  SimulationPlan plan;
  plan.queue = context.queue();
  plan.rate = arguments.number("--rate", plan.rate, 0.01, 100'000);
  plan.producers = static_cast<int>(arguments.integer("--producers", plan.producers, 0, 64));
  plan.workers = static_cast<int>(arguments.integer("--workers", plan.workers, 0, 256));
  plan.users = static_cast<int>(arguments.integer("--users", plan.users, 0, 100'000));
  plan.fail_share = arguments.number("--fail", plan.fail_share, 0, 1);
  plan.seed = static_cast<uint64_t>(arguments.integer("--seed", wall_ms(), 0, INT64_MAX));
  if (const auto tasks = arguments.value("--tasks")) plan.tasks = parse_tasks(*tasks);
  plan.run = RunTime::parse(arguments.value("--run-ms").value_or("200:2000"));
  if (const auto bands = arguments.value("--bands")) {
    plan.bands = parse_bands(*bands);
  } else {
    plan.bands = bands_of_queue(context.connection, plan.queue);
  }
  return plan;
}

int run_simulate(Context& context) {
  const int64_t seconds = context.arguments.integer("--seconds", 0, 1, 1'000'000);
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  const SimulationPlan plan = plan_of(context);
  return simulate(context, plan, signals, seconds);
}

}  // namespace

std::span<const CommandRow> live_commands() {
  static const CommandRow kRows[] = {
      {"top",
       "[QUEUE...]",
       0,
       1000,
       "watch the queues live; q quits",
       nullptr,
       {kTopOptions},
       run_top,
       "sluice top exec"},
      {"simulate",
       "QUEUE",
       1,
       1,
       "run producers and workers for a demonstration: real jobs, real leases",
       "It changes the queue: use a separate one. Jobs that are running at the end are returned;\n"
       "waiting jobs stay.",
       {kSimulateOptions},
       run_simulate,
       "sluice simulate try --rate 50 --workers 8 --run-ms 200:2s"},
  };
  return kRows;
}

}  // namespace sluice::cli

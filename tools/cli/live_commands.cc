// Commands that run until they are stopped: top, simulate.
#include <csignal>

#include "net/process/wall_clock.h"
#include "tools/cli/context.h"
#include "tools/cli/signals.h"
#include "tools/cli/simulation.h"
#include "tools/cli/top.h"

namespace sluice::cli {

namespace {

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
       "watch the queues live, and steer them; ? shows the keys",
       "Fills the terminal with the queues, and of the selected one its workers and its active,\n"
       "next and failed jobs. Keys sort, filter, open a queue or a job, pause, retry and cancel.\n"
       "Where it cannot draw (a pipe, TERM=dumb) it prints a table, once or at each interval.",
       {top_options()},
       run_top,
       "sluice top exec"},
      {"simulate",
       "QUEUE",
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

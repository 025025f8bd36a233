// Commands about workers: workers, quiet.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/base/glob_literal.h"
#include "net/http/json_text.h"
#include "tools/cli/context.h"
#include "tools/cli/queue_view.h"
#include "tools/cli/stats_lines.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

// --- workers ---

int run_workers(Context& context) {
  require_queue(context);
  const RespValue lines = stats_lines(context.connection, context.queue(), {"WORKER"});
  if (context.json) {
    print_json(resp_to_json(lines));
  } else if (lines.items.empty()) {
    std::printf("no workers\n");
  } else {
    workers_table("WORKER", lines, context.server_now_ms()).print(context.screen);
  }
  return kDone;
}

// --- quiet ---

constexpr Option kQuietOptions[] = {
    {"--off", nullptr, "it gets jobs again"},
    {"--glob", nullptr, "WORKER is a glob: all workers that match it"},
    {"--create", nullptr, "create the queue if it does not exist"},
};

int run_quiet(Context& context) {
  // A mistyped name must not create a queue.
  if (!context.arguments.has("--create")) {
    require_queue(context, "; use --create to create it");
  }
  const std::string& worker = context.operand(1);
  const bool off = context.arguments.has("--off");
  const std::string glob = context.arguments.has("--glob") ? worker : glob_escape(worker);
  context.connection.call(
      {"Q.CONFIG", context.queue(), "WORKER", glob, "SET", "quiet", off ? "off" : "on"});
  if (context.json) {
    nlohmann::json line = {{"quiet", !off}};
    put_bytes(line, "worker", worker);
    print_json(line);
  } else {
    std::printf("%s: %s\n", printable(worker).c_str(), off ? "gets jobs" : "quiet");
  }
  return kDone;
}

}  // namespace

std::span<const CommandRow> worker_commands() {
  static const CommandRow kRows[] = {
      {"workers",
       "QUEUE",
       "show the workers of a queue: what they run, and when they were seen last",
       nullptr,
       {},
       run_workers,
       "sluice workers exec"},
      {"quiet",
       "QUEUE WORKER",
       "give a worker no more jobs; what it runs continues",
       "The worker hears of it with its next heartbeat, and can exit when its jobs have ended.",
       {kQuietOptions},
       run_quiet,
       "sluice quiet exec host-7"},
  };
  return kRows;
}

}  // namespace sluice::cli

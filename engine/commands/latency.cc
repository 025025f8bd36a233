// LATENCY: slow events, and histograms of command times.
#include "engine/commands/latency.h"

#include <algorithm>
#include <cstdio>

#include "engine/clients/latency_monitor.h"
#include "engine/commands/families.h"
#include "engine/commands/help.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"

namespace sluice {

LatencySum command_latencies(Engine& engine, const Command& command) {
  LatencySum sum;
  engine.for_each_execution([&](Execution& execution) {
    const auto* histogram =
        execution.statistics.of(command.id).latencies.load(std::memory_order_acquire);
    if (histogram != nullptr) sum.add(*histogram);
  });
  return sum;
}

namespace {

// --- Events ---

void latency_latest_command(Call& call) {
  const std::vector<LatencyEvent> events = call.engine.latency_monitor().events();
  call.reply.array(events.size());
  for (const LatencyEvent& event : events) {
    call.reply.array(4);
    call.reply.bulk(event.name);
    call.reply.integer(event.samples.back().unix_s);
    call.reply.integer(event.samples.back().latency_ms);
    call.reply.integer(event.longest_ms);
  }
}

void latency_history_command(Call& call) {
  const auto event = call.engine.latency_monitor().find(call.args[2]);
  if (!event) return call.reply.array(0);
  call.reply.array(event->samples.size());
  for (const LatencySample& sample : event->samples) {
    call.reply.array(2);
    call.reply.integer(sample.unix_s);
    call.reply.integer(sample.latency_ms);
  }
}

void latency_reset_command(Call& call) {
  LatencyMonitor& monitor = call.engine.latency_monitor();
  if (call.args.size() == 2) {
    return call.reply.integer(static_cast<int64_t>(monitor.reset_all()));
  }
  int64_t reset = 0;
  for (const Bytes name : call.args.subspan(2)) reset += monitor.reset(name) ? 1 : 0;
  call.reply.integer(reset);
}

// The age as "3s", "12m", "5h" or "2d".
std::string age_text(int64_t seconds) {
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 86400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

// A column for each sample, with a height by its latency and its age below.
std::string graph_of(const LatencyEvent& event, int64_t now_s) {
  constexpr int64_t kRows = 4;
  int64_t high_ms = 0;
  int64_t low_ms = INT64_MAX;
  size_t label_rows = 0;
  std::vector<std::string> labels;
  for (const LatencySample& sample : event.samples) {
    high_ms = std::max(high_ms, sample.latency_ms);
    low_ms = std::min(low_ms, sample.latency_ms);
    labels.push_back(age_text(now_s - sample.steady_s));
    label_rows = std::max(label_rows, labels.back().size());
  }
  std::string text = event.name + " - high " + std::to_string(high_ms) + " ms, low " +
                     std::to_string(low_ms) + " ms (all time high " +
                     std::to_string(event.longest_ms) + " ms)\n" + std::string(80, '-') + "\n";
  for (int64_t row = kRows; row > 0; --row) {
    for (const LatencySample& sample : event.samples) {
      // The lowest sample still has a bar.
      const int64_t range = high_ms - low_ms;
      const int64_t height =
          range == 0 ? kRows : 1 + (sample.latency_ms - low_ms) * (kRows - 1) / range;
      text += height > row ? '|' : height == row ? '#' : ' ';
    }
    text += '\n';
  }
  for (size_t row = 0; row < label_rows; ++row) {
    text += '\n';
    for (const std::string& label : labels) text += row < label.size() ? label[row] : ' ';
  }
  return text + "\n";
}

void latency_graph_command(Call& call) {
  const auto event = call.engine.latency_monitor().find(call.args[2]);
  if (!event) {
    return call.reply.error("ERR No samples available for event '" + std::string(call.args[2]) +
                            "'");
  }
  call.reply.verbatim("txt", graph_of(*event, call.engine.server().steady_time_us() / 1'000'000));
}

std::string line_of(const LatencyEvent& event, int64_t now_s) {
  int64_t total_ms = 0;
  for (const LatencySample& sample : event.samples) total_ms += sample.latency_ms;
  const auto count = static_cast<int64_t>(event.samples.size());
  char text[300];
  std::snprintf(
      text, sizeof(text),
      "%lld in the last %s, %lld ms on average, the latest one %s ago; the longest of all "
      "took %lld ms.\n",
      static_cast<long long>(count), age_text(now_s - event.samples.front().steady_s).c_str(),
      static_cast<long long>(total_ms / count),
      age_text(now_s - event.samples.back().steady_s).c_str(),
      static_cast<long long>(event.longest_ms));
  return event.name + ": " + text;
}

void latency_doctor_command(Call& call) {
  if (call.engine.latency_event_ticks.load() == UINT64_MAX) {
    return call.reply.verbatim(
        "txt",
        "Latency monitoring is off: latency-monitor-threshold is 0. Use CONFIG SET "
        "latency-monitor-threshold <milliseconds> to turn it on.\n");
  }
  const std::vector<LatencyEvent> events = call.engine.latency_monitor().events();
  if (events.empty()) {
    return call.reply.verbatim("txt",
                               "No event has reached latency-monitor-threshold since the start or "
                               "the last LATENCY RESET.\n");
  }
  std::string text =
      "Events that have reached latency-monitor-threshold, by kind (one for each "
      "second in which any happened):\n\n";
  bool commands = false;
  bool expiry = false;
  for (const LatencyEvent& event : events) {
    text += "- " + line_of(event, call.engine.server().steady_time_us() / 1'000'000);
    expiry = expiry || event.name == "expire-cycle";
    commands = commands || event.name != "expire-cycle";
  }
  text += "\nAdvice:\n\n";
  if (commands) {
    text +=
        "- SLOWLOG GET lists the slow commands, if slowlog-log-slower-than is not greater than "
        "this threshold.\n"
        "- Commands that walk through everything (KEYS, SMEMBERS of a large set, SORT, long "
        "scripts) block all others; SCAN, SSCAN, HSCAN and ZSCAN work in steps.\n"
        "- DEL of a large collection removes it at once; LTRIM, SPOP and ZREMRANGEBYRANK remove "
        "it in parts.\n";
  }
  if (expiry) {
    text +=
        "- Many keys, or very large ones, expired at the same moment: vary their times to "
        "live.\n";
  }
  call.reply.verbatim("txt", text);
}

// --- Histograms ---

void reply_histogram(Reply& reply, const Command& command, const LatencySum& sum) {
  reply.bulk(CommandTable::full_name(command));
  reply.map(2);
  reply.bulk("calls");
  reply.integer(static_cast<int64_t>(sum.count()));
  reply.bulk("histogram_usec");
  const size_t mark = reply.open_array();
  size_t pairs = 0;
  uint64_t before = 0;
  // As in Redis: buckets up to about 1, 2, 4, ... microseconds, without those that add no calls.
  for (uint64_t bound_ns = 1024; before < sum.count(); bound_ns *= 2) {
    const uint64_t shown_ns = std::min(bound_ns, LatencyHistogram::kMostNs);
    const uint64_t count = sum.count_up_to(shown_ns);
    if (count == before) continue;
    before = count;
    ++pairs;
    const size_t bucket = LatencyHistogram::bucket_of(shown_ns);
    reply.integer(static_cast<int64_t>(LatencyHistogram::highest_ns(bucket) / 1000));
    reply.integer(static_cast<int64_t>(count));
  }
  reply.close_map(mark, pairs);
}

void latency_histogram_command(Call& call) {
  std::vector<const Command*> rows;
  const CommandTable& table = CommandTable::instance();
  if (call.args.size() == 2) {
    for (size_t id = 0; id < table.id_limit(); ++id) rows.push_back(&table.by_id(id));
  }
  for (const Bytes name : call.args.subspan(2)) {
    const Command* command = table.find_by_full_name(name);
    if (command == nullptr) continue;
    rows.push_back(command);
    for (const Command& subcommand : command->subcommands) rows.push_back(&subcommand);
  }
  const size_t mark = call.reply.open_array();
  size_t count = 0;
  for (const Command* command : rows) {
    const LatencySum sum = command_latencies(call.engine, *command);
    if (sum.count() == 0) continue;
    reply_histogram(call.reply, *command, sum);
    ++count;
  }
  call.reply.close_map(mark, count);
}

// --- Rows ---

constexpr uint32_t kFlags = kAdmin | kNoScript | kLoading | kStale;
constexpr const char* kTips =
    "nondeterministic_output request_policy:all_nodes response_policy:special";

const Command kSubcommands[] = {
    {.name = "graph",
     .flags = kFlags,
     .handler = latency_graph_command,
     .since = "2.8.13",
     .summary = "Draws the latencies of an event.",
     .syntax = "event",
     .tips = kTips},
    {.name = "histogram",
     .flags = kFlags,
     .handler = latency_histogram_command,
     .since = "7.0.0",
     .complexity =
         "O(N) where N is the number of commands with latency information being retrieved.",
     .summary = "Counts the calls of a command that took at most 1, 2, 4, ... microseconds.",
     .syntax = "[command [command ...]]",
     .tips = kTips},
    {.name = "doctor",
     .flags = kFlags,
     .handler = latency_doctor_command,
     .since = "2.8.13",
     .summary = "Reports slow events in words.",
     .tips = kTips},
    {.name = "reset",
     .flags = kFlags,
     .handler = latency_reset_command,
     .since = "2.8.13",
     .summary = "Removes events.",
     .syntax = "[event [event ...]]",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "history",
     .flags = kFlags,
     .handler = latency_history_command,
     .since = "2.8.13",
     .summary = "Lists the times and latencies of an event.",
     .syntax = "event",
     .tips = kTips},
    {.name = "latest",
     .flags = kFlags,
     .handler = latency_latest_command,
     .since = "2.8.13",
     .summary = "Lists all events with their latest and greatest latencies.",
     .tips = kTips},
    help_row("2.8.13"),
};

const Command kLatencyRows[] = {
    {.name = "latency",
     .flags = kContainer,
     .subcommands = kSubcommands,
     .since = "2.8.13",
     .complexity = "Depends on subcommand.",
     .summary = "Reports slow events."},
};

}  // namespace

const CommandFamily kLatencyCommands = {"server", kLatencyRows};

}  // namespace sluice

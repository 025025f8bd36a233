// Context: what a command of sluice needs to run, and helpers that several commands share.
//
// Used by one thread; lives for one command.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "tools/cli/arguments.h"
#include "tools/cli/connection.h"
#include "tools/cli/failure.h"
#include "tools/cli/table.h"

namespace sluice::cli {

class Context {
 public:
  // `rows` are all commands. Throws a usage error.
  Context(const Arguments& given, std::span<const CommandRow> rows);

  const Arguments& arguments;
  const std::span<const CommandRow> commands;
  Connection connection;
  const Screen screen = Screen::of_output();
  const bool json;

  const std::string& queue() const { return arguments.operands()[0]; }
  const std::string& operand(size_t at) const { return arguments.operands()[at]; }
  size_t operands() const { return arguments.operands().size(); }

  // The server's clock in unix milliseconds; this machine's clock if the user may not read it.
  int64_t server_now_ms();

  // Prints one line to standard error that is no failure; a JSON object with --json.
  void note(const std::string& text) const;
  // So many queues are left out (is_hidden); says nothing of none.
  void note_hidden(size_t queues) const;
};

// The reply to TIME in unix milliseconds; this machine's clock if it is an error.
int64_t time_ms_of(const RespValue& time);

// Prints the value as one line of standard output.
void print_json(const nlohmann::json& value);

// Says on standard error that so many bytes of a log are gone.
void tell_of_lost_log(const Context& context, int64_t bytes);

// How long a command that follows events or a log blocks in one call, and waits for its reply.
inline constexpr int64_t kFollowMs = 5000;
inline constexpr int64_t kFollowPatienceMs = kFollowMs + 10'000;

// Options of a selector, as Q.LIST and similar commands take them after WHERE.
std::span<const Option> selector_options();
// Appends the selector options that were given. Throws a usage error if two exclude each other.
void append_selector(const Arguments& arguments, Words& to, bool with_states = true);

// The queues of the connection's database, sorted by name.
std::vector<std::string> find_queues(Connection& connection);

// Whether a user's rights to keys refuse a queue, which a look at all queues leaves out.
bool is_hidden(const Failure& failure);

// Throws if the queue does not exist, and suggests the nearest name. A queue that the user may not
// query counts as existing.
void require_queue(Connection& connection, const std::string& queue, const char* otherwise = "");
// The same for the command's queue.
void require_queue(Context& context, const char* otherwise = "");
// All of standard input. A terminal can be asked a question afterwards. Throws if it cannot be
// read, or is longer than any payload.
std::string read_input();
// The contents of a file; - is standard input.
std::string read_text(const std::string& path);

// If standard input is a terminal, asks the question there, wherever the output goes, and returns
// whether the answer is yes; else true.
bool is_confirmed(const std::string& question);

// config --export.
int export_config(Context& context);
// nack --worker: `options` are those that the server takes.
int nack_worker(Context& context, std::span<const Option> options);

// The groups of commands, one per file.
std::span<const CommandRow> queue_commands();
std::span<const CommandRow> job_commands();
std::span<const CommandRow> lease_commands();
std::span<const CommandRow> apply_commands();
std::span<const CommandRow> bulk_commands();
std::span<const CommandRow> event_commands();
std::span<const CommandRow> log_commands();
std::span<const CommandRow> watch_commands();
std::span<const CommandRow> worker_commands();
std::span<const CommandRow> live_commands();
std::span<const CommandRow> group_commands();
std::span<const CommandRow> backup_commands();
std::span<const CommandRow> help_commands();

}  // namespace sluice::cli

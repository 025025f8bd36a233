// Context: what a command of sluice works with. And what several of them share.
//
// One thread; lives for one command.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "tools/cli/arguments.h"
#include "tools/cli/connection.h"
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

  // The server's clock, unix milliseconds; this machine's where it may not be asked.
  int64_t server_now_ms();
};

// One line of standard output.
void print_json(const nlohmann::json& value);

// The states of a job, for completion.
inline constexpr const char* kStates =
    "blocked delayed pending active completed failed cancelled expired";

// Options of a selector, as Q.LIST and its kind take them behind WHERE.
std::span<const Option> selector_options();
// Appends what of them was given. Throws a usage error where two exclude each other.
void append_selector(const Arguments& arguments, Words& to, bool with_states = true);

// The queues of the connection's database by name.
std::vector<std::string> find_queues(Connection& connection);

// Throws where the queue is not there, with the nearest name that is. One that may not be asked for
// counts as there.
void require_queue(Context& context, const char* otherwise = "");
// Whether somebody sits at a terminal who can be asked; if so, whether he says yes.
bool is_confirmed(const std::string& question);

// The groups of commands, a file each.
std::span<const CommandRow> queue_commands();
std::span<const CommandRow> job_commands();
std::span<const CommandRow> lease_commands();
std::span<const CommandRow> bulk_commands();
std::span<const CommandRow> event_commands();
std::span<const CommandRow> live_commands();
std::span<const CommandRow> help_commands();

}  // namespace sluice::cli

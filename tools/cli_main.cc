// sluice: a command-line client for the queues of a server.
//
//   sluice [option...] COMMAND [argument...]        sluice --help lists the commands
//
// It uses RESP like any other client. Exit status: 0 success, 1 the server replied with an error, 2
// wrong usage (of diff-config 1), 3 no connection, or it was lost.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "net/http/json_text.h"
#include "net/process/standard_files.h"
#include "net/process/version.h"
#include "tools/cli/candidates.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/help.h"
#include "tools/cli/text.h"

namespace sluice::cli {
namespace {

std::vector<CommandRow> all_commands() {
  std::vector<CommandRow> rows;
  for (const auto group :
       {queue_commands(), apply_commands(), live_commands(), job_commands(), lease_commands(),
        bulk_commands(), event_commands(), log_commands(), watch_commands(), worker_commands(),
        group_commands(), backup_commands(), help_commands()}) {
    rows.insert(rows.end(), group.begin(), group.end());
  }
  return rows;
}

Failure missing_command(std::span<const CommandRow> rows) {
  Failure failure = usage_error("a command is missing; sluice --help lists them");
  for (const CommandRow& row : rows) failure.allowed.emplace_back(row.name);
  return failure;
}

int run(const std::vector<std::string>& words, std::span<const CommandRow> rows) {
  if (words == std::vector<std::string>{"--version"}) {
    std::printf("sluice %s\n", kSluiceVersion);
    return kDone;
  }
  if (!words.empty() && words[0] == "--complete") {
    print_candidates(std::span(words).subspan(1), rows);
    return kDone;
  }
  const Arguments arguments = Arguments::parse(words, rows);
  if (arguments.has("--help")) {
    const CommandRow* row = arguments.command();
    std::fputs((row == nullptr ? general_help(rows) : command_help(*row)).c_str(), stdout);
    return kDone;
  }
  if (arguments.command() == nullptr) {
    if (arguments.has("--json")) throw missing_command(rows);
    std::fputs(general_help(rows).c_str(), stderr);
    return kUsageError;
  }
  Context context(arguments, rows);
  return arguments.command()->run(context);
}

// Whether the command of these words, which may be wrong, exits with 1 for wrong usage.
bool usage_is_error(std::span<const std::string> words, std::span<const CommandRow> rows) {
  for (const std::string& word : words) {
    for (const CommandRow& row : rows) {
      if (word == row.name) return row.usage_is_error;
    }
  }
  return false;
}

int run(const std::vector<std::string>& words) {
  const std::vector<CommandRow> rows = all_commands();
  try {
    return run(words, rows);
  } catch (Failure& failure) {
    if (failure.code != kUsageError || !usage_is_error(words, rows)) throw;
    failure.code = kServerError;
    failure.word = "USAGE";
    throw;
  }
}

// Prints one line to standard error; a JSON object if the command was to print JSON. Returns the
// exit code.
int print_failure(const Failure& failure, bool as_json) {
  std::fflush(stdout);
  if (!as_json) {
    std::fprintf(stderr, "sluice: %s\n", printable(failure.text).c_str());
    return failure.code;
  }
  const std::string text = dump_json({{"error", to_json(failure)}});
  std::fprintf(stderr, "%s\n", text.c_str());
  return failure.code;
}

}  // namespace
}  // namespace sluice::cli

int main(int count, char** values) {
  using sluice::cli::Failure;
  sluice::occupy_standard_files();
  sluice::cli::use_utf8();
  // A lost connection shall be an error of the write and not end the program.
  std::signal(SIGPIPE, SIG_IGN);
  int code = 0;
  const std::vector<std::string> words(values + 1, values + count);
  const bool as_json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    code = sluice::cli::run(words);
  } catch (const Failure& failure) {
    code = sluice::cli::print_failure(failure, as_json);
  } catch (const std::exception& error) {
    code = sluice::cli::print_failure({sluice::cli::kServerError, error.what()}, as_json);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    // A closed pipe (head, less) is not worth a message.
    if (errno != EPIPE) {
      const std::string why = std::string("cannot write the output: ") + std::strerror(errno);
      sluice::cli::print_failure({sluice::cli::kServerError, why}, as_json);
    }
    if (code == 0) code = sluice::cli::kServerError;
  }
  return code;
}

// sluice: the queues of a server, on a command line.
//
//   sluice [option...] COMMAND [argument...]        sluice --help lists them
//
// It is a client as others are, over RESP. Exit status: 0 done, 1 the server answered an error,
// 2 wrong usage, 3 no connection.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "net/version.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/help.h"
#include "tools/cli/text.h"

namespace sluice::cli {
namespace {

std::vector<CommandRow> all_commands() {
  std::vector<CommandRow> rows;
  for (const auto group : {queue_commands(), live_commands(), job_commands(), lease_commands(),
                           bulk_commands(), event_commands(), help_commands()}) {
    rows.insert(rows.end(), group.begin(), group.end());
  }
  return rows;
}

int run(const std::vector<std::string>& words) {
  const std::vector<CommandRow> rows = all_commands();
  if (words == std::vector<std::string>{"--version"}) {
    std::printf("sluice %s\n", kSluiceVersion);
    return kDone;
  }
  const Arguments arguments = Arguments::parse(words, rows);
  if (arguments.has("--help")) {
    const CommandRow* row = arguments.command();
    std::fputs((row == nullptr ? general_help(rows) : command_help(*row)).c_str(), stdout);
    return kDone;
  }
  if (arguments.command() == nullptr) {
    std::fputs(general_help(rows).c_str(), stderr);
    return kUsageError;
  }
  Context context(arguments, rows);
  return arguments.command()->run(context);
}

}  // namespace
}  // namespace sluice::cli

int main(int count, char** values) {
  using sluice::cli::Failure;
  sluice::cli::use_utf8();
  // A connection that was lost is an error of the write, and no end of the program.
  std::signal(SIGPIPE, SIG_IGN);
  int code = 0;
  try {
    code = sluice::cli::run(std::vector<std::string>(values + 1, values + count));
  } catch (const Failure& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "sluice: %s\n", failure.text.c_str());
    code = failure.code;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    // Whoever has seen enough (head, less) knows it.
    if (errno != EPIPE) std::perror("sluice: the output cannot be written");
    if (code == 0) code = sluice::cli::kServerError;
  }
  return code;
}

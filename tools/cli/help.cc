#include "tools/cli/help.h"

#include <algorithm>
#include <cstdio>

#include "net/process/version.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

std::string option_usage(const Option& option) {
  std::string usage = option.name;
  if (option.value != nullptr) usage += std::string(" ") + option.value;
  return usage;
}

// What fits on a usual terminal.
constexpr size_t kLineBytes = 80;

// Appends the words of a text in lines of at most kLineBytes; `column` bytes of the first one are
// taken, and as many blanks begin the others.
void append_words(Bytes text, size_t column, std::string& out) {
  size_t at = column;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const bool begins = at == column;
    if (!begins && at + 1 + end > kLineBytes) {
      out += "\n" + std::string(column, ' ');
      at = column;
    } else if (!begins) {
      out += ' ';
      ++at;
    }
    out += text.substr(0, end);
    at += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += "\n";
}

// Lines of prose that follow each other are one paragraph, unless the first one is short or an
// indented one of an example.
void append_prose(Bytes text, std::string& out) {
  constexpr size_t kShortBytes = 70;
  std::string paragraph;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const Bytes line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with(' ')) {
      out += std::string(line) + "\n";
      continue;
    }
    paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    const bool goes_on = line.size() >= kShortBytes && at < text.size() && text[at] != ' ';
    if (goes_on) continue;
    append_words(paragraph, 0, out);
    paragraph.clear();
  }
}

void append_options(std::span<const Option> options, std::string& out) {
  constexpr size_t kWidth = 20;
  constexpr size_t kColumn = kWidth + 3;
  for (const Option& option : options) {
    const std::string usage = option_usage(option);
    out += "  " + padded(usage, kWidth) + " ";
    if (usage.size() > kWidth) out += "\n" + std::string(kColumn, ' ');
    std::string help = option.help;
    if (option.choices != nullptr) help += ": " + std::string(option.choices);
    append_words(help, kColumn, out);
  }
}

}  // namespace

std::string general_help(std::span<const CommandRow> rows) {
  std::string out =
      "usage: sluice [option...] COMMAND [argument...]\n\n"
      "Inspects and changes the queues of a Sluice server.\n\ncommands:\n";
  for (const CommandRow& row : rows) {
    out += "  " + padded(row.name, 13);
    append_words(row.help, 15, out);
  }
  out += "\ncommon options:\n";
  append_options(common_options(), out);
  out +=
      "\nexamples:\n"
      "  sluice top                                  look at the queues, and steer them\n"
      "  sluice add exec 'print(1)' --id report      add a job\n"
      "  sluice watch exec report                    watch it until it has ended\n"
      "  sluice jobs --failed --by error             what has failed, and how often\n"
      "  sluice config exec max_active=4 --create    configure a queue\n"
      "\nsluice COMMAND --help shows a command's options and an example. In a pipe a tab divides\n"
      "the columns. Errors and notes go to standard error, as JSON with --json. QUEUE.md\n"
      "describes the options in detail.\n"
      "Exit codes: 0 success, 1 the server replied with an error, 2 wrong usage, 3 no\n"
      "connection, or it was lost: the error says whether a change may have been made.\n";
  return out;
}

std::string command_help(const CommandRow& row) {
  std::string out = std::string("usage: sluice ") + row.name;
  if (*row.operands != '\0') out += std::string(" ") + row.operands;
  const auto has_options = [](std::span<const Option> options) { return !options.empty(); };
  const bool any = std::any_of(row.options.begin(), row.options.end(), has_options);
  out += std::string(any ? " [option...]" : "") + "\n\n" + row.help + "\n";
  if (row.details != nullptr) append_prose(row.details, out);
  if (any) out += "\noptions:\n";
  for (const auto& options : row.options) append_options(options, out);
  const auto has_durations = [](std::span<const Option> options) {
    return std::any_of(options.begin(), options.end(), takes_duration);
  };
  if (std::any_of(row.options.begin(), row.options.end(), has_durations)) {
    out += "  MS is milliseconds, or has a unit: 250ms, 5s, 10m, 1h, 7d\n";
  }
  if (row.more_help != nullptr) out += "\n" + row.more_help();
  out += "\nexample: " + std::string(row.example) + "\n";
  out += "\ncommon options: sluice --help\n";
  return out;
}

namespace {

// Escapes lines of text for roff.
std::string roff(const std::string& text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\' || c == '-') out += '\\';
    out += c;
    begins = c == '\n';
  }
  return out;
}

}  // namespace

std::string man_page(std::span<const CommandRow> rows) {
  std::string out = ".TH SLUICE 1 \"\" \"sluice " + std::string(kSluiceVersion) +
                    "\" \"Sluice\"\n.SH NAME\nsluice \\- inspect and change the queues of a Sluice "
                    "server\n.SH SYNOPSIS\n.B sluice\n[option...] COMMAND "
                    "[argument...]\n.SH DESCRIPTION\n.nf\n" +
                    roff(general_help(rows)) + ".fi\n.SH COMMANDS\n";
  for (const CommandRow& row : rows) {
    out += ".SS " + std::string(row.name) + "\n.nf\n" + roff(command_help(row)) + ".fi\n";
  }
  return out + ".SH SEE ALSO\n.BR sluice\\-server (1)\n";
}

namespace {

constexpr Option kHelpOptions[] = {
    {"--man", nullptr, "print all help as a manual page"},
};

int run_help(Context& context) {
  if (context.arguments.has("--man")) {
    std::fputs(man_page(context.commands).c_str(), stdout);
    return kDone;
  }
  if (context.operands() == 0) {
    std::fputs(general_help(context.commands).c_str(), stdout);
    return kDone;
  }
  for (const CommandRow& row : context.commands) {
    if (context.operand(0) != row.name) continue;
    std::fputs(command_help(row).c_str(), stdout);
    return kDone;
  }
  throw usage_error("there is no command " + context.operand(0));
}

int run_completion(Context& context) {
  const std::string script = completion_script(context.operand(0));
  if (script.empty()) throw usage_error("completion supports bash, zsh and fish");
  std::fputs(script.c_str(), stdout);
  return kDone;
}

}  // namespace

std::span<const CommandRow> help_commands() {
  static const CommandRow kRows[] = {
      {"completion",
       "bash|zsh|fish",
       "print a shell completion script",
       "bash: source <(sluice completion bash)\n"
       "zsh:  source <(sluice completion zsh), after compinit\n"
       "fish: sluice completion fish | source",
       {},
       run_completion,
       "source <(sluice completion bash)"},
      {"help",
       "[COMMAND]",
       "show this help, or that of a command",
       nullptr,
       {kHelpOptions},
       run_help,
       "sluice help add"},
  };
  return kRows;
}

}  // namespace sluice::cli

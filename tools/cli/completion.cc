// The completion scripts. Each contains the commands, their options and the values of options. For
// what only the server knows they call `sluice --complete` (candidates.h).
#include "tools/cli/help.h"

namespace sluice::cli {

namespace {

// The text in single quotes, for any of the shells.
std::string quoted(const std::string& text, bool fish) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += fish ? "\\'" : "'\\''";
    } else if (c == '\\' && fish) {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// The words of "bash|zsh|fish" or "QUEUE [in|out|all]"; empty if none are known.
std::string operand_choices(const CommandRow& row) {
  const std::string operands = row.operands;
  if (operands.find('|') == std::string::npos || operands.find('.') != std::string::npos) return {};
  const size_t bracket = operands.rfind('[');
  std::string words = operands.substr(bracket == std::string::npos ? 0 : bracket + 1);
  for (char& c : words) {
    if (c == '|' || c == ']') c = ' ';
  }
  // A name in capitals is a placeholder.
  return words.find("PAYLOAD") == std::string::npos ? words : "";
}

std::string option_names(std::span<const Option> options) {
  std::string out;
  for (const Option& option : options) out += std::string(option.name) + " ";
  return out;
}

std::string names_of(const CommandRow& row) {
  std::string out;
  for (const auto& options : row.options) out += option_names(options);
  return out;
}

std::string command_names(std::span<const CommandRow> rows) {
  std::string out;
  for (const CommandRow& row : rows) out += std::string(row.name) + " ";
  return out;
}

// What may follow an option: files, its choices, or anything.
std::string value_case(const std::string& pattern, const Option& option) {
  if (takes_path(option)) return "    " + pattern + ") files=yes; return 0 ;;\n";
  const std::string choices = option.choices == nullptr ? "" : option.choices;
  return "    " + pattern + ") offers=" + quoted(choices, false) + "; return 0 ;;\n";
}

// `case` branches "command:--option) …"; a command's own options come before common ones.
std::string value_cases(std::span<const CommandRow> rows) {
  std::string out;
  for (const CommandRow& row : rows) {
    for (const auto& options : row.options) {
      for (const Option& option : options) {
        if (option.value == nullptr) continue;
        out += value_case(std::string(row.name) + ":" + option.name, option);
      }
    }
  }
  for (const Option& option : common_options()) {
    if (option.value != nullptr) out += value_case(std::string("*:") + option.name, option);
  }
  return out;
}

std::string word_cases(std::span<const CommandRow> rows) {
  std::string out;
  for (const CommandRow& row : rows) {
    out += std::string("    ") + row.name +
           ") offers=" + quoted(names_of(row) + operand_choices(row), false) + " ;;\n";
  }
  return out;
}

// For bash and zsh: sets `offers` to what may follow the given words, or sets `files`.
std::string choose_function(std::span<const CommandRow> rows) {
  std::string takes_value;
  for (const Option& option : common_options()) {
    if (option.value == nullptr) continue;
    takes_value += std::string(takes_value.empty() ? "" : "|") + option.name;
  }
  return "_sluice_words() {\n"
         "  local command='' before='' word\n"
         "  for word in \"$@\"; do\n"
         "    case \"$before\" in " +
         takes_value +
         ") before=''; continue ;; esac\n"
         "    before=$word\n"
         "    case \"$word\" in -*) ;; *) [ -n \"$command\" ] || command=$word ;; esac\n"
         "  done\n"
         "  before=''\n"
         "  for word in \"$@\"; do before=$word; done\n"
         "  case \"$command:$before\" in\n" +
         value_cases(rows) +
         "  esac\n"
         "  case \"$command\" in\n"
         "    '') offers=" +
         quoted(command_names(rows), false) + " ;;\n" + word_cases(rows) +
         "  esac\n"
         "  offers=\"$offers \"" +
         quoted(option_names(common_options()), false) +
         "\n"
         "}\n";
}

std::string bash_script(std::span<const CommandRow> rows) {
  return "# bash completion of sluice; made by: sluice completion bash\n" + choose_function(rows) +
         "_sluice() {\n"
         "  local offers='' files='' current=${COMP_WORDS[COMP_CWORD]}\n"
         "  _sluice_words \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"\n"
         "  [ -n \"$files\" ] || offers=\"$offers $(command sluice --complete "
         "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\" 2>/dev/null)\"\n"
         "  if [ -n \"$files\" ]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
         "  else\n"
         "    COMPREPLY=($(compgen -W \"$offers\" -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _sluice sluice\n";
}

std::string zsh_script(std::span<const CommandRow> rows) {
  return "#compdef sluice\n# made by: sluice completion zsh\n" + choose_function(rows) +
         "_sluice() {\n"
         "  local -a before\n"
         "  before=(\"${(@)words[2,CURRENT-1]}\")\n"
         "  local offers='' files=''\n"
         "  _sluice_words \"${before[@]}\"\n"
         "  [ -n \"$files\" ] || offers=\"$offers $(command sluice --complete "
         "\"${before[@]}\" 2>/dev/null)\"\n"
         "  if [ -n \"$files\" ]; then _files; else compadd -- ${=offers}; fi\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _sluice ]; then _sluice; else compdef _sluice sluice; fi\n";
}

void append_fish_option(const Option& option, const std::string& condition, std::string& out) {
  const std::string name = option.name;
  out += "complete -c sluice" + condition;
  out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.value != nullptr) out += takes_path(option) ? " -r -F" : " -x";
  if (option.choices != nullptr) out += " -a " + quoted(option.choices, true);
  out += " -d " + quoted(option.help, true) + "\n";
}

// Finds the command before the cursor: the first word that is neither an option nor an option's
// value. fish's own functions would also accept an option's value, or a queue with the name of a
// command.
std::string fish_functions() {
  std::string takes_value;
  for (const Option& option : common_options()) {
    if (option.value != nullptr) takes_value += std::string(" ") + option.name;
  }
  return "function __sluice_command\n"
         "  set -l words (commandline -opc)\n"
         "  set -e words[1]\n"
         "  set -l value no\n"
         "  for word in $words\n"
         "    if test $value = yes\n"
         "      set value no\n"
         "    else if contains -- $word" +
         takes_value +
         "\n"
         "      set value yes\n"
         "    else if not string match -q -- '-*' $word\n"
         "      echo $word\n"
         "      return 0\n"
         "    end\n"
         "  end\n"
         "  return 1\n"
         "end\n"
         "function __sluice_begins\n"
         "  not __sluice_command >/dev/null\n"
         "end\n"
         "function __sluice_is\n"
         "  set -l name (__sluice_command)\n"
         "  and contains -- $name $argv\n"
         "end\n";
}

// Not after a command that has an option of the same name.
std::string fish_condition(const Option& common, std::span<const CommandRow> rows) {
  std::string commands;
  for (const CommandRow& row : rows) {
    for (const auto& options : row.options) {
      for (const Option& option : options) {
        if (Bytes(option.name) == common.name) commands += std::string(" ") + row.name;
      }
    }
  }
  if (commands.empty()) return "";
  return " -n " + quoted("not __sluice_is" + commands, true);
}

std::string fish_script(std::span<const CommandRow> rows) {
  std::string out = "# fish completion of sluice; made by: sluice completion fish\n" +
                    fish_functions() + "complete -c sluice -f\n" +
                    "complete -c sluice -a '(set -l words (commandline -opc); "
                    "command -q sluice; and command sluice --complete $words[2..] 2>/dev/null)'\n";
  for (const Option& option : common_options()) {
    append_fish_option(option, fish_condition(option, rows), out);
  }
  for (const CommandRow& row : rows) {
    out += "complete -c sluice -n __sluice_begins -a " + std::string(row.name) + " -d " +
           quoted(row.help, true) + "\n";
    const std::string condition = " -n " + quoted(std::string("__sluice_is ") + row.name, true);
    for (const auto& options : row.options) {
      for (const Option& option : options) append_fish_option(option, condition, out);
    }
    const std::string choices = operand_choices(row);
    if (!choices.empty()) {
      out += "complete -c sluice" + condition + " -a " + quoted(choices, true) + "\n";
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const std::string& shell, std::span<const CommandRow> rows) {
  if (shell == "bash") return bash_script(rows);
  if (shell == "zsh") return zsh_script(rows);
  if (shell == "fish") return fish_script(rows);
  return {};
}

}  // namespace sluice::cli

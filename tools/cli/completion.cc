// The completion scripts. What may follow, they learn of `sluice --complete` (candidates.h).
#include "tools/cli/help.h"

namespace sluice::cli {

namespace {

constexpr const char* kBash = R"sh(# bash completion of sluice; made by: sluice completion bash
_sluice() {
  local offers current=${COMP_WORDS[COMP_CWORD]}
  offers=$(command sluice --complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
  if [ "$offers" = "<files>" ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t offers <<<"$offers"
    COMPREPLY=($(compgen -W "${offers[*]%%$'\t'*}" -- "$current"))
  fi
}
complete -F _sluice sluice
)sh";

constexpr const char* kZsh = R"sh(#compdef sluice
# made by: sluice completion zsh
_sluice() {
  local offers="$(command sluice --complete "${(@)words[2,CURRENT-1]}" 2>/dev/null)"
  if [ "$offers" = "<files>" ]; then
    _files
  else
    compadd -- ${${(f)offers}%%$'\t'*}
  fi
}
if [ "$funcstack[1]" = _sluice ]; then _sluice; else compdef _sluice sluice; fi
)sh";

constexpr const char* kFish = R"sh(# fish completion of sluice; made by: sluice completion fish
function __sluice_offers
  set -l words (commandline -opc)
  set -l offers (command -q sluice; and command sluice --complete $words[2..] 2>/dev/null)
  if test "$offers" = "<files>"
    __fish_complete_path (commandline -ct)
  else
    string join -- \n $offers
  end
end
complete -c sluice -f -a "(__sluice_offers)"
)sh";

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return {};
}

}  // namespace sluice::cli

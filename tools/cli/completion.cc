// The completion scripts. What may follow, they learn of `sluice --complete` (candidates.h).
#include "tools/cli/help.h"

namespace sluice::cli {

namespace {

constexpr const char* kBash = R"sh(# bash completion of sluice; made by: sluice completion bash
_sluice() {
  local line=${COMP_LINE:0:COMP_POINT} word current cut='' quotes='["\'\''\\]' offers
  local -a words=()
  # bash divides words at : and = too: those without a blank between them are one.
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [ ${#words[@]} = 0 ] || [[ $line == [[:blank:]]* ]]; then words+=(''); fi
    line=${line#"${line%%[![:blank:]]*}"}
    line=${line#"$word"}
    words[-1]+=$word
  done
  # It replaces only what follows the last of them.
  [ "${words[-1]}" = "$word" ] || cut=${words[-1]%"${words[-1]##*[:=]}"}
  words=("${words[@]//$quotes/}")
  current=${words[-1]}
  mapfile -t offers < <(command sluice --complete "${words[@]:1:${#words[@]}-2}" 2>/dev/null)
  COMPREPLY=()
  if [ "${offers[0]-}" = "<files>" ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    offers=("${offers[@]:1}")
  fi
  COMPREPLY+=($(compgen -W "${offers[*]%%$'\t'*}" -- "$current"))
  COMPREPLY=("${COMPREPLY[@]#"$cut"}")
  [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -F _sluice sluice
)sh";

constexpr const char* kZsh = R"sh(#compdef sluice
# made by: sluice completion zsh
_sluice() {
  local -a offers=("${(@f)$(command sluice --complete "${(@Q)words[2,CURRENT-1]}" 2>/dev/null)}")
  if [ "$offers[1]" = "<files>" ]; then
    _files
    shift offers
  fi
  offers=("${(@)offers%%$'\t'*}")
  compadd -- "${(@)offers:#*=}"
  compadd -S '' -- "${(@M)offers:#*=}"
}
if [ "$funcstack[1]" = _sluice ]; then _sluice; else compdef _sluice sluice; fi
)sh";

constexpr const char* kFish = R"sh(# fish completion of sluice; made by: sluice completion fish
function __sluice_offers
  set -l words (commandline -opc)
  set -l offers (command -q sluice; and command sluice --complete $words[2..] 2>/dev/null)
  if test "$offers[1]" = "<files>"
    __fish_complete_path (commandline -ct)
    set -e offers[1]
  end
  string join -- \n $offers
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

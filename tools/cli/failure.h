// Failure: why the program sluice ends early, thrown from wherever that is found out.
//
// Every failure of a program of one command ends it, so it is an exception and not a value that
// each command would pass on; main prints it. What lives on through a failure (top, events
// --follow) catches it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice::cli {

enum ExitCode : int { kDone = 0, kServerError = 1, kUsageError = 2, kNoConnection = 3 };

struct Failure {
  ExitCode code;
  std::string text;  // one line, without the program's name
  // What BADFIELD is about might be, and the one that was probably meant.
  std::vector<std::string> allowed = {};
  std::string nearest = {};
};

inline Failure usage_error(std::string text) { return {kUsageError, std::move(text)}; }
inline Failure no_job_id(const std::string& id) {
  return usage_error("no job has the id " + (id.empty() ? "\"\"" : id) +
                     ": an id has 1 to 512 bytes and is not one of the words *, WHERE and ALL");
}

}  // namespace sluice::cli

// Failure: the reason why the program ends early, thrown where it is detected.
//
// The program runs one command, and every failure ends it. So a failure is an exception and not a
// value that each command would have to pass on; main prints it. Commands that survive a failure
// (top, events --follow) catch it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sluice::cli {

enum ExitCode : int { kDone = 0, kServerError = 1, kUsageError = 2, kNoConnection = 3, kGone = 6 };

struct Failure {
  ExitCode code;
  std::string text;  // one line, without the program's name
  // What was refused: its possible values, the one probably meant, and the field of BADFIELD.
  std::vector<std::string> allowed = {};
  std::string nearest = {};
  std::string field = {};
  // As in HTTP.md. Empty: the text begins with it, or it is that of the exit code.
  std::string word = {};
  // The server's reply, whose hints are members of the JSON.
  std::string reply = {};
};

// As --json prints it: code, detail, and the members that HTTP.md has for it.
nlohmann::json to_json(const Failure& failure);

inline Failure usage_error(std::string text) { return {kUsageError, std::move(text)}; }
inline Failure no_job(const std::string& shown_id) {
  return {kServerError, shown_id + ": there is no such job", {}, {}, {}, "NOJOB"};
}
inline Failure no_job_id(const std::string& id) {
  return usage_error("no job has the id " + (id.empty() ? "\"\"" : id) +
                     ": an id has 1 to 512 bytes and is not one of the words *, WHERE and ALL");
}

}  // namespace sluice::cli

#include "tools/cli/failure.h"

#include <nlohmann/json.hpp>

#include "net/http/json_text.h"
#include "net/http/problem.h"

namespace sluice::cli {

namespace {

std::string code_of(const Failure& failure) {
  if (!failure.word.empty()) return failure.word;
  if (failure.code == kUsageError) return "USAGE";
  if (failure.code == kNoConnection) return "NOCONNECTION";
  const size_t end = failure.text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  const bool has_code = failure.code == kServerError && end != 0 && end != std::string::npos &&
                        failure.text[end] == ' ';
  return has_code ? failure.text.substr(0, end) : "FAILED";
}

}  // namespace

nlohmann::json to_json(const Failure& failure) {
  nlohmann::json error = hints_of_error(failure.reply);
  error["code"] = code_of(failure);
  error["detail"] = text_to_json(failure.text);
  if (!failure.field.empty()) error["field"] = text_to_json(failure.field);
  if (!failure.allowed.empty()) error["allowed"] = failure.allowed;
  if (!failure.nearest.empty()) error["nearest"] = failure.nearest;
  return error;
}

}  // namespace sluice::cli

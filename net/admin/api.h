// What the handlers share: bodies and parameters into the words of commands, replies into answers.
//
// A reader collects the first thing that is wrong; the handler asks once, by failed(), before it
// runs anything. Threads as Exchange has them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "net/http/exchange.h"
#include "net/http/json_text.h"
#include "net/http/problem.h"

namespace sluice {

using Words = std::vector<std::string>;

// What is wrong with an id that is_job_id() refuses.
inline constexpr const char* kNoJobId =
    "must have 1 to 512 bytes, and be none of the reserved words *, WHERE and ALL";

// Longest waiting of a long poll; who wants more asks again.
inline constexpr int64_t kMaxWaitMs = 60'000;

void respond_json(Exchange& exchange, const nlohmann::json& value, unsigned status = 200);
// An answer of one member that is a long array, perhaps with `cursor` beside it: each element
// becomes text as it comes, so that the answer can be made in several turns.
class JsonList {
 public:
  explicit JsonList(const char* member) : member_(member) {}

  void add(const nlohmann::json& element);
  size_t size() const { return size_; }
  // One of these, once. A cursor of null: that was the end of the list.
  void respond(Exchange& exchange, const nlohmann::json& cursor);
  void respond(Exchange& exchange);

 private:
  void respond_behind(Exchange& exchange, const std::string& begin);

  const char* member_;
  std::string elements_;
  size_t size_ = 0;
};

// True, with the problem responded, where the reply is an error. It is that of the command that the
// exchange has run last.
bool respond_error(Exchange& exchange, const RespValue& reply);
// The same where a script keeps the shards, of this very thread perhaps: for what locks them
// itself.
bool respond_busy(Exchange& exchange);
// What is wrong with a member or a parameter.
struct BadField {
  std::string field;
  std::string why;
  std::vector<std::string> allowed = {};  // every word that might stand there; empty: others
  std::string nearest = {};               // of them, where one is near
};
void respond_bad_field(Exchange& exchange, const BadField& bad);
// The id in the path, where a command also takes the word WHERE in its place. True, with the
// problem responded, where it is that word.
bool respond_where(Exchange& exchange);

// One option of a command and the member or parameter that gives it.
struct OptionRow {
  enum class Type : uint8_t {
    kInteger,
    kDuration,  // milliseconds, or a text with units (5s, 1h30m)
    kText,      // also member_base64
    kName,      // the same; the word is the glob that matches it and nothing else
    kTexts,     // an array of strings; a parameter that is repeated
    kPair,      // an array of two durations: two words
    kTextPairs  // an object of strings; of a parameter name=value, repeated
  };
  const char* name;
  const char* word;  // "": its words stand alone
  Type type = Type::kText;
};

// The JSON object of a request's body, member by member.
class BodyReader {
 public:
  // No body is an empty object.
  explicit BodyReader(Exchange& exchange);

  // Appends the words of the options that are there.
  void options(const std::vector<OptionRow>& rows, Words& words);
  // Members that are no options. Nothing: it is not there, or bad.
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  std::optional<int64_t> duration(const std::string& name, int64_t low, int64_t high);
  std::optional<std::string> bytes(const std::string& name);  // an integer's digits as well
  std::optional<std::string> text(const std::string& name);   // a string of JSON, nothing else
  std::optional<bool> boolean(const std::string& name);
  // An object within: its own reader's options. Null where it is not there.
  std::optional<BodyReader> object(const std::string& name);
  // Names of members that nobody has asked for are mistakes. True, with the problem responded: it
  // has failed.
  bool failed();
  // All members have been asked for.
  bool knows_all() const;
  // Members that nobody asks for are no mistakes: the body is somebody else's as well.
  void allow_others() { others_allowed_ = true; }
  // Fields with any plain value, as the texts that a configuration takes.
  Words fields();
  void fail(Bytes field, Bytes why);
  // The same where only these words may stand.
  void fail(Bytes field, Bytes given, std::vector<std::string> allowed);

 private:
  BodyReader(Exchange& exchange, nlohmann::json members);
  const nlohmann::json* take(const std::string& name);
  void option(const OptionRow& row, Words& words);
  std::optional<std::string> text_of(const nlohmann::json& value);

  Exchange& exchange_;
  nlohmann::json members_;
  std::vector<std::string> taken_;  // what was asked for
  std::optional<BadField> bad_;
  bool malformed_ = false;
  bool others_allowed_ = false;
};

// Query parameters likewise.
class QueryReader {
 public:
  // Reads `db` and selects it.
  explicit QueryReader(Exchange& exchange);

  void options(const std::vector<OptionRow>& rows, Words& words);
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  std::optional<int64_t> duration(const std::string& name, int64_t low, int64_t high);
  std::optional<std::string> text(const std::string& name);
  std::optional<bool> boolean(const std::string& name);
  bool failed();
  void fail(Bytes field, Bytes why);
  void fail(Bytes field, Bytes given, std::vector<std::string> allowed);

 private:
  Exchange& exchange_;
  std::vector<std::string> taken_;
  std::optional<BadField> bad_;
};

// What a request says of the jobs that it means, as words behind WHERE.
struct SelectorWords {
  Words states;  // "STATE x" for each
  Words others;  // the other criteria; or ALL, and then there are no states
  Words limit;

  bool means_something() const { return !states.empty() || !others.empty(); }
  bool means_all() const { return others == Words{"ALL"}; }
};
SelectorWords read_selector(QueryReader& query);
SelectorWords read_selector(BodyReader& where);
// For the description of the API.
std::vector<RouteParameter> with_selector(std::vector<RouteParameter> others);

}  // namespace sluice

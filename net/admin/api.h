// Shared by the handlers: conversion of bodies and parameters to words of commands, and of replies
// to responses.
//
// A reader remembers the first error; the handler checks once, by failed(), before it runs
// anything. Threads: like Exchange.
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "net/http/exchange.h"
#include "net/http/json_text.h"
#include "net/http/problem.h"
#include "net/io/asio_types.h"

namespace sluice {

using Words = std::vector<std::string>;

// Appends the words of each part.
void append_words(std::initializer_list<const Words*> parts, Words& words);

// The error for an id that is_job_id() rejects.
inline constexpr const char* kNoJobId =
    "must have 1 to 512 bytes, and be none of the reserved words *, WHERE and ALL";

// The longest wait of a long poll; a client that wants more asks again.
inline constexpr int64_t kMaxWaitMs = 60'000;

void respond_json(Exchange& exchange, const nlohmann::json& value, unsigned status = 200);
// A response with one member that is a long array, optionally with others and `cursor` beside it.
// Each element is converted to text as it arrives, so that the response can be made in several
// turns.
class JsonList {
 public:
  explicit JsonList(const char* member) : member_(member) {}

  // Sets the other members.
  void put(const nlohmann::json& members);
  void add(const nlohmann::json& element);
  void add(const RespValue& element);
  void add_text(Bytes element);
  size_t size() const { return size_; }
  // Call one of these once. A null cursor means that the list is complete.
  void respond(Exchange& exchange, const nlohmann::json& cursor);
  void respond(Exchange& exchange);

 private:
  void respond_behind(Exchange& exchange, const std::string& begin);

  const char* member_;
  std::string others_;
  std::string elements_;
  size_t size_ = 0;
};

// How many jobs the next piece of a long list has, so that one piece holds others for a short time
// only, whatever the size of their texts.
class PieceSize {
 public:
  PieceSize(size_t first, size_t most) : next_(first), most_(most) {}

  size_t next() const { return next_; }
  // A piece had these jobs, with texts of this size.
  void note(size_t jobs, size_t bytes);

 private:
  size_t next_;
  const size_t most_;
};
// The size of all texts in a reply.
size_t text_bytes(const RespValue& value);

// A cursor of a command as the member of a response: null behind the last page.
nlohmann::json cursor_json(const std::string& cursor);

// How many jobs a command has changed, or would change, and the cursor with which it continues.
void respond_count(Exchange& exchange, int64_t count, const std::string& cursor, bool dry_run);

// 412: something is not as a condition says; what it is now.
HttpResponse changed_problem(Bytes field, Bytes value);

// The problem, if the reply is an error. The reply must be that of the command that the exchange
// ran last.
std::optional<HttpResponse> problem_of_reply(Exchange& exchange, const RespValue& reply);
// If the reply is an error, responds with the problem and returns true.
bool respond_error(Exchange& exchange, const RespValue& reply);
// The same for handlers that lock shards themselves, or for which an error of a queue's command
// means that the queue is gone: if no command about data is answered now, or a script holds the
// shards, which may run on this very thread.
bool respond_busy(Exchange& exchange);

// What ends a stream whose queue was deleted.
HttpResponse queue_gone();
// For streams: calls `next` as soon as the thread's stream budget allows it, and not at all once
// the exchange is cut off. `next` must keep the timer alive, and the exchange.
void when_in_budget(Exchange& exchange, SteadyTimer& timer, std::function<void()> next);
// An invalid member or parameter.
struct BadField {
  std::string field;
  std::string why;
  std::vector<std::string> allowed = {};  // all possible words; empty: others are possible
  std::string nearest = {};               // the nearest of them, if there is one
};
void respond_bad_field(Exchange& exchange, const BadField& bad);
// For an id in the path, where a command would also accept the word WHERE. If it is that word,
// responds with the problem and returns true.
bool respond_where(Exchange& exchange);

// An option of a command, and the member or parameter that sets it.
struct OptionRow {
  enum class Type : uint8_t {
    kInteger,
    kDuration,  // milliseconds, or a text with units (5s, 1h30m)
    kText,      // or member_base64
    kName,      // likewise; the word is the glob that matches only it
    kTexts,     // an array of strings; a repeated parameter
    kPair,      // an array of two durations: two words
    kTextPairs  // an object of strings; as a repeated parameter, name=value
  };
  const char* name;
  const char* word;  // "": only the values are appended
  Type type = Type::kText;
};

// The parsed body of a request; an empty one counts as an empty object.
nlohmann::json body_of(const Exchange& exchange);

// What the readers of bodies and of parameters share.
class FieldReader {
 public:
  void fail(Bytes field, Bytes why);
  // The same with a list of the allowed words.
  void fail(Bytes field, Bytes given, std::vector<std::string> allowed);

 protected:
  explicit FieldReader(Exchange& exchange) : exchange_(exchange) {}

  // The number, if there is one and it is in the range; otherwise the field is invalid.
  // `form`: what it has to be.
  std::optional<int64_t> in_range(const std::string& name, const char* form,
                                  std::optional<int64_t> number, int64_t low, int64_t high);

  Exchange& exchange_;
  std::vector<std::string> taken_;  // names that were read
  std::optional<BadField> bad_;
};

// The JSON object in a request's body, read member by member.
class BodyReader : public FieldReader {
 public:
  explicit BodyReader(Exchange& exchange) : BodyReader(exchange, body_of(exchange)) {}
  // The same for a part of it.
  BodyReader(Exchange& exchange, nlohmann::json members);

  // Appends the words of the options that are present.
  void options(const std::vector<OptionRow>& rows, Words& words);
  // Members that are not options. Nothing if missing or invalid.
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  std::optional<int64_t> duration(const std::string& name, int64_t low, int64_t high);
  std::optional<std::string> bytes(const std::string& name);  // also an integer's digits
  std::optional<std::string> text(const std::string& name);   // a JSON string only
  std::optional<bool> boolean(const std::string& name);
  // The elements of an array. Nothing if it is missing or invalid.
  std::optional<nlohmann::json> array(const std::string& name);
  // A nested object, with a reader of its own. Nothing if it is missing.
  std::optional<BodyReader> object(const std::string& name);
  // At most one of these members may be given.
  void at_most_one(std::initializer_list<const char*> names);
  // The problem, if there is an error. Members that were not read are errors.
  std::optional<HttpResponse> problem();
  // If there is an error, responds with the problem and returns true.
  bool failed();
  // Whether all members have been read.
  bool knows_all() const;
  // Ignore members that were not read: the body is also for others.
  void allow_others() { others_allowed_ = true; }
  // All fields with plain values, as texts for a configuration.
  Words fields();

 private:
  const nlohmann::json* take(const std::string& name);
  void option(const OptionRow& row, Words& words);
  std::optional<std::string> text_of(const nlohmann::json& value);

  nlohmann::json members_;
  bool malformed_ = false;
  bool others_allowed_ = false;
};

// Query parameters in the same way.
class QueryReader : public FieldReader {
 public:
  enum class Selects : uint8_t {
    kDatabase,  // reads `db` and selects it
    kNothing    // the route is about no database
  };
  explicit QueryReader(Exchange& exchange, Selects selects = Selects::kDatabase);

  void options(const std::vector<OptionRow>& rows, Words& words);
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  std::optional<int64_t> duration(const std::string& name, int64_t low, int64_t high);
  std::optional<std::string> text(const std::string& name);
  std::optional<bool> boolean(const std::string& name);
  bool failed();
};

// Appends what the parameter `progress_bytes` means to the words of Q.GET or Q.LIST.
void read_progress_bytes(QueryReader& query, Words& words);

// A request's selector, as words after WHERE.
struct SelectorWords {
  Words states;  // "STATE x" for each
  Words others;  // the other criteria; or ALL, in which case there are no states
  Words limit;

  bool means_something() const { return !states.empty() || !others.empty(); }
  bool means_all() const { return others == Words{"ALL"}; }
};
SelectorWords read_selector(QueryReader& query);
SelectorWords read_selector(BodyReader& where);
// For the description of the API.
std::vector<RouteParameter> with_selector(std::vector<RouteParameter> others);
inline constexpr RouteParameter kCursorParameter = {"cursor", "string",
                                                    "the cursor of the previous page"};
inline constexpr RouteParameter kProgressParameter = {"progress_bytes", "integer",
                                                      "the most bytes of the progress"};
inline constexpr RouteParameter kLimitParameter = {"limit", "integer",
                                                   "at most this many, 1 to 1000"};
// A route that needs the right to operate.
Route operate_route(const char* pattern, void (*handler)(Exchange&), const char* summary,
                    const char* body, const char* answer);

}  // namespace sluice

// What the fields of a queue's configuration and the options of its commands take, in words: for
// help, and for front ends that explain BADFIELD (net/admin, tools/cli).
//
// Pure functions; the tables are constant.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

inline constexpr const char* kStateWords =
    "blocked delayed pending active completed failed cancelled expired";

struct FieldHelp {
  Bytes name;              // as in BADFIELD
  Bytes takes;             // the form of its values
  Bytes words;             // the allowed words, separated by blanks; empty if values are not words
  Bytes meaning;           // empty for options
  unsigned durations = 0;  // bit i: part i of the value (durations.h) is one
};

// The fields of Q.CONFIG, in the order of config_fields().
std::span<const FieldHelp> config_field_help();

// The value of a field of Q.CONFIG with the durations that it takes in milliseconds. Other parts
// stay as they are: 5m is no number of jobs or bytes.
std::string plain_value(Bytes field, Bytes value);

// `fields` are names and values for Q.CONFIG … SET. If one has the name of its word IF, leaves only
// that one, which is refused like any other name that is no field.
void isolate_if(std::vector<std::string>& fields);

// The caller's own names for options of commands, by the option's word in lower case.
using OptionNames = std::map<std::string, std::string>;

// An explanation of a BADFIELD error.
struct FieldAdvice {
  std::string field;                      // by the caller's name
  std::string detail = {};                // a sentence without its full stop
  std::vector<std::string> allowed = {};  // every allowed word; empty if values are not words
  std::string nearest = {};  // one of them, at an edit distance of at most 2; may be empty
};

// `command` is the command that was sent. `bands` are the names of the queue's bands, needed only
// if takes_band(field).
FieldAdvice advise(Bytes field, std::span<const std::string> command,
                   std::span<const std::string> bands, const OptionNames& names = {});
// The whole advice as one sentence, without its full stop.
std::string advice_text(const FieldAdvice& advice);
// Whether advise() needs the bands.
bool takes_band(Bytes field);

// The word that `given` was probably meant to be, or an empty text if none is near enough.
std::string nearest_word(Bytes given, std::span<const std::string> words);
// "; did you mean <nearest>?", for the end of a sentence. Empty if `nearest` is.
std::string suggestion(const std::string& nearest);
std::vector<std::string> split_words(Bytes words);
// "a, b or c"
std::string listed(std::span<const std::string> words);
// The names in the value of the field `bands`.
std::vector<std::string> band_names(Bytes bands);

}  // namespace sluice

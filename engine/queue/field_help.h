// What the fields of a queue's configuration and the options of its commands take, in words: for
// help, and for those who have to explain BADFIELD (net/admin, tools/cli).
//
// Pure functions; the tables are constant.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

struct FieldHelp {
  Bytes name;     // as BADFIELD says it
  Bytes takes;    // the form of its values
  Bytes words;    // the words that it takes, separated by blanks; empty: others than words
  Bytes meaning;  // empty for options
};

// The fields of Q.CONFIG, in the order of config_fields().
std::span<const FieldHelp> config_field_help();

// What is to be said to whom BADFIELD was told.
struct FieldAdvice {
  std::string detail;                // a sentence without its full stop
  std::vector<std::string> allowed;  // every word that might stand there; empty: others than words
  std::string nearest;               // of them, at an edit distance of at most 2; empty: none
};

// `command` is what the server was sent. `bands` are the names of the queue's bands, which may be
// empty where the field takes no band.
FieldAdvice advise(Bytes field, std::span<const std::string> command,
                   std::span<const std::string> bands);
// All of it in one sentence, without its full stop.
std::string advice_text(const FieldAdvice& advice);
// Whether advise() wants the bands.
bool takes_band(Bytes field);

// The one that `given` was probably meant to be; empty: none is so near.
std::string nearest_word(Bytes given, std::span<const std::string> words);
// "; did you mean <nearest>?", for the end of a sentence; nothing where that is empty.
std::string suggestion(const std::string& nearest);
std::vector<std::string> split_words(Bytes words);
// "a, b or c"
std::string listed(std::span<const std::string> words);
// The names in the text of the field `bands`.
std::vector<std::string> band_names(Bytes bands);

}  // namespace sluice

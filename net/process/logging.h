// The server's log: spdlog's default logger, set up once by the program from `loglevel` and
// `logfile`.
//
// A line of it is one line, whatever it tells of: control characters, as names of keys and users,
// scripts' texts and paths may have them, stand as \n and \x1b.
//
// Sources of net/ call spdlog directly; the engine and storage/ get functions that lead here. Any
// thread.
#pragma once

#include <string>

#include "storage/log_sink.h"

namespace sluice {

// Redis's names: debug, verbose, notice, warning; `nothing` silences it. False: no such level.
bool set_log_level(const std::string& level);

// `file` empty: standard output. False, with the reason in `error`, if the file cannot be opened.
bool open_log(const std::string& file, std::string& error);

// Where storage/ says what it does.
LogSink storage_log_sink();

}  // namespace sluice

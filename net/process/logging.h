// The server's log: spdlog's default logger, set up once by the program from `loglevel` and
// `logfile`.
//
// Each entry is one line. Control characters, which may occur in names of keys and users, in
// scripts and in paths, are escaped, as in \n and \x1b.
//
// Sources in net/ call spdlog directly; the engine and storage/ get functions that forward to it.
// Any thread.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "storage/log_sink.h"

namespace sluice {

// Takes Redis's names: debug, verbose, notice, warning; `nothing` turns the log off. Returns false
// for an unknown level.
bool set_log_level(const std::string& level);

// An empty `file` is standard output.
Status open_log(const std::string& file);

// The sink through which storage/ logs.
LogSink storage_log_sink();

}  // namespace sluice

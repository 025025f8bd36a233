#include "net/logging.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace sluice {

bool set_log_level(const std::string& level) {
  if (level == "debug") {
    spdlog::set_level(spdlog::level::trace);
  } else if (level == "verbose") {
    spdlog::set_level(spdlog::level::debug);
  } else if (level == "notice") {
    spdlog::set_level(spdlog::level::info);
  } else if (level == "warning") {
    spdlog::set_level(spdlog::level::warn);
  } else if (level == "nothing") {
    spdlog::set_level(spdlog::level::off);
  } else {
    return false;
  }
  return true;
}

bool open_log(const std::string& file, std::string& error) {
  // The library would make the directories that are missing: a typing error would be a place where
  // nobody looks.
  if (!file.empty()) {
    const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (opened < 0) {
      error = file + ": " + std::strerror(errno);
      return false;
    }
    ::close(opened);
  }
  std::shared_ptr<spdlog::logger> logger;
  try {
    // Not through spdlog's registry of names: several servers may run in one process.
    if (file.empty()) {
      logger = std::make_shared<spdlog::logger>("sluice",
                                                std::make_shared<spdlog::sinks::stdout_sink_mt>());
    } else {
      logger = std::make_shared<spdlog::logger>(
          "sluice", std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    }
  } catch (const spdlog::spdlog_ex& exception) {
    error = exception.what();
    return false;
  }
  logger->set_pattern("%P:%t %Y-%m-%d %H:%M:%S.%e %l %v");
  logger->set_level(spdlog::get_level());
  // Whoever watches the log sees each line at once; the hot path does not log.
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return true;
}

LogSink storage_log_sink() {
  return [](LogLevel level, std::string_view text) {
    switch (level) {
      case LogLevel::kDebug:
        spdlog::debug("{}", text);
        return;
      case LogLevel::kInfo:
        spdlog::info("{}", text);
        return;
      case LogLevel::kWarning:
        spdlog::warn("{}", text);
        return;
      case LogLevel::kError:
        spdlog::error("{}", text);
        return;
    }
  };
}

}  // namespace sluice

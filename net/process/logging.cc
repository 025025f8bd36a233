#include "net/process/logging.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "engine/base/hex.h"

namespace sluice {

namespace {

// Prints the text of a line without control characters.
class OneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    for (const char c : message.payload) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte != 0x7f) {
        out.push_back(c);
        continue;
      }
      out.push_back('\\');
      if (c == '\n' || c == '\r' || c == '\t') {
        out.push_back(c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        continue;
      }
      out.push_back('x');
      out.push_back(kHexDigits[byte >> 4]);
      out.push_back(kHexDigits[byte & 15]);
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

}  // namespace

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

Status open_log(const std::string& file) {
  // spdlog would create missing directories, so that a typing error would put the log in a place
  // where nobody looks.
  if (!file.empty()) {
    const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (opened < 0) return io_error(file + ": " + std::strerror(errno));
    ::close(opened);
  }
  std::shared_ptr<spdlog::logger> logger;
  try {
    // Bypasses spdlog's registry of names, because several servers may run in one process.
    if (file.empty()) {
      logger = std::make_shared<spdlog::logger>("sluice",
                                                std::make_shared<spdlog::sinks::stdout_sink_mt>());
    } else {
      logger = std::make_shared<spdlog::logger>(
          "sluice", std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    }
  } catch (const spdlog::spdlog_ex& exception) {
    return io_error(exception.what());
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<OneLine>('*').set_pattern("%P:%t %Y-%m-%d %H:%M:%S.%e %l %*");
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::get_level());
  // Each line is written at once for those who watch the log; the hot path does not log.
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return {};
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

// sluice-server [conf] [--directive value ...]
//
// The main thread only waits: for signals, and for the end of the server. SIGTERM and SIGINT begin
// the orderly end, a second one ends the process at once. Exit codes: 0, 1 (configuration, sockets,
// recovery), 75 (the disk failed).
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "net/config.h"
#include "net/logging.h"
#include "net/server.h"
#include "net/version.h"
#include "storage/kill_point.h"

namespace {

using namespace sluice;

// What the process itself has open besides its clients: RocksDB's files, the log, sockets.
constexpr rlim_t kReservedFiles = 544;

// A limit that is too low is raised as far as it goes; then fewer clients are served, and the log
// says so.
void raise_file_limit(uint64_t max_clients) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = max_clients + kReservedFiles;
  if (limit.rlim_cur >= wanted) return;
  struct rlimit raised = limit;
  raised.rlim_cur = wanted;
  raised.rlim_max = std::max(limit.rlim_max, wanted);
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  raised.rlim_max = limit.rlim_max;
  raised.rlim_cur = std::min(wanted, limit.rlim_max);
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &raised));
  spdlog::warn(
      "maxclients {} needs {} open files, but the system allows {}: raise it with ulimit -n or "
      "LimitNOFILE",
      max_clients, wanted, raised.rlim_cur);
}

// All threads inherit the mask, so that signals arrive at the main thread's descriptor only.
int open_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  // A file that may not grow is an error of that write, which the journal knows to handle.
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC);
}

bool write_pid_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    spdlog::warn("cannot write the pidfile {}: {}", path, std::strerror(errno));
    return false;
  }
  std::fprintf(file, "%d\n", static_cast<int>(::getpid()));
  std::fclose(file);
  return true;
}

// Until the server has ended; a signal asks for that.
void wait_for_end(Server& server, int signals, int end) {
  bool asked = false;
  for (;;) {
    struct pollfd events[2] = {{signals, POLLIN, 0}, {end, POLLIN, 0}};
    if (::poll(events, 2, -1) < 0 && errno != EINTR) return;
    if ((events[1].revents & POLLIN) != 0) return;
    if ((events[0].revents & POLLIN) == 0) continue;
    struct signalfd_siginfo signal {};
    if (::read(signals, &signal, sizeof(signal)) != sizeof(signal)) continue;
    if (asked) {
      spdlog::warn("A second signal: exiting at once");
      std::_Exit(1);
    }
    asked = true;
    spdlog::info("Received {} scheduling shutdown...",
                 signal.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
    server.request_stop();
  }
}

int run(Config& config) {
  const std::shared_ptr<const Settings> settings = config.settings();
  std::string error;
  if (!open_log(settings->logfile, error)) {
    std::fprintf(stderr, "sluice-server: cannot open the log file: %s\n", error.c_str());
    return 1;
  }
  for (const std::string& warning : config.warnings()) spdlog::warn("{}", warning);
  spdlog::info("Sluice {} starting, pid {}, configuration {}", kSluiceVersion, ::getpid(),
               config.file().empty() ? "by default" : config.file());
  raise_file_limit(static_cast<uint64_t>(settings->maxclients));
  kill_points_from_environment();
  const int signals = open_signals();
  const int end = ::eventfd(0, EFD_CLOEXEC);
  Server server(config);
  server.exit_when_stuck();
  server.on_end([end] {
    const uint64_t one = 1;
    static_cast<void>(::write(end, &one, sizeof(one)) == sizeof(one));
  });
  error = server.start();
  if (!error.empty()) {
    spdlog::error("{}", error);
    return 1;
  }
  const bool has_pid_file = !settings->pidfile.empty() && write_pid_file(settings->pidfile);
  wait_for_end(server, signals, end);
  const int exit_code = server.wait();
  if (has_pid_file) ::unlink(settings->pidfile.c_str());
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto information = Config::information(argc, argv)) {
    std::fputs(information->c_str(), stdout);
    return 0;
  }
  Config config;
  if (const auto error = config.apply_arguments(argc, argv)) {
    std::fprintf(stderr, "sluice-server: %s\n", error->text().c_str());
    return 1;
  }
  const int exit_code = run(config);
  spdlog::shutdown();
  return exit_code;
}

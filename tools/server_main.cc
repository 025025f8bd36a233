// sluice-server [conf] [--reinit] [--directive value ...]
//
// The main thread only waits for signals and for the end of the server. SIGTERM, SIGINT, SIGQUIT,
// SIGXCPU and SIGPWR start an orderly shutdown; during a shutdown only SIGINT has an effect: it
// ends the process at once. Exit codes: those of Server::wait(), and 1 also for the configuration,
// sockets, threads, or SIGINT during the shutdown.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "net/config/config.h"
#include "net/process/logging.h"
#include "net/process/memory_use.h"
#include "net/process/standard_files.h"
#include "net/process/version.h"
#include "net/server/server.h"
#include "storage/arm_kill_points.h"

extern "C" {
// jemalloc reads this before main(). It describes each slab by 128 bytes, which it keeps after the
// slab is freed. With one page a slab these are 3 % of all that the small objects of jobs and
// elements ever took, with four pages 1 %.
const char* malloc_conf = "slab_sizes:33-512:4";
}

namespace {

using namespace sluice;

// Signals that start an orderly shutdown.
constexpr int kEnds[] = {SIGTERM, SIGINT, SIGQUIT, SIGXCPU, SIGPWR};
// Signals that are ignored with a log line; by default they would end the process silently.
constexpr int kWithoutMeaning[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGSTKFLT};

std::string signal_name(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

// All threads inherit the mask, so that signals arrive only at the main thread's descriptor.
int open_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  // A file that cannot grow shall be an error of that write, which the journal handles.
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kEnds) sigaddset(&set, number);
  for (const int number : kWithoutMeaning) sigaddset(&set, number);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigaddset(&set, number);
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

[[noreturn]] void exit_at_once(Server& server) {
  spdlog::warn("Received SIGINT again: exiting at once; {} changes not in a checkpoint are lost",
               server.unsaved_changes());
  spdlog::default_logger()->flush();
  std::_Exit(1);
}

void take_signal(Server& server, int number, bool& asked) {
  const std::string name = signal_name(number);
  if (std::find(std::begin(kEnds), std::end(kEnds), number) == std::end(kEnds)) {
    spdlog::warn("Received {}, ignored: it has no function in this server", name);
  } else if (!asked) {
    asked = true;
    spdlog::info("Received {} scheduling shutdown...", name);
    server.request_stop();
  } else if (number == SIGINT) {
    exit_at_once(server);
  } else {
    spdlog::warn("Received {}: already shutting down; SIGINT ends the process at once", name);
  }
}

// Waits until the server has ended. A signal asks it to end.
void wait_for_end(Server& server, int signals, int end) {
  bool asked = false;
  for (;;) {
    struct pollfd events[2] = {{signals, POLLIN, 0}, {end, POLLIN, 0}};
    if (::poll(events, 2, -1) < 0 && errno != EINTR) return;
    if ((events[1].revents & POLLIN) != 0) return;
    if ((events[0].revents & POLLIN) == 0) continue;
    struct signalfd_siginfo signal {};
    if (::read(signals, &signal, sizeof(signal)) != sizeof(signal)) continue;
    take_signal(server, static_cast<int>(signal.ssi_signo), asked);
  }
}

// The log file is opened before the data directory is created.
std::string log_error(const Settings& settings, const std::string& error) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path file = fs::absolute(settings.logfile, ignored).lexically_normal();
  const fs::path inside = file.lexically_relative(fs::path(settings.dir).lexically_normal());
  if (inside.empty() || *inside.begin() == ".." || fs::exists(settings.dir, ignored)) return error;
  return error + ": the log file is in the data directory, which is created later; create that " +
         "directory first, or choose another place for the log file";
}

// Someone who starts the server by hand expects the log on the terminal.
void tell_log_file(const std::string& path) {
  if (path.empty() || ::isatty(STDERR_FILENO) == 0) return;
  const std::string place = std::filesystem::absolute(path).string();
  std::fprintf(stderr, "sluice-server: logging to %s\n", place.c_str());
}

// Takes --reinit out of the arguments; everything else is the configuration's.
bool take_reinit(std::vector<const char*>& arguments) {
  return std::erase_if(arguments,
                       [](const char* text) { return std::strcmp(text, "--reinit") == 0; }) != 0;
}

int run(Config& config, bool anew) {
  const std::shared_ptr<const Settings> settings = config.settings();
  if (const Status log = open_log(settings->logfile); !log.ok()) {
    std::fprintf(stderr, "sluice-server: cannot open the log file: %s\n",
                 log_error(*settings, log.message()).c_str());
    return 1;
  }
  tell_log_file(settings->logfile);
  for (const std::string& warning : config.warnings()) spdlog::warn("{}", warning);
  spdlog::info("Sluice {} starting, pid {}, configuration {}", kSluiceVersion, ::getpid(),
               config.file().empty() ? "by default" : config.file());
  kill_points_from_environment();
  const int signals = open_signals();
  purge_in_background();
  const int end = ::eventfd(0, EFD_CLOEXEC);
  Server server(config);
  server.exit_when_stuck();
  if (anew) server.load_anew();
  server.on_end([end] {
    const uint64_t one = 1;
    static_cast<void>(::write(end, &one, sizeof(one)) == sizeof(one));
  });
  if (const Status status = server.start(); !status.ok()) {
    spdlog::error("{}", status.message());
    const bool apart = !settings->logfile.empty() && ::isatty(STDERR_FILENO) != 0;
    if (apart) std::fprintf(stderr, "sluice-server: %s\n", status.message().c_str());
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
  occupy_standard_files();
  if (const auto information = Config::information(argc, argv)) {
    std::fputs(information->c_str(), stdout);
    return 0;
  }
  std::vector<const char*> arguments(argv, argv + argc);
  const bool anew = take_reinit(arguments);
  Config config;
  if (const auto error =
          config.apply_arguments(static_cast<int>(arguments.size()), arguments.data())) {
    std::fprintf(stderr, "sluice-server: %s\n", error->text().c_str());
    return 1;
  }
  const int exit_code = run(config, anew);
  spdlog::shutdown();
  return exit_code;
}

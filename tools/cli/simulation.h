// A simulation: producers that add readable jobs at a given rate, and workers that run them.
//
// Producers and workers are threads of this program with a connection each. They use the queue like
// any client: jobs are popped with a lease, touched while they run, then acknowledged or rejected.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/context.h"
#include "tools/cli/signals.h"

namespace sluice::cli {

// Duration of a run in milliseconds.
struct RunTime {
  enum class Kind : uint8_t { kUniform, kExponential } kind = Kind::kUniform;
  double from = 200;  // kExponential: the mean
  double to = 2000;

  // Parses N, FROM:TO or exp:MEAN. Throws a usage error.
  static RunTime parse(const std::string& text);
  double draw(std::mt19937_64& random) const;
};

// The kinds of jobs that producers add.
inline constexpr const char* kTaskNames = "mail resize report import render grade";

using BandShares = std::vector<std::pair<std::string, double>>;

struct SimulationPlan {
  std::string queue;
  double rate = 10;  // jobs a second of all producers together
  int producers = 1;
  int workers = 4;
  int users = 5;
  BandShares bands;                // empty: the queue's default band
  std::vector<std::string> tasks;  // from kTaskNames; empty: all of them
  double fail_share = 0.05;
  RunTime run;
  uint64_t seed = 0;
};

// Parses NAME,... from kTaskNames. Throws a usage error.
std::vector<std::string> parse_tasks(const std::string& text);
// Parses NAME=WEIGHT,... Throws a usage error.
BandShares parse_bands(const std::string& text);
// The named bands of a queue; those in the middle get the largest shares.
BandShares bands_of_queue(Connection& connection, const std::string& queue);

// Runs until a signal arrives or `seconds` have passed (0: no limit). Prints a line a second and a
// summary. Returns the program's exit code.
int simulate(Context& context, const SimulationPlan& plan, Signals& signals, int64_t seconds);

}  // namespace sluice::cli

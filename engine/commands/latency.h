// Latencies of commands over all threads: INFO latencystats and LATENCY HISTOGRAM.
#pragma once

#include "engine/reply/statistics.h"

namespace sluice {

class Engine;
struct Command;

LatencySum command_latencies(Engine& engine, const Command& command);

}  // namespace sluice

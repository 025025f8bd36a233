#include "net/admin/metrics_otlp.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/http/json_text.h"
#include "net/process/version.h"

namespace sluice {

namespace {

using nlohmann::json;

}  // namespace

// Writes text directly: a tree for a thousand queues would block the thread for longer.
class OtlpWriter {
 public:
  explicit OtlpWriter(int64_t now_ms) : time_("\"timeUnixNano\":" + nanoseconds(now_ms)) {}

  // Writes some more points of a family. Returns false at its end; the next call is about the next
  // family.
  bool go_on(const std::string& name, const MetricFamily& family);
  template <class Pairs>
  void attributes(const Pairs& pairs);
  void raw(Bytes text) { out_ += text; }
  std::string take() { return std::move(out_); }

 private:
  // 64-bit integers are strings in this encoding.
  static std::string quoted(int64_t number) { return '"' + std::to_string(number) + '"'; }
  static std::string nanoseconds(int64_t ms) { return '"' + std::to_string(ms) + "000000\""; }
  static std::string text(const std::string& value) { return dump_json(json(name_to_json(value))); }

  void begin_family(const std::string& name, const MetricFamily& family);
  void begin_point(const MetricLabels& labels, int64_t start_ms);
  void point(const MetricFamily& family, const MetricFamily::Point& point);
  void distribution(const MetricFamily& family, const MetricFamily::Distribution& distribution);

  const std::string time_;
  std::string out_;
  bool first_family_ = true;
  size_t next_ = 0;  // index in the family's points or distributions
};

namespace {

const char* unit_of(Bytes name) {
  if (name.ends_with("_total")) name.remove_suffix(6);
  if (name.ends_with("_seconds") || name == "queue_wait_time") return "s";
  if (name.ends_with("_bytes")) return "By";
  return "1";
}

}  // namespace

template <class Pairs>
void OtlpWriter::attributes(const Pairs& pairs) {
  out_ += "\"attributes\":[";
  const char* separator = "";
  for (const auto& [key, value] : pairs) {
    out_ += separator;
    out_ += "{\"key\":" + text(key) + ",\"value\":{\"stringValue\":" + text(value) + "}}";
    separator = ",";
  }
  out_ += ']';
}

void OtlpWriter::begin_point(const MetricLabels& labels, int64_t start_ms) {
  out_ += '{';
  attributes(labels);
  if (start_ms != 0) out_ += ",\"startTimeUnixNano\":" + nanoseconds(start_ms);
  out_ += ',' + time_;
}

void OtlpWriter::distribution(const MetricFamily& family,
                              const MetricFamily::Distribution& distribution) {
  const BucketCounts& counts = distribution.counts;
  begin_point(distribution.labels, distribution.start_ms);
  out_ += ",\"count\":" + quoted(static_cast<int64_t>(counts.count));
  out_ += ",\"sum\":" + metric_number(counts.sum_ms / 1000) + ",\"bucketCounts\":[";
  // Each bucket's own count, and one more for values above the last bound.
  uint64_t before = 0;
  for (const uint64_t up_to : counts.up_to) {
    out_ += quoted(static_cast<int64_t>(up_to - before)) + ',';
    before = up_to;
  }
  out_ += quoted(static_cast<int64_t>(counts.count - before)) + "],\"explicitBounds\":[";
  const char* separator = "";
  for (const int64_t bound_ms : family.bounds_ms) {
    out_ += separator + metric_number(static_cast<double>(bound_ms) / 1000);
    separator = ",";
  }
  out_ += "]}";
}

void OtlpWriter::begin_family(const std::string& name, const MetricFamily& family) {
  constexpr Bytes kCumulative = "\"aggregationTemporality\":2,";
  if (!std::exchange(first_family_, false)) out_ += ',';
  out_ += "{\"name\":" + text(name) + ",\"description\":" + text(family.help) + ",\"unit\":\"" +
          unit_of(name) + "\",";
  if (family.type == MetricFamily::Type::kHistogram) {
    out_.append("\"histogram\":{").append(kCumulative);
  } else if (family.type == MetricFamily::Type::kCounter) {
    out_.append("\"sum\":{\"isMonotonic\":true,").append(kCumulative);
  } else {
    out_ += "\"gauge\":{";
  }
  out_ += "\"dataPoints\":[";
}

void OtlpWriter::point(const MetricFamily& family, const MetricFamily::Point& point) {
  begin_point(point.labels, point.start_ms);
  if (family.type == MetricFamily::Type::kCounter) {
    out_ += ",\"asInt\":" + quoted(std::llround(point.value)) + '}';
  } else {
    out_ += ",\"asDouble\":" + metric_number(point.value) + '}';
  }
}

bool OtlpWriter::go_on(const std::string& name, const MetricFamily& family) {
  if (next_ == 0) begin_family(name, family);
  const size_t size = family.points.size() + family.distributions.size();
  const size_t end = std::min(size, next_ + kPointsAtOnce);
  for (; next_ < end; ++next_) {
    if (next_ != 0) out_ += ',';
    if (family.type == MetricFamily::Type::kHistogram) {
      distribution(family, family.distributions[next_]);
    } else {
      point(family, family.points[next_]);
    }
  }
  if (next_ < size) return true;
  out_ += "]}}";
  next_ = 0;
  return false;
}

MetricsOtlp::MetricsOtlp(MetricSet metrics, const OtlpResource& resource, int64_t now_ms)
    : metrics_(std::move(metrics)), writer_(std::make_unique<OtlpWriter>(now_ms)) {
  writer_->raw("{\"resourceMetrics\":[{\"resource\":{");
  writer_->attributes(resource);
  writer_->raw("},\"scopeMetrics\":[{\"scope\":{\"name\":\"sluice\",\"version\":\"");
  writer_->raw(kSluiceVersion);
  writer_->raw("\"},\"metrics\":[");
}

MetricsOtlp::~MetricsOtlp() = default;

bool MetricsOtlp::go_on() {
  if (metrics_.families().empty()) {
    writer_->raw("]}]}]}");
    return false;
  }
  const auto& [name, family] = *metrics_.families().begin();
  if (!writer_->go_on(name, family)) metrics_.drop_first();
  return true;
}

std::string MetricsOtlp::take() { return writer_->take(); }

std::string otlp_rejection(Bytes answer) {
  const json value = parse_json(answer);
  if (!value.is_object() || !value.contains("partialSuccess")) return {};
  const json& partial = value["partialSuccess"];
  if (!partial.is_object()) return {};
  const json count = partial.value("rejectedDataPoints", json(0));
  const std::string number = count.is_string() ? count.get<std::string>() : count.dump();
  if (number == "0" || number == "null") return {};
  const json message = partial.value("errorMessage", json(""));
  return "it rejected " + number.substr(0, 20) + " points: " +
         (message.is_string() ? message.get<std::string>().substr(0, 200) : std::string());
}

}  // namespace sluice

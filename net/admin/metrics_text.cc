#include "net/admin/metrics_text.h"

#include "net/http/json_text.h"

namespace sluice {

namespace {

constexpr Bytes kTotal = "_total";

// Label values are UTF-8 with three escapes; other bytes are shown as base64.
void put_label_value(std::string& out, const std::string& value) {
  for (const char c : name_to_json(value)) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
}

// `a="1",b="2"`
std::string labels_text(const MetricLabels& labels) {
  std::string out;
  for (const auto& [label, value] : labels) {
    if (!out.empty()) out += ',';
    out += label;
    out += "=\"";
    put_label_value(out, value);
    out += '"';
  }
  return out;
}

void put_sample(std::string& out, const std::string& name, const std::string& labels,
                double value) {
  out += name;
  if (!labels.empty()) out.append(1, '{').append(labels).append(1, '}');
  out.append(1, ' ').append(metric_number(value)).append(1, '\n');
}

void put_distribution(std::string& out, const std::string& name,
                      const std::vector<std::string>& bounds,
                      const MetricFamily::Distribution& distribution) {
  const std::string labels = labels_text(distribution.labels);
  const std::string begin = labels.empty() ? "le=\"" : labels + ",le=\"";
  const BucketCounts& counts = distribution.counts;
  for (size_t i = 0; i < bounds.size(); ++i) {
    put_sample(out, name + "_bucket", begin + bounds[i] + '"',
               static_cast<double>(counts.up_to[i]));
  }
  const auto count = static_cast<double>(counts.count);
  put_sample(out, name + "_bucket", begin + "+Inf\"", count);
  put_sample(out, name + "_sum", labels, counts.sum_ms / 1000);
  put_sample(out, name + "_count", labels, count);
}

const char* type_name(MetricFamily::Type type) {
  switch (type) {
    case MetricFamily::Type::kGauge:
      return "gauge";
    case MetricFamily::Type::kCounter:
      return "counter";
    case MetricFamily::Type::kHistogram:
      break;
  }
  return "histogram";
}

}  // namespace

MetricsText::MetricsText(MetricSet metrics, bool open_metrics)
    : metrics_(std::move(metrics)), open_metrics_(open_metrics) {}

void MetricsText::begin_family() {
  const auto& [name, family] = *metrics_.families().begin();
  // In OpenMetrics the name of a counter's family lacks the suffix of its samples.
  std::string shown = name;
  if (open_metrics_ && family.type == MetricFamily::Type::kCounter) {
    shown.resize(shown.size() - kTotal.size());
  }
  text_ += "# HELP " + shown + ' ' + family.help + "\n# TYPE " + shown + ' ' +
           type_name(family.type) + '\n';
  bounds_.clear();
  for (const int64_t bound_ms : family.bounds_ms) {
    bounds_.push_back(metric_number(static_cast<double>(bound_ms) / 1000));
  }
}

bool MetricsText::go_on() {
  if (metrics_.families().empty()) {
    if (open_metrics_) text_ += "# EOF\n";
    return false;
  }
  const auto& [name, family] = *metrics_.families().begin();
  if (point_ == 0 && distribution_ == 0) begin_family();
  for (size_t i = 0; i < kPointsAtOnce && point_ < family.points.size(); ++i) {
    const MetricFamily::Point& point = family.points[point_++];
    put_sample(text_, name, labels_text(point.labels), point.value);
  }
  if (point_ < family.points.size()) return true;
  if (distribution_ < family.distributions.size()) {
    put_distribution(text_, name, bounds_, family.distributions[distribution_++]);
  }
  if (distribution_ < family.distributions.size()) return true;
  metrics_.drop_first();
  point_ = distribution_ = 0;
  return true;
}

}  // namespace sluice

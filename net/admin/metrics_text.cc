#include "net/admin/metrics_text.h"

#include "engine/base/numbers.h"
#include "net/http/json_text.h"

namespace sluice {

namespace {

// Label values are UTF-8 with three escapes; what is no UTF-8 is shown by its base64.
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
  out.append(1, ' ').append(format_double(value)).append(1, '\n');
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

void put_family(std::string& out, const std::string& name, const MetricFamily& family) {
  for (const MetricFamily::Point& point : family.points) {
    put_sample(out, name, labels_text(point.labels), point.value);
  }
  std::vector<std::string> bounds;
  for (const int64_t bound_ms : family.bounds_ms) {
    bounds.push_back(format_double(static_cast<double>(bound_ms) / 1000));
  }
  for (const MetricFamily::Distribution& distribution : family.distributions) {
    put_distribution(out, name, bounds, distribution);
  }
}

}  // namespace

std::string metrics_text(const MetricSet& metrics, bool open_metrics) {
  constexpr Bytes kTotal = "_total";
  std::string text;
  for (const auto& [name, family] : metrics.families()) {
    // OpenMetrics names a counter's family without the suffix of its samples.
    std::string shown = name;
    if (open_metrics && family.type == MetricFamily::Type::kCounter) {
      shown.resize(shown.size() - kTotal.size());
    }
    text += "# HELP " + shown + ' ' + family.help + "\n# TYPE " + shown + ' ' +
            type_name(family.type) + '\n';
    put_family(text, name, family);
  }
  if (open_metrics) text += "# EOF\n";
  return text;
}

}  // namespace sluice

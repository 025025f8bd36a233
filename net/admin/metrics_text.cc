#include "net/admin/metrics_text.h"

#include "engine/base/numbers.h"
#include "net/http/json_text.h"

namespace sluice {

namespace {

// Label values are UTF-8 with three escapes; what is no UTF-8 is shown by its base64.
std::string label_value(const std::string& value) {
  std::string out;
  for (const char c : name_to_json(value)) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string seconds_text(int64_t ms) { return format_double(static_cast<double>(ms) / 1000); }

}  // namespace

MetricsText::Family& MetricsText::family(const std::string& name, const char* type,
                                         const char* help) {
  Family& family = families_[name];
  family.type = type;
  family.help = help;
  return family;
}

void MetricsText::sample(Family& family, const std::string& name, const MetricLabels& labels,
                         double value) {
  std::string& out = family.samples;
  out += name;
  const char* separator = "{";
  for (const auto& [label, text] : labels) {
    out += separator;
    out += label;
    out += "=\"" + label_value(text) + '"';
    separator = ",";
  }
  if (!labels.empty()) out += '}';
  out += ' ' + format_double(value) + '\n';
}

void MetricsText::gauge(const std::string& name, const char* help, const MetricLabels& labels,
                        double value) {
  sample(family(name, "gauge", help), name, labels, value);
}

void MetricsText::counter(const std::string& name, const char* help, const MetricLabels& labels,
                          double value) {
  sample(family(name, "counter", help), name, labels, value);
}

void MetricsText::histogram(const std::string& name, const char* help, const MetricLabels& labels,
                            std::span<const int64_t> bounds_ms, const BucketCounts& counts) {
  Family& into = family(name, "histogram", help);
  MetricLabels with_bound = labels;
  with_bound.emplace_back("le", "");
  for (size_t i = 0; i < bounds_ms.size(); ++i) {
    with_bound.back().second = seconds_text(bounds_ms[i]);
    sample(into, name + "_bucket", with_bound, static_cast<double>(counts.up_to[i]));
  }
  with_bound.back().second = "+Inf";
  sample(into, name + "_bucket", with_bound, static_cast<double>(counts.count));
  sample(into, name + "_sum", labels, counts.sum_ms / 1000);
  sample(into, name + "_count", labels, static_cast<double>(counts.count));
}

std::string MetricsText::take() const {
  constexpr Bytes kTotal = "_total";
  std::string text;
  for (const auto& [name, family] : families_) {
    // OpenMetrics names a counter's family without the suffix of its samples.
    std::string shown = name;
    if (open_metrics_ && Bytes(family.type) == "counter") {
      shown.resize(shown.size() - kTotal.size());
    }
    text += "# HELP " + shown + ' ' + family.help + "\n# TYPE " + shown + ' ' + family.type + '\n';
    text += family.samples;
  }
  if (open_metrics_) text += "# EOF\n";
  return text;
}

}  // namespace sluice

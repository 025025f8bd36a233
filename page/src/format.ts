// Numbers, durations and times for people.

const plain = new Intl.NumberFormat("en-US");

export function count(value: number): string {
  return plain.format(value);
}

// 12,345 · 123k · 4.5M
export function short_count(value: number): string {
  if (value < 100_000) return plain.format(Math.round(value));
  if (value < 1_000_000) return `${Math.round(value / 1000)}k`;
  return `${(value / 1_000_000).toFixed(value < 10_000_000 ? 2 : 1)}M`;
}

export function rate(value: number): string {
  if (value === 0) return "0";
  if (value < 0.05) return "<0.1";
  return value < 10 ? value.toFixed(1) : short_count(value);
}

// 850 ms · 4.2 s · 3 m 20 s · 5 h 10 m · 3 d 4 h
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 0) return "0 s";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const steps: [number, string, number, string][] =
    [[3600, "m", 60, "s"], [86_400, "h", 3600, "m"], [Infinity, "d", 86_400, "h"]];
  const [, big, , small] = steps.find(([below]) => seconds < below)!;
  const unit = big === "m" ? 60 : big === "h" ? 3600 : 86_400;
  const rest = big === "m" ? 1 : big === "h" ? 60 : 3600;
  const left = Math.floor((seconds % unit) / rest);
  return `${Math.floor(seconds / unit)} ${big}${left ? ` ${left} ${small}` : ""}`;
}

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

// With the date if it is not today; `fine`: with milliseconds.
export function moment(ms: number, fine = false): string {
  const date = new Date(ms);
  const text = clock.format(date) + (fine ? "." + String(date.getMilliseconds()).padStart(3, "0")
    : "");
  return date.toDateString() === new Date().toDateString() ? text : `${day.format(date)} ${text}`;
}

// 3 m 20 s ago, 14:03:05
export function ago(ms: number, now: number): string {
  return `${duration(Math.max(0, now - ms))} ago, ${moment(ms)}`;
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const units = ["KB", "MB", "GB"];
  let left = bytes / 1024;
  while (left >= 1024 && units.length > 1) {
    left /= 1024;
    units.shift();
  }
  return `${left.toFixed(1)} ${units[0]}`;
}

export function plural(number: number, one: string, many = one + "s"): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

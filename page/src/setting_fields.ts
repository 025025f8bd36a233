// The settings of a queue: what each is, what its value means now, and how it is entered.
import { count, duration, plural, size } from "./format";
import type { Config, Stats } from "./types";

export interface Field {
  name: string;
  what: string;
  // What is entered: a number, one of these words, or text.
  kind: "number" | "text" | readonly string[];
  // The value in words; without it the value itself.
  words?: (value: number, stats: Stats, text: string) => string;
  // Rules for groups, keys and workers may set it too.
  of: string;
}

const limit = (use: (stats: Stats) => number, unit: string) =>
  (value: number, stats: Stats): string => value === 0
    ? `no limit; ${count(use(stats))} ${unit}` : `${count(use(stats))} of ${count(value)} ${unit}`;
const time = (none: string) => (value: number): string => value === 0 ? none : duration(value);
const times = (value: number): string => plural(value, "time");

// "1000:3600000:67108864": count, milliseconds, bytes.
function kept(_: number, __: Stats, text: string): string {
  const [number, ms, bytes] = text.split(":").map(Number);
  return `the last ${count(number)}` + (ms ? `, for ${duration(ms)}` : "")
    + (bytes ? `, up to ${size(bytes)}` : "");
}

const SWITCH = ["off", "on"] as const;

export const SECTIONS: [string, Field[]][] = [
  ["Limits", [
    { name: "max_active", what: "slots in use at once", kind: "number", of: "GK",
      words: limit(({ slots }) => slots, "in use") },
    { name: "max_waiting", what: "jobs that wait", kind: "number", of: "G",
      words: limit(({ waiting }) => waiting, "waiting") },
    { name: "max_total", what: "jobs that wait or run", kind: "number", of: "G",
      words: limit(({ waiting, active }) => waiting + active, "waiting or active") },
    { name: "full", what: "when max_waiting or max_total is reached: refuse new jobs, or cancel "
      + "the least urgent one", kind: ["reject", "displace"], of: "" },
    { name: "rate", what: "starts in a time: n/ms[:burst], or none", kind: "text", of: "GK" },
    { name: "reserve", what: "slots that less urgent bands leave free: band:slots, or none",
      kind: "text", of: "" },
    { name: "adaptive", what: "a cap that follows run times: min:max:low_ms:high_ms, or off",
      kind: "text", of: "" },
    { name: "paused", what: "in: no job is added; out: none is handed out; all: both",
      kind: ["none", "in", "out", "all"], of: "G" }]],
  ["Order", [
    { name: "order", what: "fifo, lifo, or lifo:band", kind: "text", of: "G" },
    { name: "fair", what: "the group that was served least goes first", kind: SWITCH, of: "" },
    { name: "weight", what: "the share of a group, if fair is on", kind: "text", of: "G" },
    { name: "aging_ms", what: "a job counts as one band more urgent after each such wait",
      kind: "number", words: time("off"), of: "" },
    { name: "bands", what: "names from the most urgent to the least", kind: "text", of: "" },
    { name: "default_pri", what: "the band of jobs that name none", kind: "text", of: "" },
    { name: "priority_order", what: "asc: band 0 is the most urgent", kind: ["asc", "desc"],
      of: "" },
    { name: "ttl_ms", what: "how long a job may wait before it expires", kind: "number",
      words: time("for ever"), of: "G" }]],
  ["Runs", [
    { name: "lease_ms", what: "how long a worker may be silent", kind: "number", words: time("0"),
      of: "" },
    { name: "max_run_ms", what: "the longest run", kind: "number", words: time("no limit"),
      of: "" },
    { name: "disconnect_grace_ms", what: "how long a tied lease outlives its connection",
      kind: "number", words: time("not at all"), of: "" },
    { name: "retry", what: "failures that are retried", kind: "number", words: times, of: "" },
    { name: "crash_limit", what: "leases that may run out", kind: "number", words: times, of: "" },
    { name: "backoff", what: "the wait before a retry: base:max, in milliseconds", kind: "text",
      words: (_, __, text) => text.split(":").map((ms) => duration(Number(ms))).join(" to "),
      of: "" },
    { name: "fencing", what: "a lease must be named to end a job", kind: SWITCH, of: "" }]],
  ["What is kept", [
    { name: "retain_completed", what: "completed and cancelled jobs: count[:ms[:bytes]]",
      kind: "text", words: kept, of: "" },
    { name: "retain_failed", what: "failed and expired jobs: count[:ms[:bytes]]", kind: "text",
      words: kept, of: "" },
    { name: "events", what: "events: count[:ms]", kind: "text", words: kept, of: "" },
    { name: "log_bytes", what: "of each job's log", kind: "number", words: size, of: "" },
    { name: "max_payload", what: "the largest payload", kind: "number", words: size, of: "" },
    { name: "worker_ttl_ms", what: "how long a worker without a job is listed", kind: "number",
      words: time("0"), of: "" }]]];

export const QUIET: Field = { name: "quiet", what: "the worker gets no new jobs", kind: SWITCH,
  of: "W" };

export const ALL_FIELDS: Field[] = [...SECTIONS.flatMap(([, fields]) => fields), QUIET];

export function value_text(value: string | number | boolean | undefined): string {
  return value === true ? "on" : value === false ? "off" : String(value ?? "");
}

export function in_words(field: Field, config: Config, stats: Stats): string {
  const text = value_text(config[field.name]);
  return field.words ? field.words(Number(text), stats, text) : text;
}

// Nothing, or what is wrong with it; the server has the last word.
export function fault_of(field: Field, text: string): string {
  const is_time = field.name.endsWith("_ms");
  if (field.kind !== "number" || /^\d+$/.test(text)) return "";
  if (is_time && /^(\d+(ms|s|m|h|d))+$/.test(text)) return "";
  return "This takes a whole number" + (is_time
    ? " of milliseconds, or a time like 5s or 1h30m." : ".");
}

export function body_of(field: Field, text: string): Record<string, string | number> {
  const number = field.kind === "number" && /^\d+$/.test(text);
  return { [field.name]: number ? Number(text) : text };
}

// PATCH …?dry_run=true: what a change would mean, as far as it is more than a number.
export interface Trial {
  slots?: number;
  slots_over?: number;
  waiting_over?: number;
  total_over?: number;
}

// One line before saving.
export function trial_in_words(trial: Trial): string {
  const words: string[] = [];
  const over = (number: number | undefined, what: (text: string, one: boolean) => string) => {
    if (number) words.push(what(count(number), number === 1));
  };
  over(trial.slots_over, (number, one) => `${number} `
    + `${one ? "slot in use is" : "slots in use are"} `
    + `above this cap: nothing is stopped, and nothing starts until ${one ? "it is" : "they are"} `
    + "free.");
  over(trial.waiting_over, (number, one) => `${number} waiting ${one ? "job is" : "jobs are"} `
    + `above this limit: ${one ? "it stays" : "they stay"}, and new ones are refused.`);
  over(trial.total_over, (number, one) => `${number} ${one ? "job is" : "jobs are"} above this `
    + `limit: ${one ? "it stays" : "they stay"}, and new ones are refused.`);
  return words.join(" ") || "Nothing that waits or runs now is affected at once.";
}

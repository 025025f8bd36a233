// The settings of a queue: what each is, what its value means now, and how it is entered.
import { count, duration, plural, size } from "./format";
import type { QueueAnswer, Stats } from "./types";

// What there is of what a setting limits.
type Use = Pick<Stats, "slots" | "waiting" | "active">;
// `use`: null if it is shown elsewhere, or is that of several.
type Words = (text: string, use: Use | null) => string;

export interface Field {
  name: string;
  what: string;
  // What is entered: a number, one of these words, or text.
  kind: "number" | "text" | readonly string[];
  // The value in words; without it the value itself.
  words?: Words;
  // Rules for groups, keys and workers may set it too.
  of: string;
}

const limit = (used: (use: Use) => number, unit: string): Words => (text, use) => {
  if (text === "0") return use === null ? "no limit" : `no limit; ${count(used(use))} ${unit}`;
  return (use === null ? "" : `${count(used(use))} of `) + count(Number(text))
    + (use === null ? "" : ` ${unit}`);
};
const time = (none: string): Words => (text) => text === "0" ? none : duration(Number(text));
const times: Words = (text) => plural(Number(text), "time");
const bytes: Words = (text) => size(Number(text));

// "1000:3600000:67108864": count, milliseconds, bytes.
function kept(text: string): string {
  const [number, ms, bytes] = text.split(":").map(Number);
  return `the last ${count(number)}` + (ms ? `, for ${duration(ms)}` : "")
    + (bytes ? `, up to ${size(bytes)}` : "");
}

// "20/1000:40": starts, milliseconds, burst.
function starts(text: string): string {
  if (text === "none") return "no limit";
  const [number, ms, burst] = text.split(/[/:]/).map(Number);
  return `${plural(number, "start")} in ${duration(ms)}`
    + (burst ? `, up to ${count(burst)} at once` : "");
}

// "HIGH:2": a band and slots.
function left_free(text: string): string {
  const [band, slots] = text.split(":");
  return slots ? `${plural(Number(slots), "slot")} for ${band} and more urgent bands` : text;
}

// "1:8:500:5000:1": least and most slots, milliseconds, and a step.
function adapted(text: string): string {
  const [least, most, low, high] = text.split(":").map(Number);
  return text === "off" ? text : `${count(least)} to ${plural(most, "slot")}, fewer when runs take `
    + `more than ${duration(high)}, more below ${duration(low)}`;
}

function order(text: string): string {
  const [first, band] = text.split(":");
  if (first === "fifo") return "the oldest first";
  return "the newest first" + (band ? ` in ${band} and less urgent bands` : "");
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
    { name: "rate", what: "starts in a time: n/ms[:burst], or none", kind: "text",
      words: starts, of: "GK" },
    { name: "reserve", what: "slots that less urgent bands leave free: band:slots, or none",
      kind: "text", words: left_free, of: "" },
    { name: "adaptive", what: "a cap that follows run times: min:max:low_ms:high_ms, or off",
      kind: "text", words: adapted, of: "" },
    { name: "paused", what: "in: no job is added; out: none is handed out; all: both",
      kind: ["none", "in", "out", "all"], of: "G" }]],
  ["Order", [
    { name: "order", what: "fifo, lifo, or lifo:band", kind: "text", words: order, of: "G" },
    { name: "fair", what: "the group that was served least goes first", kind: SWITCH, of: "" },
    { name: "weight", what: "the share of a group, if fair is on", kind: "text",
      words: (text) => text === "1" ? "the usual share" : `${text} times the usual share`,
      of: "G" },
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
      words: (text) => text.split(":").map((ms) => duration(Number(ms))).join(" to "),
      of: "" },
    { name: "fencing", what: "a lease must be named to end a job", kind: SWITCH, of: "" }]],
  ["What is kept", [
    { name: "retain_completed", what: "completed and cancelled jobs: count[:ms[:bytes]]",
      kind: "text", words: kept, of: "" },
    { name: "retain_failed", what: "failed and expired jobs: count[:ms[:bytes]]", kind: "text",
      words: kept, of: "" },
    { name: "events", what: "events: count[:ms]", kind: "text", words: kept, of: "" },
    { name: "log_bytes", what: "of each job's log", kind: "number", words: bytes, of: "" },
    { name: "max_payload", what: "the largest payload", kind: "number", words: bytes, of: "" },
    { name: "worker_ttl_ms", what: "how long a worker without a job is listed", kind: "number",
      words: time("0"), of: "" }]]];

export const QUIET: Field = { name: "quiet", what: "the worker gets no new jobs", kind: SWITCH,
  of: "W" };

export const ALL_FIELDS: Field[] = [...SECTIONS.flatMap(([, fields]) => fields), QUIET];

export function value_text(value: string | number | boolean | undefined): string {
  return value === true ? "on" : value === false ? "off" : String(value ?? "");
}

export function in_words(field: Field, text: string, use: Use | null): string {
  return field.words && text !== "" ? field.words(text, use) : text;
}

// Groups take these from the queue where no rule sets them.
const INHERITED = ["ttl_ms", "order", "weight"];

// What holds while nobody sets the field: of the queue, or by a rule. `answer`: with defaults.
export function default_in_words(field: Field, of_rule: boolean, answer: QueueAnswer): string {
  const inherits = of_rule && INHERITED.includes(field.name);
  const text = value_text((inherits ? answer.config : answer.defaults)?.[field.name]);
  if (text === "") return "";
  const words = in_words(field, text, null);
  return `${inherits ? "the queue's" : "default"} ${text}${words === text ? "" : `: ${words}`}`;
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

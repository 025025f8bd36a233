// Texts for the server's codes: why a job waits, what an event means.
import { segment_of, segment_of_item, segment_of_text, shown, shown_lines } from "./bytes";
import { count, duration, moment, plural } from "./format";
import type { Job, QueueEvent } from "./types";
import type { Wait } from "./waits";

const PAIR = /^(\d+)\/(\d+)$/;

function slots(text: string | undefined): string {
  const found = PAIR.exec(text ?? "");
  return found ? `${count(Number(found[1]))} of ${plural(Number(found[2]), "slot")} in use`
    : "no slot is free";
}

interface Use {
  active: number;
  slots: number;
  // 0: no cap.
  max_active: number;
}

// A job may take several slots (its cost), and it is they that have a cap. "": each job takes one,
// and there is no cap.
export function slots_in_words({ active, slots: used, max_active }: Use): string {
  if (max_active > 0) return `${count(used)} of ${plural(max_active, "slot")}`;
  return used === active ? "" : plural(used, "slot");
}

// In the order of QUEUE.md's table.
const REASONS: Record<string, (words: string[]) => string> = {
  not_before: ([at]) => `It is delayed until ${moment(Number(at))}.`,
  releasing: () =>
    "The jobs it waits for have ended. Many waited for them; it will be released in its turn.",
  blocked_by: (ids) => `It waits for the end of ${ids.map(shown).join(", ")}.`,
  paused: () => "Its queue or its group is paused.",
  too_large: () => "Its cost exceeds a cap: it cannot run until the cap is raised.",
  group_cap: ([use]) => `Its group has reached its cap: ${slots(use)}.`,
  key_cap: ([key, use]) => `Its key ${shown(key)} has reached its cap: ${slots(use)}.`,
  rate: ([ms]) => `The rate limit admits the next job in ${duration(Number(ms))}.`,
  reserved: () => "The remaining slots are reserved for more urgent bands.",
  queue_cap: ([use]) => `It is next, but the queue is full: ${slots(use)}.`,
  no_worker: () => "It is next, but no worker is asking for jobs.",
  next: () => "It is next. If workers wait, none of them accepts it.",
  fair_share: () => "It is first in its band, but another group has a greater claim.",
  behind: ([n]) => `${plural(Number(n), "job")} ${Number(n) === 1 ? "is" : "are"} before it.`,
};

export function why_in_words(why: string | null): string {
  if (why === null) return "";
  const [code, ...rest] = why.split(" ");
  return REASONS[code]?.(rest) ?? why;
}

// What has become of the last run of a job that waits again. The error is one line.
export function failed_before(job: Job, error: string): string {
  if (job.attempts === 0 || segment_of(job, "error") === null) return "";
  return `Attempt ${job.attempts} failed${error && `: ${error}`}; `
    + `${plural(job.retries_left ?? 0, "try", "tries")} left. `;
}

// An error with its line breaks. The server's is "need ID" where a need has ended the job; a reason
// that somebody gave may begin with the same word.
export function error_in_words(error: string | null, state: string, needs: Job["needs"]): string {
  const need = state !== "cancelled" ? undefined
    : needs.map(segment_of_item).find((id) => error === segment_of_text("need ") + id);
  return need === undefined ? shown_lines(error)
    : `The job ${shown(need)}, which it needed, did not complete.`;
}

// One line about the state of a job.
export function state_in_words(job: Job, now: number): string {
  switch (job.state) {
    case "pending":
    case "delayed":
    case "blocked":
      return failed_before(job, "") + why_in_words(job.why);
    case "active":
      return job.cancel !== null || job.cancel_base64
        ? "It was asked to stop; its worker has the rest of the lease to finish."
        : `It has been running for ${duration(now - (job.started ?? now))}.`;
    case "completed":
      return `It completed${job.run_ms === null ? "" : ` after ${duration(job.run_ms)}`}.`;
    case "failed":
      return `It failed after ${plural(job.attempts, "attempt")}.`;
    case "cancelled":
      return "It was cancelled.";
    case "expired":
      return "It waited longer than it was allowed to.";
    default:
      return job.state;
  }
}

const EVENTS: Record<string, string> = {
  added: "Added",
  updated: "Given a new payload",
  moved: "Moved",
  forgotten: "Purged",
  ready: "Ready: its delay is over or the jobs it waited for have ended",
  started: "Started",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
  expired: "Expired",
  retrying: "Will be retried",
  returned: "Returned by its worker",
  reclaimed: "Returned: its lease expired",
  signalled: "Its worker was asked to stop",
  progress: "Reported progress",
};

export function event_in_words(event: QueueEvent): string {
  return EVENTS[event.type] ?? event.type;
}

// The name of a field of an event. A number alone would be taken for a time.
export function field_in_words(name: string): string {
  return name === "lease" ? "lease token" : name.replace("_ms", "").replace("_base64", "");
}

// How long the recently started jobs waited.
export function wait_in_words(wait: Wait | null): string {
  if (wait === null) return "";
  if (wait.started === 0) return `none started, first waits ${duration(wait.p95)}`;
  return `wait p50 ${duration(wait.p50)}, p95 ${duration(wait.p95)}`;
}

// When it is expected to start, in milliseconds from now; null: nobody knows. The server's estimate
// supposes that workers ask.
export function eta_of(job: Job): number | null {
  return job.why === "no_worker" ? null : job.eta_ms;
}

// The line of an error that says most, as the server takes it for the error's pattern.
export function telling_line(error: string): string {
  const lines = error.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return (lines[0]?.startsWith("Traceback (") ? lines.at(-1) : lines[0]) ?? "";
}

// Only such a job has a place before or behind others: a delayed one would be run at once.
export function has_place(state: string): boolean {
  return state === "pending" || state === "blocked";
}

export function is_over(state: string): boolean {
  return state === "completed" || state === "failed" || state === "cancelled"
    || state === "expired";
}

// What a change of a setting would mean, before it is saved: PATCH …?dry_run=true.
import { Unreachable, request } from "./api";
import { h, set_text } from "./dom";
import { count, plural } from "./format";
import { words_of_error } from "./notices";
import { body_of, fault_of } from "./setting_fields";
import type { Field } from "./setting_fields";

const TRY_MS = 200;

export interface Trial {
  matched: number;
  slots_over: number;
  waiting_over: number;
  total_over: number;
  // Ended jobs that are no longer kept, and events.
  dropped: number;
  events_dropped: number;
  // Not all were counted.
  complete: boolean;
}

export interface Entered {
  field: Field;
  text: string;
  // The request's, with dry_run=true.
  path: string;
  // What happens to new jobs above a limit: the queue's `full`, of groups "reject".
  full: string;
}

const NOTHING = "Nothing that waits or runs now is affected at once.";
const DROPPED = "deleted at once, and cannot be brought back.";

type Meaning = (text: string, one: boolean, full: string) => string;

// What a trial counts for each setting that limits what is there, and what that means.
const COUNTED: Record<string, [keyof Trial, Meaning]> = {
  max_active: ["slots_over", slots_over],
  adaptive: ["slots_over", slots_over],
  max_waiting: ["waiting_over", (text, one, full) => over_limit(`${text} waiting`, one, full)],
  max_total: ["total_over", over_limit],
  retain_completed: ["dropped", ended_dropped],
  retain_failed: ["dropped", ended_dropped],
  events: ["events_dropped",
    (text, one) => `${text} ${one ? "event is" : "events are"} ${DROPPED}`],
};

function slots_over(text: string, one: boolean): string {
  return `${text} ${one ? "slot in use is" : "slots in use are"} above this cap: nothing is `
    + `stopped, and nothing starts until ${one ? "it is" : "they are"} free.`;
}

function over_limit(text: string, one: boolean, full: string): string {
  const rest = full === "displace" ? "but each new job that is more urgent cancels the least "
    + "urgent one; others are refused." : "and new ones are refused.";
  return `${text} ${one ? "job is" : "jobs are"} above this limit: `
    + `${one ? "it stays" : "they stay"}, ${rest}`;
}

function ended_dropped(text: string, one: boolean): string {
  return `${text} ended ${one ? "job is" : "jobs are"} ${DROPPED}`;
}

// One line before saving.
export function trial_in_words({ field, full }: Entered, trial: Trial): string {
  const [member, what] = COUNTED[field.name] ?? [];
  if (member === undefined || what === undefined) return NOTHING;
  const found = Number(trial[member]);
  if (found > 0) return what((trial.complete ? "" : "At least ") + count(found), found === 1, full);
  if (trial.complete) return NOTHING;
  const many = "there are too many groups, keys or rules.";
  return trial.matched === 0 ? `What is affected cannot be counted: ${many}`
    : `Not all could be counted: ${many} Of ${plural(trial.matched, "match", "matches")} none is `
      + "affected at once.";
}

export function try_change({ field, text, path }: Entered): Promise<Trial> {
  return request<Trial>(path, { method: "PATCH", body: body_of(field, text) });
}

// What the change would delete for good, in words; "": nothing.
export async function loss_of(entered: Entered): Promise<string> {
  const [member] = COUNTED[entered.field.name] ?? [];
  if (member !== "dropped" && member !== "events_dropped") return "";
  const trial = await try_change(entered);
  return trial[member] > 0 ? trial_in_words(entered, trial) : "";
}

// The line below a value while it is entered: what is wrong with it, or what it would mean.
export class TrialLine {
  readonly root = h("small.trial", { role: "status" });
  private timer = 0;
  // What a trial says is told only if nothing was typed or saved since.
  private latest = 0;

  // Null: nothing to try is entered. `button`: saves it.
  constructor(private entered: () => Entered | null, private button: HTMLButtonElement | null) {}

  // Something was typed.
  look(): void {
    const own = this.rest();
    this.timer = window.setTimeout(() => void this.try_it(own), TRY_MS);
  }

  // What was typed before is tried no more.
  rest(): number {
    clearTimeout(this.timer);
    return ++this.latest;
  }

  warn(text: string): void {
    this.root.classList.toggle("warn", text !== "");
    set_text(this.root, text);
  }

  private allow(on: boolean): void {
    if (this.button !== null) this.button.disabled = !on;
  }

  private async try_it(own: number): Promise<void> {
    if (!this.root.isConnected) return;
    const entered = this.entered();
    const fault = entered === null ? "" : fault_of(entered.field, entered.text);
    this.allow(fault === "");
    this.warn(fault);
    if (entered === null || fault !== "") return;
    try {
      const trial = await try_change(entered);
      if (own === this.latest) set_text(this.root, trial_in_words(entered, trial));
    } catch (error) {
      if (own !== this.latest) return;
      // What cannot be tried now may be saved when the server is back.
      this.allow(error instanceof Unreachable);
      this.warn(words_of_error(error));
    }
  }
}

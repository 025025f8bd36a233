// Adds a job by hand, with all that a program can give it.
import { is_changed, queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { cancel_job, cancelled_in_words, may_operate } from "./actions";
import type { Was } from "./actions";
import { body_member, segment_of, segment_of_text, shown } from "./bytes";
import { ask, field } from "./dialogs";
import { h } from "./dom";
import { failure, notice } from "./notices";

// What few jobs need. The server has the last word on each.
interface Extra {
  // The member of the request's body.
  name: string;
  label: string;
  hint: string;
  // How it is entered: as text, a value in each line, a time, or one of these words, with what it
  // means.
  kind: "text" | "lines" | "time" | readonly [string, string][];
  read: (text: string) => unknown;
}

const as_it_is = (text: string) => text;
const whole = (text: string) => /^-?\d+$/.test(text) ? Number(text) : text;
const lines = (text: string) => text.split("\n").filter((line) => line !== "");

function pairs(text: string): Record<string, string> {
  return Object.fromEntries(lines(text).map((line) => {
    const at = line.indexOf("=");
    if (at < 0) throw new Error(`A tag is written as name=value, not ${line}.`);
    return [line.slice(0, at), line.slice(at + 1)];
  }));
}

const EXTRAS: [Extra, Extra][] = [
  [{ name: "needs", label: "Needs these jobs", kind: "lines", read: lines,
    hint: "one id a line; it runs after all have completed" },
  { name: "after", label: "Comes after these jobs", kind: "lines", read: lines,
    hint: "one id a line; it runs after all have ended, in whatever way" }],
  [{ name: "tags", label: "Tags", kind: "lines", read: pairs, hint: "name=value, one a line" },
    { name: "keys", label: "Keys", kind: "lines", read: lines, hint: "one a line, at most 4" }],
  [{ name: "at", label: "Not before", kind: "time", read: (text) => new Date(text).getTime(),
    hint: "instead of a delay" },
  { name: "ttl_ms", label: "May wait", kind: "text", read: as_it_is,
    hint: "such as 10m, then it expires; 0: for ever" }],
  [{ name: "retry", label: "Retries", kind: "text", read: whole,
    hint: "failures after which it is tried again" },
  { name: "backoff", label: "Wait before a retry", kind: "text", read: (text) => text.split(":"),
    hint: "base:max, such as 1s:5m" }],
  [{ name: "lease_ms", label: "Lease", kind: "text", read: as_it_is,
    hint: "how long its worker may be silent, such as 30s" },
  { name: "max_run_ms", label: "Longest run", kind: "text", read: as_it_is,
    hint: "such as 1h; 0: no limit" }],
  [{ name: "cost", label: "Slots", kind: "text", read: whole, hint: "that it takes; usually 1" },
    { name: "boost_ms", label: "Boost", kind: "text", read: as_it_is,
      hint: "ranked as if it had come so much earlier, such as 5m; -5m: later" }],
  [{ name: "max_wait_ms", label: "Refuse it if it would wait longer than", kind: "text",
    read: as_it_is, hint: "such as 1h" },
  { name: "ifdup", label: "If a job has this id", read: as_it_is, hint: "",
    kind: [["", "refuse the new one"], ["keep", "keep that one"],
      ["update", "give it this payload"], ["replace", "put this one in its place"]] }]];

function control({ name, kind }: Extra) {
  if (kind === "lines") return h("textarea", { name, rows: 2, spellcheck: "false" });
  if (kind === "time") return h("input", { name, type: "datetime-local", step: 1 });
  if (kind === "text") return h("input", { name, autocomplete: "off", spellcheck: "false" });
  return h("select", { name }, ...kind.map(([value, text]) => h("option", { value }, text)));
}

type Entered = { value: string; validity: ValidityState };

// What a browser cannot read, such as half a date, has no value, and is not left out in silence.
function entered_text(label: string, { value, validity }: Entered): string {
  if (validity.badInput) throw new Error(`${label} is not complete, or no such value.`);
  return value;
}

// Folded away. Also returns the members of the body that were entered.
function more(): [HTMLElement, () => Record<string, unknown>] {
  const entered: [Extra, Entered][] = [];
  const shown_fields = EXTRAS.map((pair) => h("div.pair", {}, ...pair.map((extra) => {
    const input = control(extra);
    entered.push([extra, input]);
    return field(extra.label, input, extra.hint);
  })));
  const read = () => Object.fromEntries(entered.flatMap(([{ name, label, read }, input]) =>
    entered_text(label, input) === "" ? [] : [[name, read(input.value)]]));
  return [h("details.more", {}, h("summary", {}, "More"),
    h("div.rule-fields", {}, ...shown_fields)), read];
}

interface Added {
  id: string | null;
  id_base64?: string;
  result: "added" | "kept" | "updated" | "replaced" | "queued";
}

const TOLD: Record<Added["result"], (id: string) => string> = {
  added: (id) => `Added ${id}.`,
  kept: (id) => `${id} is there already, and was kept.`,
  updated: (id) => `${id} has the new payload.`,
  replaced: (id) => `${id} was replaced.`,
  queued: (id) => `${id} runs now; the new payload follows it.`,
};

export function ask_to_add(ref: QueueRef, bands: string[], changed: () => void): void {
  if (!may_operate()) return;
  const id = h("input", { name: "id", placeholder: "chosen by the queue", autocomplete: "off" });
  const payload = h("textarea", { name: "payload", rows: 5, spellcheck: "false" });
  const pri = h("select", { name: "pri" }, h("option", { value: "" }, "default"),
    ...bands.map((band) => h("option", { value: band }, band)));
  const group = h("input", { name: "group", autocomplete: "off" });
  const delay = h("input", { name: "delay", type: "number", min: 0, step: "any",
    placeholder: "0" });
  const [folded, extras] = more();
  ask({
    title: `Add a job to ${shown(ref.queue)}`,
    content: [field("Id", id), field("Payload", payload),
      h("div.pair", {}, field("Priority", pri), field("Group", group)),
      field("Delay in seconds", delay), folded],
    confirm: "Add",
    done: async () => {
      const body: Record<string, unknown> = { payload: payload.value, ...extras() };
      if (id.value) Object.assign(body, body_member("id", segment_of_text(id.value)));
      if (pri.value) body.pri = pri.value;
      if (group.value) body.group = group.value;
      const delay_s = Number(entered_text("Delay in seconds", delay));
      if (delay_s !== 0) body.delay_ms = Math.round(delay_s * 1000);
      const added = await request<Added>(queue_path(ref, "/jobs"), { method: "POST", body });
      const own = segment_of(added, "id") ?? "";
      notice(TOLD[added.result](shown(own)), {
        undo: added.result === "added" ? () => void cancel_added(ref, own, changed) : undefined,
      });
      changed();
    },
  });
}

// A worker may have taken it by then, and nobody was asked whether that run should stop.
async function cancel_added(ref: QueueRef, id: string, changed: () => void): Promise<void> {
  const was: Was = { attempts: 0, end: "" };
  try {
    notice(cancelled_in_words(id, await cancel_job(ref, id, { reason: "added by mistake", was })));
  } catch (error) {
    failure("The job was not removed", is_changed(error)
      ? new Error(`${shown(id)} has begun, or has ended.`) : error);
  }
  changed();
}

// What people changed through this page, or over HTTP otherwise, and when.
import { job_link, queue_link } from "./address";
import { request } from "./api";
import { segment_of, segment_of_item, shown } from "./bytes";
import { server_now } from "./clock";
import { h, replace, set_text } from "./dom";
import type { Child } from "./dom";
import { ago, count, plural } from "./format";
import { Panel, empty, skeleton } from "./view";

const SHOWN = 50;

type Word = string | { base64: string };

// A command that has changed something (GET /api/v1/changes).
interface Change {
  at: number;
  user: string | null;
  user_base64?: string;
  // Null: a log-in by password.
  token: string | null;
  db: number;
  words: Word[];
  count: number;
}

const DONE: Record<string, string> = { "Q.CANCEL": "Cancelled", "Q.RETRY": "Retried",
  "Q.PURGE": "Purged", "Q.MOVE": "Moved", "Q.NACK": "Gave back", "SET": "Set", "RESET": "Reset" };

function who(change: Change): HTMLElement {
  const user = shown(segment_of(change, "user"));
  const role = /^http-(read|operate|admin)$/.exec(user)?.[1];
  return h("span", { title: change.token === null ? "logged in by password"
    : `token ${change.token}` },
  role === undefined ? user : `${role}, token ${change.token?.slice(0, 8) ?? ""}`);
}

// The words behind the queue and the job: what a filter chooses, or what a command sets.
function rest_in_words(words: string[]): string {
  return words.length > 0 ? `: ${words.join(" ")}` : "";
}

function of_jobs(change: Change, verb: string, queue: HTMLElement, words: string[]): Child[] {
  if (words[2] === "WHERE") {
    return [`${verb} ${plural(change.count, "job")} of `, queue, rest_in_words(words.slice(3))];
  }
  const ref = { queue: segment_of_item(change.words[1]), db: change.db };
  const href = job_link(ref, segment_of_item(change.words[2]));
  return [`${verb} `, queue, " / ", h("a", { href }, h("bdi", {}, words[2])),
    change.count > 1 ? ` and ${count(change.count - 1)} more` : "", rest_in_words(words.slice(3))];
}

function what(change: Change): Child[] {
  const words = change.words.map((word) => shown(segment_of_item(word)));
  const [command] = words;
  if (command === "BGSAVE") return ["Started a checkpoint"];
  if (command === "CONFIG") return [`Changed ${words[2]}`];
  const queue = h("a", { href: queue_link({ queue: segment_of_item(change.words[1]),
    db: change.db }) }, h("bdi", {}, words[1]));
  if (command === "DEL") return ["Deleted the queue ", queue];
  if (command !== "Q.CONFIG") return of_jobs(change, DONE[command] ?? command, queue, words);
  const has_rule = !(words[2] in DONE);
  const [verb, ...fields] = words.slice(has_rule ? 4 : 2);
  const was = fields.indexOf("IF");
  if (was >= 0) fields.splice(was, Infinity, `(was ${fields.slice(was + 1).join(" ")})`);
  return [`${DONE[verb] ?? verb} `, queue,
    has_rule ? `, ${words[2].toLowerCase()} ${words[3]}` : "", rest_in_words(fields)];
}

export class ChangesPanel {
  private readonly panel = new Panel("Changes by people");
  readonly root = this.panel.root;
  private readonly list = h("ol.changes");
  private readonly note = h("div", {}, skeleton(2));
  private drawn = "";

  constructor() {
    set_text(this.panel.aside, "through this page and HTTP, since the server's start");
    this.panel.body.append(this.list, this.note);
  }

  async ask(signal: AbortSignal): Promise<void> {
    const { changes } = await request<{ changes: Change[] }>(`/api/v1/changes?limit=${SHOWN}`,
      { signal });
    const now = server_now();
    const drawn = JSON.stringify([changes, changes.map(({ at }) => ago(at, now))]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    replace(this.note, changes.length > 0 ? null : empty("Nobody has changed anything",
      h("p", {}, "What Redis clients and sluice on the command line change is not told here.")));
    replace(this.list, ...changes.map((change) => h("li", {},
      h("time", {}, ago(change.at, now)), who(change), h("span", {}, ...what(change)))));
  }
}

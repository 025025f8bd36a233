// Facts about the server: version, connections, memory, journal, checkpoints, and its group.
import { request, state } from "./api";
import { ChangesPanel } from "./changes_panel";
import { server_now } from "./clock";
import { h, replace, set_text } from "./dom";
import { ago, count, duration, moment, plural, size } from "./format";
import { LEAST_MS, Poller, draw_soon } from "./live";
import { act } from "./notices";
import type { Group } from "./types";
import { Panel, Stale, skeleton, show_error } from "./view";
import type { View } from "./view";

const USUAL_MS = 2000;

interface Facts {
  version: string;
  now: number;
  uptime_s: number;
  io_threads: number;
  commands_a_second: number;
  connections: { open: number; most: number; waiting: number; rejected: number;
    http: { open: number; most: number; requests: number; rejected: number } };
  memory: { used: number; resident: number; peak: number; most: number; system: number };
  journal: { kind: "local" | "etcd"; mode: string; units: number; unwritten_bytes: number;
    sync_us_p99: number; disk_bytes: number; free_disk_bytes: number;
    disk_nearly_full: boolean } | null;
  checkpoint: { running: boolean; completed: number; failed: number; bytes: number;
    last_s: number | null } | null;
}

// What is lost at the worst if the machine stops.
const MODES: Record<string, string> = {
  always: "A change is on the disk before it is answered: nothing is lost.",
  everysec: "Changes are on the disk within a second, which a crash of the machine may lose.",
  no: "The operating system decides when changes reach the disk: a crash of the machine may lose "
    + "the last ones.",
  off: "Nothing is written: a restart loses everything since the last checkpoint.",
};

// A name, its value, and whether it is bad news.
type Fact = [string, string, boolean?];

function server_facts(facts: Facts): Fact[] {
  return [["Version", `Sluice ${facts.version}`],
    ["Up for", `${duration(facts.uptime_s * 1000)}, since ${
      moment(facts.now - facts.uptime_s * 1000)}`],
    ["Commands", `${count(facts.commands_a_second)} a second`],
    ["Threads", `${plural(facts.io_threads, "thread")} for clients`]];
}

function connection_facts({ connections }: Facts): Fact[] {
  const { open, most, waiting, rejected, http } = connections;
  return [["Redis protocol", `${count(open)} of at most ${count(most)}`, open >= most],
    ["Waiting", `${plural(waiting, "client")}, also of HTTP, in a command such as a pop of an `
      + "empty queue"],
    ["Refused", `${count(rejected)} since the start`, rejected > 0],
    ["HTTP", `${count(http.open)} of at most ${count(http.most)}`, http.open >= http.most],
    ["HTTP requests", `${count(http.requests)} since the start`],
    ["HTTP refused", `${count(http.rejected)} since the start`, http.rejected > 0]];
}

function memory_facts({ memory }: Facts): Fact[] {
  const { used, resident, peak, most, system } = memory;
  return [["Used", most === 0 ? `${size(used)}, without a limit (maxmemory)`
    : `${size(used)} of at most ${size(most)}: ${Math.round(100 * used / most)} %`,
  most > 0 && used > 0.9 * most],
  ["Most so far", size(peak)], ["Of the system", `${size(resident)} of its ${size(system)}`]];
}

function journal_facts({ journal }: Facts): Fact[] {
  if (journal === null) {
    return [["Kept", "in memory only: a restart loses all data (see appendonly)", true]];
  }
  const etcd = journal.kind === "etcd";
  return [["Kept", etcd ? "by etcd, for all nodes of the group. A change is answered when etcd has "
    + "it." : MODES[journal.mode] ?? journal.mode],
  ["Written", `${plural(journal.units, "change")} since the start`],
  ["Not yet written", size(journal.unwritten_bytes)],
  ["Slowest writes", journal.sync_us_p99 === 0 ? "none yet"
    : `1 of 100 takes longer than ${duration(journal.sync_us_p99 / 1000)}`],
  ["Disk", `${size(journal.disk_bytes)} used, ${size(journal.free_disk_bytes)} free`,
    journal.disk_nearly_full]];
}

function checkpoint_facts({ checkpoint, now }: Facts): Fact[] {
  if (checkpoint === null) return [];
  const { running, failed, bytes, last_s } = checkpoint;
  return [["Last", (last_s === null ? "none since the start" : `${ago(last_s * 1000, now)}, ${
    size(bytes)}`) + (running ? ". One is being written." : "")],
  ["Failed", `${count(failed)} since the start`, failed > 0]];
}

function group_facts(group: Group | null): Fact[] {
  if (group === null) return [];
  return [["This node", `${group.node}, ${group.role}`],
    ["Primary", group.primary ?? "none", group.primary === null],
    ["Takeovers", `${count(group.epoch)} in the life of the group (its epoch)`],
    ["Last by this node", group.last_takeover_ms === 0 ? "none since its start"
      : `took ${duration(group.last_takeover_ms)}`],
    ["etcd", `heard of ${duration(group.age_ms)} ago`, group.age_ms > 2000]];
}

export class ServerView implements View {
  readonly root = h("main.server");
  readonly title = "Server";
  private readonly stale = new Stale();
  private readonly message = h("div", {}, skeleton(6));
  private readonly panels = h("div.fact-panels", { hidden: true });
  private readonly parts: [Panel, (facts: Facts) => Fact[]][];
  private readonly changes = new ChangesPanel();
  private group: Group | null = null;
  private facts: Facts | null = null;
  private readonly poller: Poller;

  constructor() {
    this.parts = [[new Panel("Server"), server_facts], [new Panel("Connections"), connection_facts],
      [new Panel("Memory"), memory_facts], [new Panel("Journal"), journal_facts],
      [new Panel("Checkpoint"), checkpoint_facts],
      [new Panel("Group"), () => group_facts(this.group)]];
    this.panels.append(...this.parts.map(([{ root }]) => root));
    const checkpoint = h("button", { click: () => void this.checkpoint() }, "Checkpoint now");
    this.root.append(h("div.page-head", {}, h("h1", {}, "Server"),
      state.may("admin") ? checkpoint : ""), this.stale.root, this.message, this.panels,
    this.changes.root);
    this.poller = new Poller((signal) => this.ask(signal), USUAL_MS, LEAST_MS,
      (error) => this.failed(error));
  }

  stop(): void {
    this.poller.stop();
  }

  private async ask(signal: AbortSignal): Promise<void> {
    const [facts, { group }] = await Promise.all([
      request<Facts>("/api/v1/server", { signal }),
      request<{ group: Group | null }>("/api/v1/group", { signal }), this.changes.ask(signal)]);
    this.facts = facts;
    this.group = group;
    this.stale.set(null);
    draw_soon(this.draw);
  }

  private async checkpoint(): Promise<void> {
    await act("The checkpoint was started.", "The checkpoint was not started",
      () => request("/api/v1/checkpoint", { method: "POST" }));
    this.poller.poke();
  }

  private failed(error: unknown): void {
    if (state.health !== "connected") return;
    if (this.facts !== null) return this.stale.set(error);
    show_error(this.message, "Cannot show the server", error, () => this.poller.poke());
  }

  private readonly draw = () => {
    if (this.facts === null) return;
    replace(this.message);
    this.panels.hidden = false;
    for (const [panel, facts_of] of this.parts) {
      const facts = facts_of({ ...this.facts, now: server_now() });
      panel.root.hidden = facts.length === 0;
      const names = facts.map(([name]) => name).join();
      if (panel.body.dataset.for !== names) {
        panel.body.dataset.for = names;
        replace(panel.body, h("dl.facts", {}, ...facts.flatMap(([name]) =>
          [h("dt", {}, name), h("dd")])));
      }
      panel.body.querySelectorAll("dd").forEach((value, n) => {
        set_text(value, facts[n][1]);
        value.classList.toggle("warn", facts[n][2] === true);
      });
    }
  };
}

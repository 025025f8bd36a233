// The groups with the most jobs: their slots and caps, each one's share, and a pause for each.
import { queue_link, stays } from "./address";
import { queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { segment_of, shown } from "./bytes";
import { KeyedList, draw_more, h, replace, set_text, show } from "./dom";
import { count, plural, short_count } from "./format";
import { Seldom, draw_soon } from "./live";
import { failure } from "./notices";
import { ask_to_pause, ask_to_resume } from "./queue_actions";
import { path_with_rule } from "./rules";
import { PAUSED } from "./trouble";
import type { Group, Pause, Stats } from "./types";
import { Panel, empty, skeleton } from "./view";
import { slots_in_words } from "./words";

const SHOWN_GROUPS = 20;
// The server's answer has so many groups, and then a line for the sum of the others.
const MOST_GROUPS = 1000;
const EACH_MS = 3000;

interface Row {
  root: HTMLElement;
  meter: HTMLMeterElement;
  share: HTMLElement;
  active: HTMLElement;
  slots: HTMLElement;
  waiting: HTMLElement;
  // The pause in force.
  now: Pause;
  told: HTMLElement;
  pause: HTMLElement;
}

export class GroupsPanel {
  private readonly panel = new Panel("Groups");
  readonly root = this.panel.root;
  visible = false;
  // Null: not known yet.
  private groups: Group[] | null = null;
  private others: Group | null = null;
  private slots = 0;
  // An answer may have a thousand lines.
  private readonly seldom = new Seldom(EACH_MS);
  private all = false;
  private readonly note = h("div", {}, skeleton(2));
  private readonly table: HTMLElement;
  private readonly more = h("button.link", { click: () => this.show_all() }, "Show all");
  private readonly list: KeyedList<Group, Row>;

  constructor(private ref: QueueRef, private poke: () => void) {
    const rows = h("div.group-rows");
    this.table = h("div.groups", {}, h("div.group.head", {}, h("span", {}, "group"),
      h("span", {}, "share of slots"), h("span", {}, "active"), h("span", {}, "waiting"),
      h("span", {}, "")), rows);
    show(this.table, false);
    show(this.more, false);
    this.panel.body.append(this.table, this.note, this.more);
    this.list = new KeyedList<Group, Row>(rows, (group) => segment_of(group, "name") ?? "",
      (key) => this.make(key), (row, group) => this.update(row, group));
  }

  ask(stats: Stats, signal: AbortSignal): void {
    this.slots = stats.slots;
    if (!this.visible) return;
    this.seldom.ask(async () => {
      const { groups } = await request<{ groups: Group[] }>(queue_path(this.ref, "/groups"),
        { signal });
      this.others = groups.length > MOST_GROUPS ? groups[MOST_GROUPS] : null;
      this.groups = groups.slice(0, MOST_GROUPS);
      draw_soon(this.draw);
    });
  }

  readonly draw = () => {
    if (!this.visible || this.groups === null) return;
    const groups = this.all ? this.groups : this.groups.slice(0, SHOWN_GROUPS);
    this.list.render(groups);
    show(this.table, groups.length > 0);
    show(this.more, groups.length < this.groups.length);
    set_text(this.panel.aside, this.others ? `the ${count(MOST_GROUPS)} largest`
      : this.groups.length ? `${count(this.groups.length)}, largest first` : "");
    replace(this.note, groups.length === 0 ? empty("No jobs belong to a group") : null,
      this.others && h("p.dim", {}, `Other groups have ${count(this.others.active)} active and `
        + `${plural(this.others.waiting, "waiting job")}.`));
  };

  private show_all(): void {
    this.all = true;
    draw_more(this.more, this.list.root, this.draw);
  }

  // What the group's own rule is now is asked for when it is to change.
  private async turn_pause(key: string, now: Pause): Promise<void> {
    const here = stays();
    const path = path_with_rule(queue_path(this.ref, "/config"), "group", key);
    let own: Pause | undefined;
    try {
      ({ paused: own } = await request<{ paused?: Pause }>(path));
    } catch (error) {
      return failure("The pause was not changed", error);
    }
    if (!here()) return;
    const changed = () => {
      this.seldom.soon();
      this.poke();
    };
    const paused = own ?? now;
    if (paused !== "none") ask_to_resume(this.ref, paused, own ?? "", changed, key);
    else ask_to_pause(this.ref, own ?? "", changed, key);
  }

  private make(key: string): Row {
    const row: Row = { root: h("div.group"),
      meter: h("meter", { min: 0, max: 1, "aria-label": `share of the slots: ${shown(key)}` }),
      share: h("small"), active: h("span"), slots: h("small"), waiting: h("span"),
      now: "none", told: h("span.pill", {}, "paused"), pause: h("span") };
    if (key !== "" && state.may("operate")) {
      row.pause = h("button.link", { click: () => void this.turn_pause(key, row.now) });
    }
    const name = h("bdi", { title: shown(key) }, key === "" ? "(no group)" : shown(key));
    row.root.append(h("span.group-title", {}, key === "" ? name
      : h("a.id", { href: queue_link(this.ref, { group: key }) }, name), row.told),
    h("span.share", {}, row.meter, row.share), h("span", {}, row.active, " ", row.slots),
    row.waiting, row.pause);
    return row;
  }

  private update(row: Row, group: Group): void {
    const share = this.slots > 0 ? Math.min(1, group.slots / this.slots) : 0;
    row.meter.value = share;
    set_text(row.share, `${Math.round(share * 100)} %`);
    set_text(row.active, count(group.active));
    set_text(row.slots, slots_in_words(group));
    set_text(row.waiting, short_count(group.waiting));
    row.now = group.paused ?? "none";
    row.told.title = PAUSED[row.now] ?? "";
    show(row.told, row.now !== "none");
    if (!row.pause.matches("button")) return;
    const name = segment_of(group, "name") ?? "";
    const verb = row.now === "none" ? "Pause" : "Resume";
    set_text(row.pause, `${verb}…`);
    row.pause.setAttribute("aria-label", `${verb} ${shown(name)}`);
  }
}

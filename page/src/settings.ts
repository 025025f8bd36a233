// The settings of a queue, and of its groups, keys and workers.
import { overview_link, queue_link } from "./address";
import { ApiError, is_changed, queue_path, request, state } from "./api";
import type { Query, QueueRef } from "./api";
import { segment_of, segment_of_text, shown } from "./bytes";
import { ask, field as labelled } from "./dialogs";
import { KeyedList, append, draw_more, h, replace, set_text, show } from "./dom";
import { missing_queue } from "./first_run";
import { count, plural } from "./format";
import { Poller, draw_soon, rest_since } from "./live";
import { act, notice } from "./notices";
import { ask_to_delete } from "./queue_actions";
import { ask_rules, seen } from "./rules";
import type { Rule, Rules, Scope } from "./rules";
import { ALL_FIELDS, SECTIONS, body_of, default_in_words, fault_of, in_words, value_text }
  from "./setting_fields";
import { SettingRow } from "./setting_row";
import { TrialLine } from "./setting_trial";
import type { Config, Group, QueueAnswer } from "./types";
import { Panel, Stale, empty, skeleton, show_error } from "./view";
import type { View } from "./view";

const USUAL_MS = 3000;
const SHOWN_RULES = 200;
// The server's answer has so many groups or keys, and then a line for the sum of the others.
const MOST_LINES = 1000;

const LETTER: Record<Scope, string> = { group: "G", key: "K", worker: "W" };
// Above the limits of groups, whatever `full` says.
const RULES_REJECT = "reject";

interface RuleLine {
  root: HTMLElement;
  use: HTMLElement;
  rows: Map<string, SettingRow>;
}

export class SettingsView implements View {
  readonly root = h("main.settings");
  readonly title: string;
  private readonly stale = new Stale();
  private readonly message = h("div", {}, skeleton(6));
  private readonly content = h("div", { hidden: true });
  private readonly rows = new Map<string, SettingRow>();
  private readonly rules = new Panel("Rules for groups, keys and workers", "rules-panel");
  private readonly rule_note = h("div");
  private readonly more_rules = h("button.link", { click: () => {
    this.shown_rules += SHOWN_RULES;
    draw_more(this.more_rules, this.rule_list.root, () => this.draw());
  } });
  private readonly rule_list: KeyedList<Rule, RuleLine>;
  private readonly poller: Poller;
  private answer: QueueAnswer | null = null;
  private use = new Map<string, Group>();
  // Those of which each group or key in use has a line.
  private complete = new Set<Scope>();
  private found: Rules = { rules: [], cut: false };
  private shown_rules = SHOWN_RULES;
  private stopped = false;

  constructor(readonly ref: QueueRef) {
    this.title = `Settings of ${shown(ref.queue)}`;
    const list = h("div.rules");
    this.rule_list = new KeyedList<Rule, RuleLine>(list, (rule) =>
      `${rule.scope} ${segment_of(rule, "glob") ?? ""}`, (_, rule) => this.make_rule(rule),
    (line, rule) => this.update_rule(line, rule));
    this.rules.body.append(list, this.rule_note, this.more_rules);
    show(this.more_rules, false);
    if (state.may("operate")) {
      this.rules.body.append(h("div.buttons", {}, h("button", { click: () => this.ask_for_rule() },
        "Add a rule…")));
    }
    this.lay_out();
    this.poller = new Poller((signal) => this.ask(signal), USUAL_MS, 400,
      (error) => this.failed(error));
  }

  stop(): void {
    this.stopped = true;
    this.poller.stop();
  }

  private lay_out(): void {
    const sections = SECTIONS.map(([title, fields]) => {
      const panel = new Panel(title);
      for (const field of fields) {
        const row = new SettingRow(field, (rest, query) => queue_path(this.ref, rest, query),
          () => value_text(this.answer?.config?.full), () => this.poller.poke());
        this.rows.set(field.name, row);
        panel.body.append(row.root);
      }
      return panel.root;
    });
    append(this.content, [h("div.columns", {}, h("div", {}, ...sections.slice(0, 2)),
      h("div", {}, this.rules.root, ...sections.slice(2)))]);
    const remove = state.may("operate") ? h("button.danger", {
      click: () => void ask_to_delete(this.ref) }, "Delete the queue…") : null;
    append(this.root, [h("div.page-head", {}, h("h1", {},
      h("a", { href: overview_link(this.ref.db) }, "Queues"), h("span.dim", {}, " / "),
      h("a", { href: queue_link(this.ref) }, h("bdi", {}, shown(this.ref.queue))),
      h("span.dim", {}, " / "), "Settings"), h("div.buttons", {}, remove)),
    this.stale.root, this.message, this.content]);
  }

  // --- Requests ---

  private async lines(what: "groups" | "keys", signal: AbortSignal): Promise<Group[]> {
    const answer = await request<Record<string, Group[]>>(queue_path(this.ref, `/${what}`),
      { signal });
    return answer[what];
  }

  private async ask(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const [answer, found] = await Promise.all([
      request<QueueAnswer>(queue_path(this.ref, "", { with: "defaults" }), { signal }),
      ask_rules(this.ref, signal)]);
    const use = new Map<string, Group>();
    const complete = new Set<Scope>();
    for (const [scope, what] of [["group", "groups"], ["key", "keys"]] as const) {
      if (!found.rules.some((rule) => rule.scope === scope)) continue;
      const lines = await this.lines(what, signal);
      for (const line of lines) use.set(`${scope} ${segment_of(line, "name")}`, line);
      if (lines.length <= MOST_LINES) complete.add(scope);
    }
    this.answer = answer;
    this.found = found;
    this.use = use;
    this.complete = complete;
    this.poller.usual_ms = rest_since(began, USUAL_MS);  // there may be thousands of rules
    this.stale.set(null);
    draw_soon(() => this.draw());
  }

  private failed(error: unknown): void {
    if (state.health !== "connected") return;
    if (this.answer !== null) return this.stale.set(error);
    delete this.message.dataset.for;
    show_error(this.message, "Cannot show the settings", error, () => this.poller.poke());
  }

  // --- Drawing ---

  private draw(): void {
    if (this.answer === null || this.stopped) return;
    const { config, stats } = this.answer;
    const missing = config === null;
    this.content.hidden = missing;
    if (this.message.dataset.for !== String(missing)) {
      this.message.dataset.for = String(missing);
      replace(this.message, missing ? missing_queue(this.ref) : null);
    }
    for (const field of ALL_FIELDS) {
      const text = value_text(config?.[field.name]);
      this.rows.get(field.name)?.set(text, in_words(field, text, stats),
        default_in_words(field, false, this.answer));
    }
    const { rules, cut } = this.found;
    this.rule_list.render(rules.slice(0, this.shown_rules));
    set_text(this.rules.aside, rules.length === 0 ? ""
      : cut ? `more than ${count(rules.length)}` : plural(rules.length, "rule"));
    replace(this.rule_note, rules.length === 0 ? empty("No rules",
      h("p", {}, "A rule limits a group or a key, or each of those that a pattern matches."))
      : cut ? h("p.dim", {}, `The first ${count(rules.length)} were read; there are more.`) : null);
    const left = rules.length - this.shown_rules;
    show(this.more_rules, left > 0);
    set_text(this.more_rules, `Show more rules (${count(left)})`);
  }

  // --- Rules ---

  private rule_path(scope: Scope, glob: string, rest: string, query: Query) {
    const path = queue_path(this.ref, rest, query);
    return `${path}${path.includes("?") ? "&" : "?"}${scope}_glob=${glob}`;
  }

  private make_rule(rule: Rule): RuleLine {
    const glob = segment_of(rule, "glob") ?? "";
    const line: RuleLine = { root: h("div.rule"), use: h("small"), rows: new Map() };
    const remove = state.may("operate") ? h("button.danger", { click: () =>
      this.has_later_peer(rule.scope, glob) ? this.ask_to_remove(rule.scope, glob)
        : void this.remove_rule(rule.scope, glob) }, "Remove") : null;
    append(line.root, [h("header", {}, h("span.pill", {}, rule.scope), h("bdi", {}, shown(glob)),
      line.use, remove)]);
    return line;
  }

  // The one that was changed last wins among patterns that are equally exact: a rule that is put
  // back would take the place of those that were changed after it.
  private has_later_peer(scope: Scope, glob: string): boolean {
    const peers = this.found.rules.filter((rule) => rule.scope === scope && rule.name === null
      && rule.name_base64 === undefined);
    const at = peers.findIndex((rule) => segment_of(rule, "glob") === glob);
    return at >= 0 && (at < peers.length - 1 || this.found.cut);
  }

  private ask_to_remove(scope: Scope, glob: string): void {
    ask({
      title: `Remove the rule for ${shown(glob)}?`,
      content: ["Other patterns were changed after it. Put back, it would win over those that are "
        + "as exact: there is no undo."],
      confirm: "Remove it",
      danger: true,
      done: async () => {
        await request(this.rule_path(scope, glob, "/config", {}), { method: "DELETE" });
        notice(`The rule for ${shown(glob)} was removed.`);
        this.poller.poke();
      },
    });
  }

  // What it was when it is removed is put back, which may be newer than what is shown.
  private async remove_rule(scope: Scope, glob: string): Promise<void> {
    const path = (query: Query) => this.rule_path(scope, glob, "/config", query);
    let settings: Config = {};
    await act(`The rule for ${shown(glob)} was removed.`, "The rule was not removed",
      async () => {
        settings = await request<Config>(path({}));
        await request(path({ was: seen(settings) }), { method: "DELETE" });
      },
      () => void act("The rule is back.", "The rule was not put back", () => request(
        this.rule_path(scope, glob, "", { was: Object.keys(settings).map((name) => `${name}=`) }),
        { method: "PATCH", body: settings }))
        .then(() => this.poller.poke()));
    this.poller.poke();
  }

  private use_in_words(rule: Rule): string {
    const name = segment_of(rule, "name");
    if (name === null) return "each that matches";
    const use = this.use.get(`${rule.scope} ${name}`);
    if (use === undefined && !this.complete.has(rule.scope)) return "";
    // What is not in use has no line: its cap is that of the rule. Nobody counts what waits for a
    // key.
    const cap = use?.max_active ?? Number(rule.settings.max_active ?? 0);
    return `${count(use?.slots ?? 0)}${cap > 0 ? ` of ${count(cap)}` : ""} in use`
      + (rule.scope === "key" ? "" : `, ${count(use?.waiting ?? 0)} waiting`);
  }

  private update_rule(line: RuleLine, rule: Rule): void {
    const answer = this.answer!;
    const glob = segment_of(rule, "glob") ?? "";
    set_text(line.use, this.use_in_words(rule));
    for (const [name, value] of Object.entries(rule.settings)) {
      const field = ALL_FIELDS.find((each) => each.name === name);
      if (!field) continue;
      let row = line.rows.get(name);
      if (!row) {
        row = new SettingRow(field,
          (rest, query) => this.rule_path(rule.scope, glob, rest, query),
          () => RULES_REJECT, () => this.poller.poke());
        line.rows.set(name, row);
        line.root.append(row.root);
      }
      row.set(value_text(value), in_words(field, value_text(value), null),
        default_in_words(field, true, answer));
    }
    for (const [name, row] of line.rows) {
      if (name in rule.settings) continue;
      row.root.remove();
      line.rows.delete(name);
    }
  }

  private ask_for_rule(): void {
    const scope = h("select", { name: "scope", change: () => fill() },
      ...(["group", "key", "worker"] as const).map((each) => h("option", { value: each }, each)));
    const glob = h("input", { name: "glob", autocomplete: "off", spellcheck: "false" });
    const name = h("select", { name: "field" });
    const value = h("input", { name: "value", autocomplete: "off" });
    const fill = () => replace(name, ...ALL_FIELDS.filter(({ of }) =>
      of.includes(LETTER[scope.value as Scope])).map((each) =>
      h("option", { value: each.name }, each.name)));
    fill();
    const chosen = () => ALL_FIELDS.find((each) => each.name === name.value)!;
    const path = (query: Query) =>
      this.rule_path(scope.value as Scope, segment_of_text(glob.value), "", query);
    const standard = h("small");
    const told = () => this.answer !== null
      && set_text(standard, default_in_words(chosen(), true, this.answer));
    told();
    const line = new TrialLine(() => glob.value === "" || value.value === "" ? null
      : { field: chosen(), text: value.value, path: path({ dry_run: "true" }),
        full: RULES_REJECT }, null);
    ask({
      title: "Add a rule",
      content: [h("div.rule-fields", { input: () => { told(); line.look(); } },
        h("div.pair", {}, labelled("For each", scope),
          labelled("Name, or a pattern with * and ?", glob)),
        h("div.pair", {}, labelled("Setting", name), labelled("Value", value)), standard),
      line.root],
      confirm: "Add it",
      done: async () => {
        const field = chosen();
        const fault = fault_of(field, value.value);
        if (fault !== "") throw new ApiError(422, "BADFIELD", fault);
        line.rest();
        await request(path({ was: `${field.name}=` }),
          { method: "PATCH", body: body_of(field, value.value) })
          .catch((error) => {
            if (!is_changed(error)) throw error;
            throw new Error(`There is such a rule already: ${error.message}`);
          });
        this.poller.poke();
      },
    });
  }
}

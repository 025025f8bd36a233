// One setting that is changed in its place: what it means now, and before it is saved what the
// change would mean.
import { is_changed, request, state } from "./api";
import { ask } from "./dialogs";
import { h, replace, set_text } from "./dom";
import { act, words_of_error } from "./notices";
import { body_of, value_text } from "./setting_fields";
import type { Field } from "./setting_fields";
import { TrialLine, loss_of } from "./setting_trial";
import type { Entered } from "./setting_trial";
import type { Config } from "./types";

// What is being written into a row. A view that is made anew, for other rights or after a log-in,
// takes it over.
interface Draft {
  text: string;
  // What it was when it was last looked at here: only this is overwritten.
  seen: string;
}

// By the address of the setting.
const drafts = new Map<string, Draft>();

export function forget_drafts(): void {
  drafts.clear();
}

export class SettingRow {
  readonly root = h("div.setting");
  private readonly words = h("strong");
  private readonly raw = h("small");
  private readonly standard = h("span");
  private readonly shown: HTMLElement;
  private readonly button: HTMLElement | null;
  private text = "";

  // `path`: of the queue, or of its configuration, with these parameters besides its own. `full`:
  // as in Entered.
  constructor(private field: Field,
              private path: (rest: "" | "/config", query: Record<string, string>) => string,
              private full: () => string, private changed: () => void) {
    this.button = state.may("operate") ? h("button", { "aria-label": `Change ${field.name}`,
      click: () => this.edit() }, "Change") : null;
    this.shown = h("div.setting-value", {}, this.words, this.raw, this.button);
    replace(this.root, h("code", {}, field.name), this.shown,
      h("small.what", {}, field.what, this.standard));
  }

  // `words`: the value as it is meant now; `standard`: what holds while nobody sets it.
  set(text: string, words: string, standard: string): void {
    this.text = text;
    set_text(this.standard, standard && ` · ${standard}`);
    set_text(this.words, words);
    set_text(this.raw, words === text || words === "" || text === "" ? ""
      : `stored as ${text}`);
    const draft = drafts.size > 0 && this.root.contains(this.shown)
      ? drafts.get(this.address) : undefined;
    if (draft) this.edit(draft);
  }

  private get address(): string {
    return `${this.path("", {})} ${this.field.name}`;
  }

  private input(text: string): HTMLInputElement | HTMLSelectElement {
    const { kind, name } = this.field;
    const named = { name, "aria-label": name };
    if (typeof kind === "string") {
      return h("input", { ...named, value: text, autocomplete: "off", spellcheck: "false" });
    }
    return h("select", named, ...kind.map((word) =>
      h("option", { value: word, selected: word === text }, word)));
  }

  private entered(text: string): Entered {
    return { field: this.field, text, path: this.path("", { dry_run: "true" }), full: this.full() };
  }

  private edit(draft: Draft = { text: this.text, seen: this.text }): void {
    drafts.set(this.address, draft);
    const input = this.input(draft.text);
    const save = h("button.primary", { type: "submit" }, "Save");
    const line = new TrialLine(() => input.value === this.text ? null : this.entered(input.value),
      save);
    const close = () => {
      drafts.delete(this.address);
      const within = form.contains(document.activeElement);
      form.replaceWith(this.shown);
      if (within) this.button?.focus();
    };
    const look = () => {
      draft.text = input.value;
      line.look();
    };
    const form = h("form.setting-edit", { novalidate: true, submit: (event: Event) => {
      event.preventDefault();
      line.rest();
      void this.ask_and_save(input.value, draft.seen, line, (now) => {
        if (now === null) return close();
        draft.seen = now;
        set_text(save, "Save anyway");
      }).catch((error) => line.warn(words_of_error(error)));
    }, keydown: (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
    } }, input, save, h("button", { type: "button", click: close }, "Back"), line.root);
    input.addEventListener("input", look);
    this.shown.replaceWith(form);
    if (document.activeElement?.matches("input, select, textarea")) return look();
    input.focus();
    if (draft.text !== this.text) look();
    else if (input instanceof HTMLInputElement) input.select();
  }

  private async set_value(text: string, was: string): Promise<void> {
    const { name } = this.field;
    const config = await request<Config>(this.path("", { was: `${name}=${was}` }),
      { method: "PATCH", body: body_of(this.field, text) });
    this.text = value_text(config[name]);
    this.changed();
  }

  // What deletes something for good is asked for, and not undone.
  private async ask_and_save(text: string, seen: string, line: TrialLine,
                             saved: (now: string | null) => void): Promise<void> {
    const loss = await loss_of(this.entered(text));
    if (loss === "") return saved(await this.save(text, seen, line, true));
    ask({
      title: `Set ${this.field.name} to ${text}?`,
      content: [loss],
      confirm: "Save it",
      danger: true,
      done: async () => saved(await this.save(text, seen, line, false)),
    });
  }

  // Returns null, or, if somebody has changed it since it was `seen`, the value that it has now.
  private async save(text: string, seen: string, line: TrialLine,
                     undoes: boolean): Promise<string | null> {
    const { name } = this.field;
    try {
      await this.set_value(text, seen);
    } catch (error) {
      if (!is_changed(error)) throw error;
      const now = value_text((await request<Config>(this.path("/config", {})))[name]);
      line.warn(`Somebody has changed it meanwhile, from ${seen || "nothing"} to `
        + `${now || "nothing"}. Save ${text} anyway?`);
      return now;
    }
    const saved = this.text;
    void act(`${name} is ${saved} now.`, "", () => Promise.resolve(), seen === "" || !undoes
      ? undefined : () => void act(`${name} is ${seen} again.`, "Not changed back",
        () => this.set_value(seen, saved)));
    return null;
  }
}

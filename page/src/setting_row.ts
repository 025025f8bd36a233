// One setting that is changed in its place: what it means now, and before it is saved what the
// change would mean.
import { ApiError, Unreachable, request, state } from "./api";
import { h, replace, set_text } from "./dom";
import { act, words_of_error } from "./notices";
import { body_of, fault_of, trial_in_words, value_text } from "./setting_fields";
import type { Field, Trial } from "./setting_fields";
import type { Config } from "./types";

const TRY_MS = 200;

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
  private readonly shown: HTMLElement;
  private readonly button: HTMLElement | null;
  private text = "";

  // `path`: of the queue, or of its configuration, with these parameters besides its own.
  constructor(private field: Field,
              private path: (rest: "" | "/config", query: Record<string, string>) => string,
              private changed: () => void) {
    this.button = state.may("operate") ? h("button", { "aria-label": `Change ${field.name}`,
      click: () => this.edit() }, "Change") : null;
    this.shown = h("div.setting-value", {}, this.words, this.raw, this.button);
    replace(this.root, h("code", {}, field.name), this.shown, h("small.what", {}, field.what));
  }

  // `words`: the value as it is meant now.
  set(text: string, words: string): void {
    this.text = text;
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

  private edit(draft: Draft = { text: this.text, seen: this.text }): void {
    drafts.set(this.address, draft);
    const input = this.input(draft.text);
    const line = h("small.trial", { role: "status" });
    const save = h("button.primary", { type: "submit" }, "Save");
    const close = () => {
      drafts.delete(this.address);
      const within = form.contains(document.activeElement);
      form.replaceWith(this.shown);
      if (within) this.button?.focus();
    };
    let timer = 0;
    // What a trial says is told only if nothing was typed or saved since.
    let latest = 0;
    const next = () => {
      clearTimeout(timer);
      return ++latest;
    };
    const look = () => {
      draft.text = input.value;
      const own = next();
      timer = window.setTimeout(() => void this.try_it(input, line, save, () => own === latest),
        TRY_MS);
    };
    const form = h("form.setting-edit", { novalidate: true, submit: (event: Event) => {
      event.preventDefault();
      next();
      void this.save(input.value, draft.seen, line).then((now) => {
        if (now === null) return close();
        draft.seen = now;
        set_text(save, "Save anyway");
      }, (error) => this.fault(line, words_of_error(error)));
    }, keydown: (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
    } }, input, save, h("button", { type: "button", click: close }, "Back"), line);
    input.addEventListener("input", look);
    this.shown.replaceWith(form);
    if (document.activeElement?.matches("input, select, textarea")) return look();
    input.focus();
    if (draft.text !== this.text) look();
    else if (input instanceof HTMLInputElement) input.select();
  }

  private fault(line: HTMLElement, text: string): void {
    line.classList.toggle("warn", text !== "");
    set_text(line, text);
  }

  private async try_it(input: HTMLInputElement | HTMLSelectElement, line: HTMLElement,
                       save: HTMLButtonElement, is_latest: () => boolean): Promise<void> {
    const text = input.value;
    const fault = fault_of(this.field, text);
    save.disabled = fault !== "";
    this.fault(line, fault);
    if (fault !== "" || text === this.text) return;
    try {
      const trial = await request<Trial>(this.path("", { dry_run: "true" }),
        { method: "PATCH", body: body_of(this.field, text) });
      if (is_latest()) set_text(line, trial_in_words(trial));
    } catch (error) {
      if (!is_latest()) return;
      // What cannot be tried now may be saved when the server is back.
      save.disabled = !(error instanceof Unreachable);
      this.fault(line, words_of_error(error));
    }
  }

  private async set_value(text: string, was: string): Promise<void> {
    const { name } = this.field;
    const config = await request<Config>(this.path("", { was: `${name}=${was}` }),
      { method: "PATCH", body: body_of(this.field, text) });
    this.text = value_text(config[name]);
    this.changed();
  }

  // Returns null, or, if somebody has changed it since it was `seen`, the value that it has now.
  private async save(text: string, seen: string, line: HTMLElement): Promise<string | null> {
    const { name } = this.field;
    try {
      await this.set_value(text, seen);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "CHANGED") throw error;
      const now = value_text((await request<Config>(this.path("/config", {})))[name]);
      this.fault(line, `Somebody has changed it meanwhile, from ${seen || "nothing"} to `
        + `${now || "nothing"}. Save ${text} anyway?`);
      return now;
    }
    const saved = this.text;
    void act(`${name} is ${saved} now.`, "", () => Promise.resolve(), seen === "" ? undefined
      : () => void act(`${name} is ${seen} again.`, "Not changed back",
        () => this.set_value(seen, saved)));
    return null;
  }
}

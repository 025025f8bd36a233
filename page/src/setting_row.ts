// One setting that is changed in its place: what it means now, and before it is saved what the
// change would mean.
import { ApiError, request, state } from "./api";
import { h, replace, set_text } from "./dom";
import { act, words_of_error } from "./notices";
import { body_of, fault_of, trial_in_words, value_text } from "./setting_fields";
import type { Field, Trial } from "./setting_fields";
import type { Config } from "./types";

const TRY_MS = 200;

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
  }

  private input(): HTMLInputElement | HTMLSelectElement {
    const { kind, name } = this.field;
    const named = { name, "aria-label": name };
    if (typeof kind === "string") {
      return h("input", { ...named, value: this.text, autocomplete: "off", spellcheck: "false" });
    }
    return h("select", named, ...kind.map((word) =>
      h("option", { value: word, selected: word === this.text }, word)));
  }

  private edit(): void {
    const input = this.input();
    const line = h("small.trial", { role: "status" });
    const save = h("button.primary", { type: "submit" }, "Save");
    // What it was when it was last looked at here: only this is overwritten.
    let seen = this.text;
    const close = () => {
      const within = form.contains(document.activeElement);
      form.replaceWith(this.shown);
      if (within) this.button?.focus();
    };
    let timer = 0;
    const look = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => void this.try_it(input, line, save), TRY_MS);
    };
    const form = h("form.setting-edit", { novalidate: true, submit: (event: Event) => {
      event.preventDefault();
      void this.save(input.value, seen, line).then((now) => {
        if (now === null) return close();
        seen = now;
        set_text(save, "Save anyway");
      }, (error) => this.fault(line, words_of_error(error)));
    }, keydown: (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
    } }, input, save, h("button", { type: "button", click: close }, "Back"), line);
    input.addEventListener("input", look);
    this.shown.replaceWith(form);
    input.focus();
    if (input instanceof HTMLInputElement) input.select();
  }

  private fault(line: HTMLElement, text: string): void {
    line.classList.toggle("warn", text !== "");
    set_text(line, text);
  }

  private async try_it(input: HTMLInputElement | HTMLSelectElement, line: HTMLElement,
                       save: HTMLButtonElement): Promise<void> {
    const text = input.value;
    const fault = fault_of(this.field, text);
    save.disabled = fault !== "";
    this.fault(line, fault);
    if (fault !== "" || text === this.text) return;
    try {
      const trial = await request<Trial>(this.path("", { dry_run: "true" }),
        { method: "PATCH", body: body_of(this.field, text) });
      // What was typed meanwhile has a trial of its own.
      if (input.value === text) set_text(line, trial_in_words(trial));
    } catch (error) {
      if (input.value !== text) return;
      save.disabled = true;
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

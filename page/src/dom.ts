// Elements. Text only becomes text nodes: nothing in the page is ever parsed as HTML (which the
// server's Content-Security-Policy also forbids: require-trusted-types-for 'script').

export type Child = Node | string | number | null | undefined | false;

type Properties = Record<string, string | number | boolean | null | undefined
  | ((event: never) => void)>;

function fill(element: Element, properties: Properties, children: Child[]): void {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name, value as unknown as EventListener);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

// h("button.danger", {click: f}, "Cancel"). Attributes; functions become listeners.
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K | `${K}.${string}`, properties: Properties = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name as K);
  if (classes.length) element.className = classes.join(" ");
  fill(element, properties, children);
  return element;
}

// Sets the text only if it differs: an unchanged node costs no layout.
export function set_text(element: Element, text: string | number): void {
  const value = String(text);
  if (element.textContent !== value) element.textContent = value;
}

export function set_class(element: Element, name: string, on: boolean): void {
  element.classList.toggle(name, on);
}

export function show(element: HTMLElement, on: boolean): void {
  if (element.hidden === on) element.hidden = !on;
}

export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

// Where what had the focus is gone, it goes to the heading, which a screen reader says then.
export function focus_heading(): void {
  const heading = document.querySelector<HTMLElement>("main h1");
  if (heading === null || document.activeElement !== document.body) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

// Draws more rows of a list. If the button is hidden then, the focus goes to the first new row.
export function draw_more(button: HTMLElement, list: Element, draw: () => void): void {
  const before = list.childElementCount;
  draw();
  if (button.hidden) list.children[before]?.querySelector<HTMLElement>("a, button")?.focus();
}

// Children of a list by key: those that remain keep their elements (and so focus and selection).
export class KeyedList<Item, Row extends { root: HTMLElement }> {
  private rows = new Map<string, Row>();

  constructor(readonly root: HTMLElement, private key: (item: Item) => string,
              private make: (key: string, item: Item) => Row,
              private update: (row: Row, item: Item) => void) {}

  render(items: readonly Item[]): void {
    const kept = new Map<string, Row>();
    const focused = document.activeElement;
    let place: ChildNode | null = this.root.firstChild;
    for (const item of items) {
      const key = this.key(item);
      if (kept.has(key)) continue;
      let row = this.rows.get(key);
      if (!row) row = this.make(key, item);
      this.update(row, item);
      kept.set(key, row);
      if (row.root === place) {
        place = place.nextSibling;
      } else {
        this.root.insertBefore(row.root, place);
      }
    }
    for (const [key, row] of this.rows) if (!kept.has(key)) row.root.remove();
    this.rows = kept;
    // A row that is moved loses the focus.
    if (focused instanceof HTMLElement && focused !== document.activeElement
      && this.root.contains(focused)) {
      focused.focus({ preventScroll: true });
    }
  }

  get(key: string): Row | undefined {
    return this.rows.get(key);
  }

  values(): IterableIterator<Row> {
    return this.rows.values();
  }
}
